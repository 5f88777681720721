/* SPDX-License-Identifier: BSD-2-Clause */
/* Operations that a back end may leave out, and the check of a table of operations. */
#include "port.h"

#include <errno.h>

/* Optional, and so not looked at: slice_share, event_fd, service. */
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
	return p->ops->service != NULL ? p->ops->service(p) : 0;
}

void port_close(struct port *p)
{
	if (p != NULL)
		p->ops->close(p);
}
