/* SPDX-License-Identifier: BSD-2-Clause */
/* emu: the agent's port. */
#include "port_emu.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "port_emu_priv.h"
#include "u_log.h"
#include "u_random.h"
#include "u_time.h"

#define EMU_SERVICE_MESSAGES 256u /* handled at once, so that one cable does not starve others */

/* Takes the lock.  Does nothing while the link is down. */
static void port_emu_ring(struct port *p, uint32_t bits)
{
	struct emu_port *e = emu_port(p);

	pthread_mutex_lock(&e->lock);
	emu_view_ring(&e->view, bits);
	pthread_mutex_unlock(&e->lock);
}

/* emu_peer_spad_read() with the lock, as the cable may be pulled meanwhile. */
static uint32_t port_emu_peer_spad_read(struct port *p, unsigned int idx)
{
	struct emu_port *e = emu_port(p);
	uint32_t v;

	pthread_mutex_lock(&e->lock);
	v = emu_peer_spad_read(p, idx);
	pthread_mutex_unlock(&e->lock);
	return v;
}

/* emu_peer_spad_write() with the lock, likewise. */
static int port_emu_peer_spad_write(struct port *p, unsigned int idx, uint32_t v)
{
	struct emu_port *e = emu_port(p);
	int err;

	pthread_mutex_lock(&e->lock);
	err = emu_peer_spad_write(p, idx, v);
	pthread_mutex_unlock(&e->lock);
	return err;
}

/* Enables or disables this side of the link, and tells the far side.  Takes the lock. */
static void link_set(struct emu_port *e, bool enabled)
{
	struct emu_msg msg = emu_msg(EMU_LINK);

	pthread_mutex_lock(&e->lock);
	if (e->enabled != enabled) {
		e->enabled = enabled;
		msg.enabled = enabled;
		emu_cable_say(e, &msg);
		emu_link_update(e);
	}
	pthread_mutex_unlock(&e->lock);
}

static int port_emu_link_enable(struct port *p)
{
	link_set(emu_port(p), true);
	return 0;
}

static void port_emu_link_disable(struct port *p)
{
	link_set(emu_port(p), false);
}

/* Returns the state by the agent's own copy, which no other process can write. */
static enum port_link port_emu_link_state(struct port *p, uint32_t *generation_out)
{
	uint64_t word = atomic_load_explicit(&emu_port(p)->link, memory_order_acquire);

	if (generation_out != NULL)
		*generation_out = (uint32_t)(word >> 32);
	return (word & 1) != 0 ? PORT_LINK_UP : PORT_LINK_DOWN;
}

static int port_emu_event_fd(struct port *p)
{
	return emu_port(p)->epoll_fd;
}

/*
 * Handles messages of the cable, EMU_SERVICE_MESSAGES at most, and sends those that wait.  Returns how often
 * the link changed since the last call, or -errno.  Takes the lock.
 */
static int port_emu_service(struct port *p)
{
	struct emu_port *e = emu_port(p);
	uint64_t count;
	int changes;

	pthread_mutex_lock(&e->lock);
	emu_cable_input(e, EMU_SERVICE_MESSAGES);
	emu_cable_output(e);
	changes = (int)e->changes;
	e->changes = 0;
	if (read(e->event_fd, &count, sizeof(count)) < 0 && errno != EAGAIN)
		changes = -errno;
	pthread_mutex_unlock(&e->lock);
	return changes;
}

/* The descriptor of the peer's doorbells, if there is a peer, stays the port's.  Takes the lock. */
static int port_emu_export_view(struct port *p, char *text, size_t size, int fds[PORT_ATTACH_FDS],
				unsigned int *nfds_out)
{
	struct emu_port *e = emu_port(p);
	int err;

	pthread_mutex_lock(&e->lock);
	err = emu_view_text(&e->view, text, size);
	if (err == 0) {
		*nfds_out = e->peer_fd >= 0;
		if (e->peer_fd >= 0)
			fds[0] = e->peer_fd;
	}
	pthread_mutex_unlock(&e->lock);
	return err;
}

/* Frees a port, which may be made in part and has no cable. */
static void emu_free(struct emu_port *e)
{
	emu_slices_clear(&e->own);
	emu_slices_clear(&e->offers);
	free(e->backlog);
	if (e->epoll_fd >= 0)
		close(e->epoll_fd);
	if (e->event_fd >= 0)
		close(e->event_fd);
	if (e->spare_fd >= 0)
		close(e->spare_fd);
	pthread_mutex_destroy(&e->lock);
	free(e);
}

/* Unplugs the cable, marks the link as down for all, and frees the port. */
static void port_emu_close(struct port *p)
{
	struct emu_port *e = emu_port(p);

	port_emu_unplug(p);
	atomic_store_explicit(&e->host->status->link[e->view.index], 0, memory_order_release);
	emu_free(e);
}

static const struct port_ops emu_ops = {
	.slice_alloc = emu_offer_alloc,
	.slice_free = emu_offer_free,
	.slice_share = emu_offer_share,
	.peer_slice_open = emu_offer_open,
	.map = emu_map,
	.unmap = emu_unmap,
	.flush = emu_flush,
	.peer_db_ring = port_emu_ring,
	.db_read = emu_db_read,
	.db_clear = emu_db_clear,
	.db_set_mask = emu_db_set_mask,
	.db_clear_mask = emu_db_clear_mask,
	.spad_read = emu_spad_read,
	.spad_write = emu_spad_write,
	.peer_spad_read = port_emu_peer_spad_read,
	.peer_spad_write = port_emu_peer_spad_write,
	.link_enable = port_emu_link_enable,
	.link_disable = port_emu_link_disable,
	.link_state = port_emu_link_state,
	.event_fd = port_emu_event_fd,
	.service = port_emu_service,
	.export_view = port_emu_export_view,
	.close = port_emu_close,
};

/* Nothing to do: the link of self is always up and never changes, so it has no event source. */
static int self_link_enable(struct port *p)
{
	return 0;
}

static void self_link_disable(struct port *p) {}

static const struct port_ops self_ops = {
	.slice_alloc = emu_offer_alloc,
	.slice_free = emu_offer_free,
	.slice_share = emu_offer_share,
	.peer_slice_open = emu_offer_open,
	.map = emu_map,
	.unmap = emu_unmap,
	.flush = emu_flush,
	.peer_db_ring = emu_peer_db_ring,
	.db_read = emu_db_read,
	.db_clear = emu_db_clear,
	.db_set_mask = emu_db_set_mask,
	.db_clear_mask = emu_db_clear_mask,
	.spad_read = emu_spad_read,
	.spad_write = emu_spad_write,
	.peer_spad_read = emu_peer_spad_read,
	.peer_spad_write = emu_peer_spad_write,
	.link_enable = self_link_enable,
	.link_disable = self_link_disable,
	.link_state = port_emu_link_state,
	.export_view = port_emu_export_view,
	.close = port_emu_close,
};

/* Returns a random number below 2^24: a generation of an earlier agent of this host must not come again soon. */
static uint32_t first_generation(void)
{
	uint32_t r;

	u_random(&r, sizeof(r));
	return r & 0x00ffffffu;
}

/* Opens the port's event descriptors.  0; or -errno, and some are open, which emu_free() closes. */
static int emu_events(struct emu_port *e)
{
	struct epoll_event ev = { .events = EPOLLIN };

	e->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	e->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	e->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (e->epoll_fd < 0 || e->event_fd < 0 || e->spare_fd < 0 ||
	    epoll_ctl(e->epoll_fd, EPOLL_CTL_ADD, e->event_fd, &ev) != 0)
		return -errno;
	return 0;
}

/* Makes a port that has no peer, and no event descriptors.  0 or -errno. */
static int emu_new(struct port_emu_host *host, const struct port_emu_cfg *cfg,
		   const struct port_ops *ops, struct emu_port **out)
{
	struct port_emu_cfg checked;
	struct emu_port *e;
	int err = emu_cfg_check(cfg, &checked);

	if (err == 0)
		err = port_ops_check(ops);
	if (err != 0)
		return err;
	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return -ENOMEM;
	emu_view_init(&e->view, ops, &host->irq, &checked);
	e->view.regs = host->regs;
	e->view.agent_bits = checked.agent_bits;
	emu_db_clear(&e->view.port, UINT32_MAX);
	e->view.link = &e->link;
	e->host = host;
	e->sock = -1;
	e->peer_fd = -1;
	e->epoll_fd = -1;
	e->event_fd = -1;
	e->spare_fd = -1;
	e->generation = first_generation();
	e->unplugged = (struct u_log_ratelimit)U_LOG_RATELIMIT(
		U_LOG_INFO, "port", "unplugged cables of port", e->view.port.limits.name);
	e->misread = (struct u_log_ratelimit)U_LOG_RATELIMIT(
		U_LOG_WARN, "port", "misread cables of port", e->view.port.limits.name);
	pthread_mutex_init(&e->lock, NULL);
	*out = e;
	return 0;
}

int port_emu_self_create(struct port_emu_host *host, const struct port_emu_cfg *cfg,
			 struct port **out)
{
	struct emu_port *e;
	int err = emu_new(host, cfg, &self_ops, &e);

	if (err != 0)
		return err;
	e->self = true;
	e->view.peer = (struct emu_peer){ .doorbells = host->irq.doorbells,
					  .regs = host->regs,
					  .own = &host->irq,
					  .own_agent = &host->agent_irq,
					  .index = e->view.index,
					  .db_bits = e->view.port.limits.db_bits,
					  .agent_bits = e->view.agent_bits,
					  .spads = e->view.port.limits.spads };
	emu_link_update(e);
	*out = &e->view.port;
	return 0;
}

int port_emu_create(struct port_emu_host *host, const struct port_emu_cfg *cfg, struct port **out)
{
	struct emu_port *e;
	int err = emu_new(host, cfg, &emu_ops, &e);

	if (err != 0)
		return err;
	err = emu_events(e);
	if (err != 0) {
		emu_free(e);
		return err;
	}
	emu_link_update(e);
	*out = &e->view.port;
	return 0;
}

/* The port with the cable, below its decorators; NULL: it is of a kind that has none. */
static struct emu_port *cabled(const struct port *p)
{
	while (p->inner != NULL)
		p = p->inner;
	return p->ops == &emu_ops ? emu_port((struct port *)(uintptr_t)p) : NULL;
}

int port_emu_plug(struct port *p, int cable_fd)
{
	struct emu_port *e = cabled(p);
	int err;

	if (e == NULL) {
		close(cable_fd);
		return -EOPNOTSUPP;
	}
	pthread_mutex_lock(&e->lock);
	emu_cable_unplug(e, "another cable replaces this one");
	err = emu_cable_plug(e, cable_fd);
	pthread_mutex_unlock(&e->lock);
	return err;
}

void port_emu_unplug(struct port *p)
{
	struct emu_port *e = cabled(p);

	if (e == NULL)
		return;
	pthread_mutex_lock(&e->lock);
	emu_cable_unplug(e, "asked for");
	pthread_mutex_unlock(&e->lock);
}

bool port_emu_plugged(const struct port *p)
{
	struct emu_port *e = cabled(p);
	bool plugged;

	if (e == NULL)
		return false;
	pthread_mutex_lock(&e->lock);
	plugged = e->sock >= 0;
	pthread_mutex_unlock(&e->lock);
	return plugged;
}
