/* SPDX-License-Identifier: BSD-2-Clause */
/* The link: both ends learn that it went down and came up, as another one; and what a view of a process may not do. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "pst_priv.h"

#define DOWN_NS INT64_C(300000000)

/* ---- a view ------------------------------------------------------------------------------------- */

/* Attaches to this end's port as a process of this host does. */
static int view_attach(struct pst *s, struct port **out)
{
	char text[PORT_VIEW_MAX];
	int fds[PORT_ATTACH_FDS], own[PORT_ATTACH_FDS];
	unsigned int n;
	int err = port_export_view(s->port, text, sizeof(text), fds, &n);

	if (err != 0)
		return err;
	for (unsigned int i = 0; i < n; i++)
		own[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
	err = port_attach(text, own, n, s->port->irq, out);
	for (unsigned int i = 0; err != 0 && i < n; i++)
		close(own[i]);
	return err;
}

/* Is all refused that is the agent's, and is it without effect? */
static void view_check(struct pst *s, struct port *view, struct pst_counts *c)
{
	uint32_t before = port_spad_read(s->port, 0);
	struct port_slice slice;
	uint32_t id;
	int fd;
	const bool kept[] = {
		port_spad_write(view, 0, before ^ 1) == -EPERM,
		port_peer_spad_write(view, 0, 1) == -EPERM,
		port_spad_read(view, 0) == UINT32_MAX,
		port_peer_spad_read(view, 0) == UINT32_MAX,
		port_slice_alloc(view, 4096, &slice) == -EPERM,
		port_slice_share(view, s->data.own.fd, 4096, &id) == -EPERM,
		port_peer_slice_open(view, 1, 4096, &fd) == -EPERM,
		port_link_enable(view) == -EPERM,
		port_spad_read(s->port, 0) == before,
	};

	port_link_disable(view);
	for (unsigned int i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		c->tried++;
		if (!kept[i])
			pst_wrong(c, PST_WHY_VIEW_MAY, i);
	}
	if (port_link_state(s->port, NULL) != PORT_LINK_UP ||
	    port_link_state(view, NULL) != PORT_LINK_UP)
		pst_wrong(c, PST_WHY_VIEW_MAY, c->tried);
}

/* Each end tries a view of its own port. */
int pst_view_both(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	struct port *view;
	int err;

	if (s->judge == job->judge_writes)
		return 0;
	err = view_attach(s, &view);
	if (err != 0)
		return err;
	view_check(s, view, c);
	port_close(view);
	return 0;
}

/* ---- the link ----------------------------------------------------------------------------------- */

/* Goes on serving the port for a time, also while the link is down. */
static void serve_for(struct pst *s, int64_t ns)
{
	struct pst_wait w = pst_wait_begin(ns);

	while (pst_poll(s, &w) != -ETIMEDOUT)
		;
}

/* Waits until the link is up in another generation.  -ETIMEDOUT: it is not. */
static int link_again(struct pst *s, uint32_t before)
{
	struct pst_wait w = pst_wait_begin(s->cfg->gone_ns);
	uint32_t generation;

	while (port_link_state(s->port, &generation) != PORT_LINK_UP || generation == before) {
		if (pst_poll(s, &w) == -ETIMEDOUT)
			return -ETIMEDOUT;
	}
	return 0;
}

/* The link was taken down: it says so, and scratchpads of the peer are out of reach. */
static void down_check(struct pst *s, struct pst_counts *c)
{
	c->tried++;
	if (port_link_state(s->port, NULL) != PORT_LINK_DOWN)
		pst_wrong(c, PST_WHY_LINK_STILL_UP, 0);
	if (port_peer_spad_write(s->port, 0, 1) != -ENOTCONN ||
	    port_peer_spad_read(s->port, 0) != UINT32_MAX)
		pst_wrong(c, PST_WHY_LINK_REACHES, 0);
	port_peer_db_ring(s->port, 1);
}

/* Stops all that would be stored while the link is down. */
static uint32_t quiet(struct pst *s)
{
	uint32_t generation;

	port_link_state(s->port, &generation);
	s->said_any = false;
	s->pads_restate = false;
	return generation;
}

/* Takes the link down and brings it up again. */
int pst_link_write(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	uint32_t before, now;
	int err = pst_step_hear(s, 1);

	(void)job;
	if (err != 0)
		return err;
	before = quiet(s);
	port_link_disable(s->port);
	down_check(s, c);
	serve_for(s, DOWN_NS);
	err = port_link_enable(s->port);
	if (err != 0)
		return err;
	/* A link whose generation stays is found here, too, so it is not waited for. */
	err = pst_join(s);
	port_link_state(s->port, &now);
	if (err == 0 && now == before)
		pst_wrong(c, PST_WHY_LINK_GENERATION, now);
	return err;
}

/*
 * Sees it.  The peer begins to exchange slices again when it is up: if this end has not seen a change lost_ns
 * after that, it has missed it.
 */
int pst_link_read(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	struct pst_wait w = pst_wait_begin(s->cfg->gone_ns);
	uint32_t before, now;
	bool told = false, down = false, rejoins = false;
	int err = 0;

	(void)job;
	port_link_state(s->port, &before);
	pst_step_say(s, 1);
	while (err != -ETIMEDOUT && !told) {
		err = pst_poll(s, &w);
		down = down || port_link_state(s->port, &now) != PORT_LINK_UP;
		if (down && s->said_any)
			quiet(s);
		told = down || now != before;
		if (!rejoins && pst_peer_rejoins(s)) {
			rejoins = true;
			w = pst_wait_begin(s->cfg->lost_ns);
		}
	}
	c->tried++;
	if (!told)
		pst_wrong(c, PST_WHY_LINK_UNTOLD, 0);
	else if (link_again(s, before) != 0)
		pst_wrong(c, PST_WHY_LINK_GENERATION, before);
	return pst_join(s);
}
