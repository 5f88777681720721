// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The state of the link: what the adapter sees, and what programs are told. */
#include "viaduct.h"

/*
 * Also called with port->lock held, and in interrupts.  Changes that come in great numbers are looked at together,
 * some time later: each may cost a walk over all mappings.
 */
void vd_link_check(struct vd_port *port)
{
	queue_delayed_work(system_wq, &port->link_work, vd_limit_link(port));
}

void vd_link_event(struct vd_port *port)
{
	atomic_inc(&port->link_events);
	vd_link_check(port);
}

/* The adapter has seen a link come up or go down, or both. */
static bool wire_changed(struct vd_port *port, bool wire)
{
	vd_window_close(port);
	if (wire && vd_window_setup(port)) {
		dev_warn_ratelimited(&port->ntb->dev,
				     "the link stays down: no window has memory\n");
		wire = false;
	}
	port->wire = wire;
	vd_msg_begin(port, wire);
	return wire;
}

/* Slices of the generation before lead nowhere any more: nobody can store into a window yet. */
static void begin_generation(struct vd_port *port)
{
	unsigned int i;

	if (!++port->generation)
		port->generation = 1;
	for (i = 0; i < port->windows; i++)
		WRITE_ONCE(port->window[i].stored, false);
}

/* A link that is up after an event may have been down between: a new generation. */
static bool check_locked(struct vd_port *port)
{
	bool event = atomic_xchg(&port->link_events, 0) || vd_msg_lost(port);
	bool wire = port->enabled && ntb_link_is_up(port->ntb, NULL, NULL);
	bool fresh = wire != port->wire || (wire && event);
	bool again, up, changed;

	if (fresh)
		wire = wire_changed(port, wire);
	up = vd_msg_ready(port, &again) && wire;
	fresh = fresh || again;
	if (up && (fresh || !port->up) && vd_window_open(port)) {
		dev_warn_ratelimited(&port->ntb->dev,
				     "the link stays down: no window leads to the peer\n");
		up = false;
	}
	if (!up)
		vd_window_close(port);
	changed = up != port->up || (up && fresh);
	port->up = up;
	if (up && changed)
		begin_generation(port);
	return changed;
}

static void link_work(struct work_struct *work)
{
	struct vd_port *port = container_of(to_delayed_work(work), struct vd_port, link_work);
	bool up, changed;

	vd_limit_link_done(port);
	down_write(&port->lock);
	changed = port->ntb && check_locked(port);
	up = port->up;
	up_write(&port->lock);
	if (changed) {
		vd_slice_zap(port);
		vd_event_link(port, up ? VIADUCT_LINK_UP : VIADUCT_LINK_DOWN, port->generation);
	}
	down_read(&port->lock);
	if (port->ntb)
		vd_msg_confirm(port);
	up_read(&port->lock);
}

void vd_link_init(struct vd_port *port)
{
	INIT_DELAYED_WORK(&port->link_work, link_work);
}
