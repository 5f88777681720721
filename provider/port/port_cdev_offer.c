/* SPDX-License-Identifier: BSD-2-Clause */
/* cdev: slices that the agent's port offers to its peer, and those that it opens of the peer's. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "port_cdev_priv.h"
#include "u_fd.h"

#define STEP_NS 5000000 /* between two greetings, or two requests to end slices */

void cdev_timer_set(struct cdev_port *c, bool on)
{
	struct itimerspec its = { 0 };

	if (on == c->timed)
		return;
	c->timed = on;
	if (on)
		its.it_value.tv_nsec = its.it_interval.tv_nsec = STEP_NS;
	timerfd_settime(c->timer_fd, 0, &its, NULL);
}

/* The doorbell may get lost, so it is rung again until the answer is here. */
void cdev_offers_step(struct cdev_port *c)
{
	cdev_ends_serve(&c->ends, &c->tables, c->view.fd);
	cdev_ends_answered(c);
	if (c->ends.leaving != NULL) {
		cdev_ends_ask(&c->ends, &c->tables);
		cdev_ring(&c->view.port, c->agent_bits);
	}
	cdev_timer_set(c, c->ends.leaving != NULL);
}

static bool is_up(const struct cdev_port *c)
{
	return atomic_load_explicit(&c->up, memory_order_relaxed);
}

/*
 * Offers a slice of this host's window there, under an id that none of its others has.  Caller holds the lock.
 * 0; or -ENOBUFS, and the entry is still the caller's.
 */
static int slice_offer(struct cdev_port *c, struct cdev_slice *s, const struct cdev_place *place)
{
	int err;

	do {
		err = cdev_tables_offer(&c->tables, place, &s->id);
		if (err != 0)
			return err;
		if (cdev_list_find(c->own, s->id) == NULL)
			break;
		cdev_tables_withdraw(&c->tables, s->id);
	} while (true);
	s->offered = true;
	cdev_list_add(&c->own, s);
	return 0;
}

/*
 * Keeps a slice that is not offered: its id, which none of its others has, has a meaning on this host only.
 * Caller holds the lock.
 */
static void slice_keep(struct cdev_port *c, struct cdev_slice *s)
{
	do {
		s->id = ++c->memory_id;
	} while (s->id == 0 || cdev_list_find(c->own, s->id) != NULL);
	cdev_list_add(&c->own, s);
}

/*
 * Takes pages of the window.  *out is an entry in no list; place_out->fd is a descriptor for the caller, in
 * addition.  -ENOSPC: the window is full; -errno.
 */
static int slice_take(struct cdev_port *c, size_t len, struct cdev_slice **out,
		      struct viaduct_slice *place_out)
{
	struct viaduct_slice s = { .direction = VIADUCT_INBOUND, .len = len };
	struct cdev_slice *own;
	int err;

	if (ioctl(c->view.fd, VIADUCT_SLICE, &s) != 0)
		return errno == ENOBUFS ? -ENOSPC : -errno;
	own = cdev_slice_new(s.fd, s.len);
	if (own == NULL) {
		err = -errno;
		close(s.fd);
		return err;
	}
	own->counted = true;
	own->window = s.window;
	own->offset = s.offset;
	*out = own;
	*place_out = s;
	return 0;
}

/*
 * Takes pages of the window as an own slice, which is offered, or kept for later, and counts them.  The
 * descriptor in `out` is the caller's.  Caller holds the lock.  0 or -errno.
 */
static int slice_make(struct cdev_port *c, size_t len, bool offered, struct port_slice *out)
{
	struct viaduct_slice s = { 0 };
	struct cdev_slice *own = NULL;
	struct cdev_place place;
	int err = slice_take(c, len, &own, &s);

	if (err != 0)
		return err;
	place = (struct cdev_place){ .window = s.window, .offset = s.offset, .len = s.len };
	if (offered)
		err = slice_offer(c, own, &place);
	else
		slice_keep(c, own);
	if (err != 0) {
		cdev_slice_delete(own);
		close(s.fd);
		return err;
	}
	*out = (struct port_slice){ .id = own->id, .fd = s.fd, .len = (size_t)s.len };
	c->window_used += s.len;
	return 0;
}

/* As port_slice_alloc() if `offered`, else as port_memory_alloc().  Takes the lock. */
static int slice_alloc(struct port *p, size_t len, bool offered, struct port_slice *out)
{
	struct cdev_port *c = cdev_port(p);
	struct port_slice slice;
	uint64_t most;
	int err = -ENOSPC;

	if (len == 0)
		return -EINVAL;
	pthread_mutex_lock(&c->lock);
	most = p->limits.window_bytes;
	if (is_up(c))
		cdev_offers_step(c); /* pages may have come back */
	if (offered && !is_up(c))
		err = -ENOTCONN;
	else if (len <= most && c->window_used <= most &&
		 u_align_up(len, p->limits.slice_align) <= most - c->window_used)
		err = slice_make(c, u_align_up(len, p->limits.slice_align), offered, &slice);
	pthread_mutex_unlock(&c->lock);
	if (err == 0)
		*out = slice;
	return err;
}

int cdev_offer_alloc(struct port *p, size_t len, struct port_slice *out)
{
	return slice_alloc(p, len, true, out);
}

int cdev_offer_memory(struct port *p, size_t len, struct port_slice *out)
{
	return slice_alloc(p, len, false, out);
}

/*
 * Offers the slice of which `own` is the entry, and notes its place.  Caller holds the lock.  -EOPNOTSUPP: it
 * is no inbound slice of this port; -ERANGE: it is shorter than `len`; -ENOBUFS.
 */
static int slice_share(struct cdev_port *c, struct cdev_slice *own, size_t len, uint32_t *id_out)
{
	struct viaduct_slice s = { .fd = own->fd };
	struct cdev_place place;
	int err;

	if (ioctl(c->view.fd, VIADUCT_SLICE_INFO, &s) != 0 || s.direction != VIADUCT_INBOUND)
		return -EOPNOTSUPP;
	if (len > s.len)
		return -ERANGE;
	own->len = s.len;
	own->window = s.window;
	own->offset = s.offset;
	place = (struct cdev_place){ .window = s.window, .offset = s.offset, .len = s.len };
	err = slice_offer(c, own, &place);
	if (err == 0)
		*id_out = own->id;
	return err;
}

/*
 * Makes an entry for the slice, of `memory`, or of the window when that is NULL, and offers it under a new id.
 * The descriptor stays the caller's.  Caller holds the lock.  0 or -errno.
 */
static int entry_share(struct cdev_port *c, int slice_fd, size_t len, const struct stat *memory,
		       uint32_t *id_out)
{
	struct cdev_slice *own = cdev_slice_new(slice_fd, 0);
	bool first = memory != NULL && cdev_list_adopted(c->own, memory) == NULL;
	int err;

	if (own == NULL)
		return -errno;
	if (memory != NULL) {
		own->device = memory->st_dev;
		own->inode = memory->st_ino;
	}
	err = slice_share(c, own, len, id_out);
	if (err != 0) {
		cdev_slice_delete(own);
		return err;
	}
	own->counted = first;
	if (first)
		c->window_used += own->len;
	return 0;
}

/*
 * Counts the bytes of programs' memory that was freed here and that the neighbour may still reach;
 * memory counts once for each of its offers.
 */
static uint64_t adopted_leaving(const struct cdev_port *c)
{
	uint64_t sum = 0;

	for (const struct cdev_slice *s = c->ends.leaving; s != NULL; s = s->next)
		sum += s->inode != 0 ? s->len : 0;
	return sum;
}

/*
 * Makes the module put all of the memory behind the window.  Returns the descriptor, the caller's, of a slice
 * that keeps it there, or -errno: -ENOSPC without room.  Caller holds the lock.
 */
static int memory_adopt(struct cdev_port *c, int fd, const struct stat *memory)
{
	size_t len = (size_t)memory->st_size;
	uint64_t most = c->view.port.limits.window_bytes, used = c->window_used;
	struct viaduct_adopt a = { .len = len };
	void *at;
	int err = 0;

	if (len % c->view.port.limits.slice_align != 0)
		return -EOPNOTSUPP;
	used += adopted_leaving(c);
	if (used > most || len > most - used)
		return -ENOSPC;
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	a.address = (uintptr_t)at;
	if (ioctl(c->view.fd, VIADUCT_ADOPT, &a) != 0)
		err = errno == ENOTTY ? -EOPNOTSUPP : -errno;
	munmap(at, len);
	return err != 0 ? err : a.fd;
}

/*
 * Offers memory of a program.  All offers of it share one slice, which ends when the neighbour has ended the
 * last of them.  Caller holds the lock.  0; or -errno of emu_memfd_check(), memory_adopt() or the offer.
 */
static int memory_share(struct cdev_port *c, int fd, size_t len, uint32_t *id_out)
{
	struct cdev_slice *other;
	struct stat memory;
	int slice_fd, err = emu_memfd_check(fd, len);

	if (err != 0)
		return err;
	if (fstat(fd, &memory) != 0)
		return -errno;
	other = cdev_list_adopted(c->own, &memory);
	if (other == NULL)
		other = cdev_list_adopted(c->ends.leaving, &memory);
	if (other != NULL)
		return entry_share(c, other->fd, len, &memory, id_out);
	slice_fd = memory_adopt(c, fd, &memory);
	if (slice_fd < 0)
		return slice_fd;
	err = entry_share(c, slice_fd, len, &memory, id_out);
	close(slice_fd);
	return err;
}

/*
 * Shares memory of this port's own window or, where an IOMMU translates for the adapter, any
 * memory.
 */
int cdev_offer_share(struct port *p, int fd, size_t len, uint32_t *id_out)
{
	struct cdev_port *c = cdev_port(p);
	bool of_module = u_fd_of_module(fd, NULL);
	int err = -ENOTCONN;

	if (len == 0)
		return -EINVAL;
	pthread_mutex_lock(&c->lock);
	if (is_up(c)) {
		cdev_offers_step(c); /* places may have come back */
		err = of_module ? entry_share(c, fd, len, NULL, id_out)
				: memory_share(c, fd, len, id_out);
	}
	pthread_mutex_unlock(&c->lock);
	return err;
}

/*
 * Returns the room of the window that a slice took, unless its memory has other offers; then it is counted for
 * one of these.  The slice is in no list of own ones any more.
 */
static void uncount(struct cdev_port *c, const struct cdev_slice *s)
{
	struct stat memory = { .st_dev = s->device, .st_ino = s->inode };
	struct cdev_slice *other = s->inode != 0 ? cdev_list_adopted(c->own, &memory) : NULL;

	if (other != NULL)
		other->counted = true;
	else
		c->window_used -= s->len;
}

/* Takes back an own slice; ignores an unknown id.  `ends`: no process uses it any more.  Takes the lock. */
static void slice_drop(struct port *p, uint32_t id, bool ends)
{
	struct cdev_port *c = cdev_port(p);
	struct cdev_slice *s;

	pthread_mutex_lock(&c->lock);
	s = cdev_list_find(c->own, id);
	if (s != NULL) {
		cdev_list_take(&c->own, s);
		s->ends |= ends;
		if (s->counted)
			uncount(c, s);
		if (s->offered) {
			cdev_tables_withdraw(&c->tables, id);
			cdev_ends_leave(&c->ends, s);
			if (!is_up(c))
				cdev_slice_disown(s, c->own, c->view.fd);
		} else {
			cdev_own_delete(c, s);
		}
		if (is_up(c))
			cdev_offers_step(c);
	}
	pthread_mutex_unlock(&c->lock);
}

void cdev_offer_free(struct port *p, uint32_t id)
{
	slice_drop(p, id, false);
}

void cdev_offer_end(struct port *p, uint32_t id)
{
	slice_drop(p, id, true);
}

/*
 * Opens a slice at the place that the neighbour names, and uses the offer up; the module checks the place
 * against the adapter's window.  -ENOENT: it is not offered, the place is none, or the link is down; -ERANGE:
 * it is too short.  Caller holds the lock.
 */
static int slice_open(struct cdev_port *c, uint32_t id, size_t len, int *fd_out)
{
	struct viaduct_slice s = { .direction = VIADUCT_OUTBOUND };
	struct cdev_slice *opened;
	struct cdev_place place;
	int err = -ENOENT;

	if (is_up(c))
		err = cdev_tables_find(&c->tables, id, &place);
	if (err != 0)
		return err;
	if (len > place.len)
		return -ERANGE;
	cdev_offers_step(c); /* slices that the neighbour has freed no longer count */
	s.window = place.window;
	s.offset = place.offset;
	s.len = place.len;
	if (ioctl(c->view.fd, VIADUCT_SLICE, &s) != 0)
		return errno == EINVAL || errno == ERANGE || errno == ENOTCONN ? -ENOENT : -errno;
	opened = cdev_slice_new(s.fd, s.len);
	if (opened == NULL) {
		err = -errno;
		close(s.fd);
		return err;
	}
	opened->id = id;
	cdev_list_add(&c->ends.opened, opened);
	cdev_tables_take(&c->tables, id);
	*fd_out = s.fd;
	return 0;
}

int cdev_offer_open(struct port *p, uint32_t id, size_t len, int *fd_out)
{
	struct cdev_port *c = cdev_port(p);
	int err;

	pthread_mutex_lock(&c->lock);
	err = slice_open(c, id, len, fd_out);
	pthread_mutex_unlock(&c->lock);
	return err;
}
