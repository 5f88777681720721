/* SPDX-License-Identifier: BSD-2-Clause */
/* getpeername(), getsockname() and bind() of a program. */
#ifndef VF_NAME_H
#define VF_NAME_H

#include <sys/socket.h>

#include "vf_notify.h"
#include "vs_rules.h"

/* Answers with the addresses of the connection that is carried; on all other sockets the kernel answers. */
void vf_name_peer(const struct vf_call *call);
void vf_name_local(const struct vf_call *call);

/* As the bind() of libvisock.so: a TCP socket that is bound to any address gets that of the host. */
void vf_name_bind(const struct vf_call *call);

/*
 * Reads the address that is an argument of connect() or bind().  False: it is neither IPv4 nor IPv6, or cannot be
 * accessed.
 */
bool vf_name_read(const struct vf_call *call, struct sockaddr_storage *a, struct vs_addr *addr);

/* Gives a socket without an address that of the host, if this run stands for one. */
void vf_name_source(int fd, const struct sockaddr_storage *mine, const struct vs_addr *peer);

#endif
