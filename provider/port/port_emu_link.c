/* SPDX-License-Identifier: BSD-2-Clause */
/* emu: the state of an agent's link, which all other processes read. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "port_emu_priv.h"
#include "u_log.h"

void emu_notify(struct emu_port *e)
{
	uint64_t one = 1;

	if (e->event_fd >= 0 && write(e->event_fd, &one, sizeof(one)) < 0)
		u_debug("port", "port %s event: %s", e->view.port.limits.name, strerror(errno));
}

static bool link_is_up(const struct emu_port *e)
{
	return (atomic_load_explicit(&e->link, memory_order_acquire) & 1) != 0;
}

/* Stores the state of the link, with its generation and cable, for this agent and in the status page. */
static void link_store(struct emu_port *e, bool up)
{
	uint64_t word = emu_link_word(e->generation, e->view.cable, up);

	atomic_store_explicit(&e->link, word, memory_order_release);
	atomic_store_explicit(&e->host->status->link[e->view.index], word, memory_order_release);
}

void emu_link_update(struct emu_port *e)
{
	bool up = e->self ||
		  (e->sock >= 0 && e->view.peer.regs != NULL && e->enabled && e->peer_enabled);
	bool was = link_is_up(e);

	if (up && !was && ++e->generation == 0)
		e->generation = 1;
	link_store(e, up);
	if (up == was)
		return;
	e->changes++;
	emu_notify(e);
}
