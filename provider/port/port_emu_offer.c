/* SPDX-License-Identifier: BSD-2-Clause */
/* emu: slices that the agent's port offers to its peer, and those that it opens of the peer's. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "port_emu_priv.h"

/* Returns an id that none of this host's own slices has; never 0. */
static uint32_t fresh_id(struct emu_port *e)
{
	do {
		e->next_id++;
	} while (e->next_id == 0 || emu_slices_find(&e->own, e->next_id) != NULL);
	return e->next_id;
}

/*
 * Offers a slice: sends the descriptor over the cable and marks it as unopened; for `self`, puts a duplicate
 * into the table of offers.  0 or -errno; -ENOBUFS: too many are not opened yet.
 */
static int slice_offer(struct emu_port *e, struct emu_slice *slice, int fd)
{
	struct emu_slice offer = *slice;
	int err;

	if (!e->self) {
		if (e->unopened >= EMU_OFFERS_MAX)
			return -ENOBUFS;
		slice->unopened = true;
		return emu_cable_offer(e, slice->id, slice->len, fd);
	}
	offer.fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (offer.fd < 0)
		return -errno;
	err = emu_slices_add(&e->offers, &offer);
	if (err != 0)
		close(offer.fd);
	return err;
}

/*
 * Offers memory to the peer under a new id; `fd` stays the caller's.  `counted`: freeing it gives room of the
 * window back.  0; or -errno, and nothing is entered.
 */
static int slice_enter(struct emu_port *e, int fd, size_t len, bool counted, uint32_t *id_out)
{
	struct emu_slice slice = { .id = fresh_id(e), .fd = -1, .len = len, .counted = counted };
	struct emu_slice *entered;
	uint32_t id = slice.id;
	int err = emu_slices_add(&e->own, &slice);

	if (err != 0)
		return err;
	entered = emu_slices_find(&e->own, id);
	err = slice_offer(e, entered, fd);
	if (err != 0) {
		emu_slices_del(&e->own, entered);
		return err;
	}
	e->unopened += entered->unopened;
	*id_out = id;
	return 0;
}

/* Makes memory, offers it, and counts it as used of the window.  0 or -errno. */
static int slice_make(struct emu_port *e, size_t len, struct port_slice *out)
{
	struct port_slice slice = { .len = len };
	int err = emu_memfd("viaduct-slice", len, &slice.fd);

	if (err != 0)
		return err;
	err = slice_enter(e, slice.fd, len, true, &slice.id);
	if (err != 0) {
		close(slice.fd);
		return err;
	}
	e->window_used += len;
	*out = slice;
	return 0;
}

int emu_offer_alloc(struct port *p, size_t len, struct port_slice *out)
{
	struct emu_port *e = emu_port(p);
	int err;

	if (len == 0)
		return -EINVAL;
	pthread_mutex_lock(&e->lock);
	if (len > p->limits.window_bytes)
		err = -ENOSPC;
	else if (u_align_up(len, EMU_SLICE_ALIGN) > p->limits.window_bytes - e->window_used)
		err = -ENOSPC;
	else
		err = slice_make(e, u_align_up(len, EMU_SLICE_ALIGN), out);
	pthread_mutex_unlock(&e->lock);
	return err;
}

int emu_offer_share(struct port *p, int fd, size_t len, uint32_t *id_out)
{
	struct emu_port *e = emu_port(p);
	int err = len == 0 ? -EINVAL : emu_memfd_check(fd, len);

	if (err != 0)
		return err;
	pthread_mutex_lock(&e->lock);
	err = slice_enter(e, fd, len, false, id_out);
	pthread_mutex_unlock(&e->lock);
	return err;
}

/* Takes back an offer that nobody has opened yet; does nothing for one that was opened. */
static void slice_withdraw(struct emu_port *e, const struct emu_slice *slice)
{
	struct emu_msg msg = emu_msg(EMU_FREE);
	struct emu_slice *offer;

	if (e->self) {
		offer = emu_slices_find(&e->offers, slice->id);
		if (offer != NULL)
			emu_slices_del(&e->offers, offer);
	} else if (slice->unopened) {
		e->unopened--;
		msg.id = slice->id;
		emu_cable_say(e, &msg);
	}
}

void emu_offer_free(struct port *p, uint32_t id)
{
	struct emu_port *e = emu_port(p);
	struct emu_slice *slice;
	struct emu_slice gone;

	pthread_mutex_lock(&e->lock);
	slice = emu_slices_find(&e->own, id);
	if (slice != NULL) {
		gone = *slice;
		emu_slices_del(&e->own, slice);
		if (gone.counted)
			e->window_used -= gone.len;
		slice_withdraw(e, &gone);
	}
	pthread_mutex_unlock(&e->lock);
}

/*
 * Takes an offer of the peer, which then cannot be opened again, and tells the peer so.  Returns its
 * descriptor, which is the caller's.
 */
static int slice_take(struct emu_port *e, struct emu_slice *offer)
{
	struct emu_msg msg = emu_msg(EMU_OPENED);
	int fd = offer->fd;

	offer->fd = -1;
	msg.id = offer->id;
	emu_slices_del(&e->offers, offer);
	emu_cable_say(e, &msg);
	return fd;
}

/* The offer was sent before anybody could name it, so it is here or still in the cable. */
int emu_offer_open(struct port *p, uint32_t id, size_t len, int *fd_out)
{
	struct emu_port *e = emu_port(p);
	struct emu_slice *offer;
	int err = 0;

	pthread_mutex_lock(&e->lock);
	offer = emu_slices_find(&e->offers, id);
	if (offer == NULL) {
		emu_cable_input(e, EMU_BACKLOG_MAX);
		offer = emu_slices_find(&e->offers, id);
	}
	if (offer == NULL)
		err = -ENOENT;
	else if (len > offer->len)
		err = -ERANGE;
	else
		*fd_out = slice_take(e, offer);
	pthread_mutex_unlock(&e->lock);
	return err;
}
