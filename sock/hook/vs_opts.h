/* SPDX-License-Identifier: BSD-2-Clause */
/* Options and states of a TCP socket that has an object.  Each returns what the replaced call does. */
#ifndef VS_OPTS_H
#define VS_OPTS_H

#include <sys/socket.h>

#include "vs_obj.h"

int vs_opts_get(struct vs_obj *o, int fd, int level, int name, void *v, socklen_t *len);
int vs_opts_set(struct vs_obj *o, int fd, int level, int name, const void *v, socklen_t len);
int vs_opts_ioctl(struct vs_obj *o, int fd, unsigned long op, void *arg);
int vs_opts_fcntl(struct vs_obj *o, int fd, int op, unsigned long arg);
int vs_opts_shutdown(struct vs_obj *o, int fd, int how);

#endif
