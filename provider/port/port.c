/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations that a back end may leave out, and the check of a table of operations. */
#include "port.h"

#include <errno.h>

/*
 * These are optional, so they are not checked: slice_end, slice_share, memory_alloc, view_end,
 * event_fd, service.
 */
int port_ops_check(const struct port_ops *ops)
{
	bool windows = ops->slice_alloc != NULL && ops->slice_free != NULL &&
		       ops->peer_slice_open != NULL && ops->map != NULL && ops->unmap != NULL &&
		       ops->flush != NULL;
	bool doorbells = ops->peer_db_ring != NULL && ops->db_read != NULL &&
			 ops->db_clear != NULL && ops->db_set_mask != NULL &&
			 ops->db_clear_mask != NULL;
	bool scratchpads = ops->spad_read != NULL && ops->spad_write != NULL &&
			   ops->peer_spad_read != NULL && ops->peer_spad_write != NULL;
	bool link = ops->link_enable != NULL && ops->link_disable != NULL &&
		    ops->link_state != NULL;

	return windows && doorbells && scratchpads && link && ops->export_view != NULL &&
			       ops->close != NULL
		       ? 0
		       : -EINVAL;
}

/*
 * The port below all decorators, which change neither the ids of slices nor the descriptors of
 * views.
 */
static struct port *innermost(struct port *p)
{
	while (p->inner != NULL)
		p = p->inner;
	return p;
}

void port_slice_end(struct port *p, uint32_t id)
{
	struct port *in = innermost(p);

	if (in->ops->slice_end != NULL)
		in->ops->slice_end(in, id);
	else
		port_slice_free(p, id);
}

bool port_view_ends(struct port *p)
{
	return innermost(p)->ops->view_end != NULL;
}

void port_view_end(struct port *p, int fd)
{
	struct port *in = innermost(p);

	if (in->ops->view_end != NULL)
		in->ops->view_end(in, fd);
}

int port_memory_alloc(struct port *p, size_t len, struct port_slice *out)
{
	return p->ops->memory_alloc != NULL ? p->ops->memory_alloc(p, len, out) : -EOPNOTSUPP;
}

int port_slice_share(struct port *p, int fd, size_t len, uint32_t *id_out)
{
	return p->ops->slice_share != NULL ? p->ops->slice_share(p, fd, len, id_out) : -EOPNOTSUPP;
}

int port_event_fd(struct port *p)
{
	return p->ops->event_fd != NULL ? p->ops->event_fd(p) : -1;
}

int port_service(struct port *p)
{
	int changes = p->ops->service != NULL ? p->ops->service(p) : 0;

	/* An adapter learns the size of its window when its link comes up. */
	if (p->inner != NULL)
		p->limits.window_bytes = p->inner->limits.window_bytes;
	return changes;
}

void port_close(struct port *p)
{
	if (p != NULL)
		p->ops->close(p);
}
