/* SPDX-License-Identifier: BSD-2-Clause */
/* cdev: the agent's port. */
#include "port_cdev.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "port_cdev_priv.h"
#include "u_cfg.h"
#include "u_fd.h"
#include "u_log.h"
#include "u_random.h"
#include "u_time.h"

/* ---- the link -------------------------------------------------------------------------------- */

/* Makes event_fd readable. */
static void notify(struct cdev_port *c)
{
	uint64_t one = 1;

	if (write(c->event_fd, &one, sizeof(one)) < 0)
		u_debug("port", "port %s event: %s", c->view.port.limits.name, strerror(errno));
}

/*
 * Marks the link as down; if it was up, counts the change, and gives memory back as cdev_ends_disown() does.
 * Caller holds the lock.
 */
static void link_lose(struct cdev_port *c)
{
	c->phase = CDEV_DOWN;
	if (!atomic_exchange_explicit(&c->up, false, memory_order_seq_cst))
		return;
	cdev_ends_disown(&c->ends, c->own, c->view.fd);
	c->changes++;
	notify(c);
}

/* Marks the link as up, in a new generation, and counts the change.  Caller holds the lock. */
static void link_gain(struct cdev_port *c)
{
	uint32_t generation = atomic_load_explicit(&c->generation, memory_order_relaxed) + 1;

	c->phase = CDEV_UP;
	cdev_timer_set(c, false);
	cdev_ends_begun(c);
	atomic_store_explicit(&c->generation, generation != 0 ? generation : 1,
			      memory_order_release);
	atomic_store_explicit(&c->up, true, memory_order_release);
	c->changes++;
	notify(c);
}

/*
 * Reads a scratchpad, of the peer if `flags` say so, to *value, or writes it from there.  0, -EINVAL: no such
 * scratchpad; or -errno, and *value is as before.
 */
static int spad_access(struct port *p, uint32_t flags, unsigned int idx, uint32_t *value)
{
	struct viaduct_spad spad = { .index = idx, .flags = flags };

	if (idx >= p->limits.spads)
		return -EINVAL;
	if ((flags & VIADUCT_SPAD_WRITE) != 0)
		spad.value = *value;
	if (ioctl(cdev_view(p)->fd, VIADUCT_SPAD, &spad) != 0)
		return -errno;
	*value = spad.value;
	return 0;
}

/* Clears this port's scratchpads of the values that an earlier agent of the neighbour wrote. */
static void spads_clear(struct port *p)
{
	for (unsigned int i = 0; i < p->limits.spads; i++) {
		uint32_t zero = 0;

		spad_access(p, VIADUCT_SPAD_WRITE, i, &zero);
	}
}

/*
 * Sets limits.window_bytes to the memory behind the windows, without the table and at most as configured.  It
 * is known when the link has been up once.  Returns the memory with the table.
 */
static uint64_t window_measure(struct cdev_port *c, const struct viaduct_info *info)
{
	uint64_t all = 0, sum;

	for (unsigned int i = 0; i < info->windows && i < VIADUCT_WINDOWS; i++)
		all += info->window[i].inbound;
	sum = all -
	      u_min64(all, u_align_up(sizeof(struct cdev_table), c->view.port.limits.slice_align));
	if (c->window_most != 0 && c->window_most < sum)
		sum = c->window_most;
	c->view.port.limits.window_bytes = sum;
	return all;
}

/* The windows have so little memory in all that no link is made: logs that once. */
static void window_refuse(struct cdev_port *c, uint64_t bytes)
{
	if (!c->told)
		u_warn("port",
		       "port %s: its link stays down: its windows have %llu KiB in all, %llu KiB are "
		       "needed; raise window_bytes of viaduct.ko, or give the adapter larger windows",
		       c->view.port.limits.name, (unsigned long long)bytes >> 10,
		       (unsigned long long)U_CFG_WINDOW_BYTES_MIN >> 10);
	c->told = true;
}

/*
 * Ends the last generation of the link, and begins to greet in a new one, with scratchpads cleared and the
 * window measured; if that fails, the timer has it tried again, unless the window is too small.  Caller holds the lock.
 */
static void greet_begin(struct cdev_port *c, const struct viaduct_info *info)
{
	char text[U_FD_ERROR];
	uint64_t bytes;
	int err;

	link_lose(c);
	bytes = window_measure(c, info);
	if (bytes < U_CFG_WINDOW_BYTES_MIN) {
		window_refuse(c, bytes);
		return;
	}
	spads_clear(&c->view.port);
	cdev_ends_begin(&c->ends, c->view.fd);
	err = cdev_tables_begin(&c->tables, c->view.fd);
	cdev_timer_set(c, true); /* to greet, or to try again */
	if (err == 0) {
		atomic_store_explicit(&c->life, info->generation, memory_order_relaxed);
		c->phase = CDEV_GREETS;
		c->told = false;
	} else if (!c->told && err != -EAGAIN && err != -ENOTCONN) {
		c->told = true;
		u_warn("port", "port %s: its link stays down for want of a table in window 0: %s",
		       c->view.port.limits.name, u_fd_error(-err, text));
	}
}

/* The adapter was removed: logs that once, and watches its descriptor no longer. */
static void on_gone(struct cdev_port *c)
{
	if (!c->gone)
		u_warn("port", "port %s: its adapter was removed; its link stays down",
		       c->view.port.limits.name);
	c->gone = true;
	epoll_ctl(c->epoll_fd, EPOLL_CTL_DEL, c->view.fd, NULL);
}

/*
 * Updates the state of this port from the module's state of the link and the neighbour's table.  Caller holds
 * the lock.
 */
static void link_step(struct cdev_port *c)
{
	struct viaduct_info info;

	if (ioctl(c->view.fd, VIADUCT_GET_INFO, &info) != 0)
		return;
	if (info.link == VIADUCT_LINK_GONE)
		on_gone(c);
	if (info.link != VIADUCT_LINK_UP || !c->enabled) {
		link_lose(c);
		cdev_tables_end(&c->tables);
		cdev_timer_set(c, false);
		return;
	}
	if (c->phase == CDEV_DOWN || info.generation != c->life ||
	    (c->phase == CDEV_UP && !cdev_tables_stand(&c->tables)))
		greet_begin(c, &info);
	if (c->phase == CDEV_UP)
		cdev_offers_step(c);
	if (c->phase != CDEV_GREETS)
		return;
	if (cdev_tables_greet(&c->tables))
		link_gain(c);
	/* The neighbour may still take this for the generation before. */
	cdev_ring(&c->view.port, c->agent_bits);
}

/*
 * Enables or disables this side of the link.  Takes the lock.  0; or -errno of the module, and then disabling
 * counts nevertheless.
 */
static int link_set(struct cdev_port *c, bool enabled)
{
	struct viaduct_link link = { .enable = enabled };
	int err = 0;

	pthread_mutex_lock(&c->lock);
	if (c->enabled != enabled && ioctl(c->view.fd, VIADUCT_LINK, &link) != 0)
		err = -errno;
	if (!enabled || err == 0)
		c->enabled = enabled;
	link_step(c);
	pthread_mutex_unlock(&c->lock);
	return err;
}

static int port_link_on(struct port *p)
{
	return link_set(cdev_port(p), true);
}

static void port_link_off(struct port *p)
{
	link_set(cdev_port(p), false);
}

/*
 * Up only while the adapter's link is, and both tables stand.  A table that the neighbour has begun again ends
 * this generation; port_service() begins the next, for which this makes event_fd readable.
 */
static enum port_link port_state(struct port *p, uint32_t *generation_out)
{
	struct cdev_port *c = cdev_port(p);
	bool up = atomic_load_explicit(&c->up, memory_order_acquire);
	uint32_t life;

	if (generation_out != NULL)
		*generation_out = atomic_load_explicit(&c->generation, memory_order_acquire);
	if (up && cdev_view_link(&c->view, &life) == VIADUCT_LINK_UP &&
	    life == atomic_load_explicit(&c->life, memory_order_relaxed) &&
	    cdev_tables_stand(&c->tables)) {
		if (cdev_ends_wanted(&c->ends, &c->tables))
			notify(c);
		return PORT_LINK_UP;
	}
	if (up)
		notify(c);
	return PORT_LINK_DOWN;
}

static int port_events(struct port *p)
{
	return cdev_port(p)->epoll_fd;
}

/* Returns how often the link changed since the last call.  Takes the lock. */
static int port_serve(struct port *p)
{
	struct cdev_port *c = cdev_port(p);
	uint64_t count;
	int changes;

	pthread_mutex_lock(&c->lock);
	while (read(c->timer_fd, &count, sizeof(count)) > 0)
		;
	link_step(c);
	changes = (int)c->changes;
	c->changes = 0;
	while (read(c->event_fd, &count, sizeof(count)) > 0)
		;
	pthread_mutex_unlock(&c->lock);
	return changes;
}

/* ---- scratchpads ----------------------------------------------------------------------------- */

/* All ones also where the module refuses the access. */
static uint32_t port_pad_read(struct port *p, unsigned int idx)
{
	uint32_t value = UINT32_MAX;

	return spad_access(p, 0, idx, &value) == 0 ? value : UINT32_MAX;
}

static int port_pad_write(struct port *p, unsigned int idx, uint32_t v)
{
	return spad_access(p, VIADUCT_SPAD_WRITE, idx, &v);
}

/* All ones while the link is down. */
static uint32_t port_peer_pad_read(struct port *p, unsigned int idx)
{
	uint32_t value = UINT32_MAX;

	if (port_state(p, NULL) != PORT_LINK_UP)
		return UINT32_MAX;
	return spad_access(p, VIADUCT_SPAD_PEER, idx, &value) == 0 ? value : UINT32_MAX;
}

/* -ENOTCONN while the link is down. */
static int port_peer_pad_write(struct port *p, unsigned int idx, uint32_t v)
{
	if (port_state(p, NULL) != PORT_LINK_UP)
		return -ENOTCONN;
	return spad_access(p, VIADUCT_SPAD_PEER | VIADUCT_SPAD_WRITE, idx, &v);
}

/* Rings bits at the peer; does nothing while the link is down. */
static void port_ring(struct port *p, uint32_t bits)
{
	if (port_state(p, NULL) == PORT_LINK_UP)
		cdev_ring(p, bits);
}

/* ---- views ----------------------------------------------------------------------------------- */

/* Makes a view that can ring all bits but those of agents; its descriptor is valid until the next call. */
static int port_export(struct port *p, char *text, size_t size, int fds[PORT_ATTACH_FDS],
		       unsigned int *nfds_out)
{
	struct cdev_port *c = cdev_port(p);
	uint32_t bits = c->view.bits & ~c->agent_bits;
	struct viaduct_client client = { .ring_bits = bits };
	int err;

	pthread_mutex_lock(&c->lock);
	err = cdev_view_text(&c->view, bits, text, size);
	if (err == 0 && ioctl(c->view.fd, VIADUCT_CLIENT, &client) != 0)
		err = -errno;
	if (err == 0) {
		if (c->client_fd >= 0)
			close(c->client_fd);
		c->client_fd = client.fd;
		fds[0] = client.fd;
		*nfds_out = 1;
	}
	pthread_mutex_unlock(&c->lock);
	return err;
}

static void port_unexport(struct port *p, int fd)
{
	cdev_end(cdev_view(p)->fd, fd);
}

/* ---- making and closing ---------------------------------------------------------------------- */

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Takes the link down and frees the port, which may be made in part. */
static void port_end(struct port *p)
{
	struct cdev_port *c = cdev_port(p);

	port_link_off(p);
	cdev_tables_fini(&c->tables);
	cdev_ends_fini(&c->ends);
	cdev_list_clear(&c->own);
	cdev_view_fini(&c->view);
	close_fd(c->client_fd);
	close_fd(c->epoll_fd);
	close_fd(c->event_fd);
	close_fd(c->timer_fd);
	close_fd(c->view.fd);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

static const struct port_ops cdev_ops = {
	.slice_alloc = cdev_offer_alloc,
	.slice_free = cdev_offer_free,
	.slice_end = cdev_offer_end,
	.slice_share = cdev_offer_share,
	.memory_alloc = cdev_offer_memory,
	.peer_slice_open = cdev_offer_open,
	.map = cdev_map,
	.unmap = cdev_unmap,
	.flush = cdev_flush,
	.peer_db_ring = port_ring,
	.db_read = cdev_db_read,
	.db_clear = cdev_db_clear,
	.db_set_mask = cdev_db_set_mask,
	.db_clear_mask = cdev_db_clear_mask,
	.spad_read = port_pad_read,
	.spad_write = port_pad_write,
	.peer_spad_read = port_peer_pad_read,
	.peer_spad_write = port_peer_pad_write,
	.link_enable = port_link_on,
	.link_disable = port_link_off,
	.link_state = port_state,
	.event_fd = port_events,
	.service = port_serve,
	.export_view = port_export,
	.view_end = port_unexport,
	.close = port_end,
};

/* Returns `wanted`, but at most what is `there`; 0: all of that. */
static uint32_t at_most(uint32_t there, uint32_t wanted)
{
	return wanted != 0 && wanted < there ? wanted : there;
}

/* Makes these doorbell bits raise the interrupt object; does nothing for no bits.  0 or -errno. */
static int bind_irq(const struct cdev_port *c, uint32_t bits, int irq_fd)
{
	struct viaduct_bind bind = { .db_bits = bits, .eventfd = irq_fd };

	return bits == 0 || ioctl(c->view.fd, VIADUCT_BIND, &bind) == 0 ? 0 : -errno;
}

/* Lets epoll_fd report this descriptor.  0; or -errno, also if it is -1. */
static int watch(struct cdev_port *c, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN };

	return fd >= 0 && epoll_ctl(c->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0 ? 0 : -errno;
}

/*
 * Opens all event descriptors, which report the adapter, too.  0; or -errno, and port_end() closes those that
 * are open.
 */
static int events_open(struct cdev_port *c)
{
	int err;

	c->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	c->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	err = watch(c, c->view.fd);
	if (err == 0)
		err = watch(c, c->event_fd);
	return err != 0 ? err : watch(c, c->timer_fd);
}

/*
 * Sets up a port that has its descriptor: limits, tables, interrupts and events.  0; or -errno, and port_end()
 * is to free it.
 */
static int port_start(struct cdev_port *c, const struct port_cdev_cfg *cfg)
{
	struct viaduct_info info;
	uint32_t bits;
	int err;

	if (ioctl(c->view.fd, VIADUCT_GET_INFO, &info) != 0)
		return -errno;
	bits = at_most(cdev_bits(info.db_bits), cfg->port.db_bits);
	c->view.bits = bits >= 32 ? UINT32_MAX : (UINT32_C(1) << bits) - 1;
	c->agent_bits = cfg->port.agent_bits & c->view.bits;
	err = cdev_view_init(&c->view, &cdev_ops, cfg->irq, cfg->port.name, bits);
	if (err != 0)
		return err;
	c->view.port.limits.spads =
		at_most(info.spads < PORT_SPAD_MAX ? info.spads : PORT_SPAD_MAX, cfg->port.spads);
	c->window_most = cfg->port.window_bytes;
	cdev_tables_init(&c->tables, &c->view.port);
	err = bind_irq(c, c->view.bits & ~c->agent_bits, cfg->irq_fd);
	if (err == 0)
		err = bind_irq(c, c->agent_bits, cfg->agent_irq_fd);
	return err != 0 ? err : events_open(c);
}

int port_cdev_create(const struct port_cdev_cfg *cfg, struct port **out)
{
	struct cdev_port *c = calloc(1, sizeof(*c));
	uint32_t first;
	int err = port_ops_check(&cdev_ops);

	if (c == NULL || err != 0) {
		free(c);
		close(cfg->fd);
		return err != 0 ? err : -ENOMEM;
	}
	c->view.fd = cfg->fd;
	c->client_fd = c->epoll_fd = c->event_fd = c->timer_fd = c->tables.slice_fd = -1;
	pthread_mutex_init(&c->lock, NULL);
	u_random(&first, sizeof(first));
	/* A generation of an earlier agent must not come again soon. */
	atomic_store(&c->generation, first & 0x00ffffffu);
	err = port_start(c, cfg);
	if (err != 0) {
		port_end(&c->view.port);
		return err;
	}
	*out = &c->view.port;
	return 0;
}
