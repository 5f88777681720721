/* SPDX-License-Identifier: BSD-2-Clause */
/* The answers of a process's view, whatever its kind, to operations for agents only (port.h). */
#ifndef PORT_VIEW_H
#define PORT_VIEW_H

#include "port.h"

int port_view_no_alloc(struct port *p, size_t len, struct port_slice *out);
void port_view_no_free(struct port *p, uint32_t id);
int port_view_no_share(struct port *p, int fd, size_t len, uint32_t *id_out);
int port_view_no_open(struct port *p, uint32_t id, size_t len, int *fd_out);
uint32_t port_view_no_spad_read(struct port *p, unsigned int idx);
int port_view_no_spad_write(struct port *p, unsigned int idx, uint32_t v);
int port_view_no_enable(struct port *p);
void port_view_no_disable(struct port *p);
int port_view_no_export(struct port *p, char *text, size_t size, int fds[PORT_ATTACH_FDS],
			unsigned int *nfds_out);

#endif
