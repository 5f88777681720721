/* SPDX-License-Identifier: BSD-2-Clause */
#include "port_deco.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

void deco_init(struct port *p, const struct port_ops *ops, const char *name, struct port *inner)
{
	size_t used;

	p->ops = ops;
	p->limits = inner->limits;
	p->irq = inner->irq;
	p->inner = inner;
	used = strlen(p->limits.kind);
	snprintf(p->limits.kind + used, sizeof(p->limits.kind) - used, "+%s", name);
}

int deco_export(struct port *p, const char *segment, char *text, size_t size,
		int fds[PORT_ATTACH_FDS], unsigned int *nfds_out)
{
	size_t used;
	int err = port_export_view(p->inner, text, size, fds, nfds_out);

	if (err != 0)
		return err;
	used = strlen(text);
	if ((size_t)snprintf(text + used, size - used, PORT_VIEW_SEP "%s", segment) >= size - used)
		return -ENOSPC;
	return 0;
}

void deco_put(const struct u_out *out, void *dst, const void *src, size_t n)
{
	uint64_t v64;
	uint32_t v32;

	if (n == sizeof(v64) && ((uintptr_t)dst & 7) == 0) {
		memcpy(&v64, src, n);
		u_out_store64(out, dst, v64);
	} else if (n == sizeof(v32) && ((uintptr_t)dst & 3) == 0) {
		memcpy(&v32, src, n);
		u_out_store32(out, dst, v32);
	} else {
		u_out_copy(out, dst, src, n);
	}
}

int deco_slice_alloc(struct port *p, size_t len, struct port_slice *out)
{
	return port_slice_alloc(p->inner, len, out);
}

void deco_slice_free(struct port *p, uint32_t id)
{
	port_slice_free(p->inner, id);
}

int deco_slice_share(struct port *p, int fd, size_t len, uint32_t *id_out)
{
	return port_slice_share(p->inner, fd, len, id_out);
}

int deco_memory_alloc(struct port *p, size_t len, struct port_slice *out)
{
	return port_memory_alloc(p->inner, len, out);
}

int deco_peer_slice_open(struct port *p, uint32_t id, size_t len, int *fd_out)
{
	return port_peer_slice_open(p->inner, id, len, fd_out);
}

void deco_flush(struct port *p)
{
	port_flush(p->inner);
}

void deco_peer_db_ring(struct port *p, uint32_t bits)
{
	port_peer_db_ring(p->inner, bits);
}

uint32_t deco_db_read(struct port *p)
{
	return port_db_read(p->inner);
}

void deco_db_clear(struct port *p, uint32_t bits)
{
	port_db_clear(p->inner, bits);
}

void deco_db_set_mask(struct port *p, uint32_t bits)
{
	port_db_set_mask(p->inner, bits);
}

void deco_db_clear_mask(struct port *p, uint32_t bits)
{
	port_db_clear_mask(p->inner, bits);
}

uint32_t deco_spad_read(struct port *p, unsigned int idx)
{
	return port_spad_read(p->inner, idx);
}

int deco_spad_write(struct port *p, unsigned int idx, uint32_t v)
{
	return port_spad_write(p->inner, idx, v);
}

uint32_t deco_peer_spad_read(struct port *p, unsigned int idx)
{
	return port_peer_spad_read(p->inner, idx);
}

int deco_peer_spad_write(struct port *p, unsigned int idx, uint32_t v)
{
	return port_peer_spad_write(p->inner, idx, v);
}

int deco_link_enable(struct port *p)
{
	return port_link_enable(p->inner);
}

void deco_link_disable(struct port *p)
{
	port_link_disable(p->inner);
}

enum port_link deco_link_state(struct port *p, uint32_t *generation_out)
{
	return port_link_state(p->inner, generation_out);
}

int deco_event_fd(struct port *p)
{
	return port_event_fd(p->inner);
}

int deco_service(struct port *p)
{
	return port_service(p->inner);
}
