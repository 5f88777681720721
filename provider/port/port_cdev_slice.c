/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cdev: lists of slices, and the end of those that the neighbour has opened.
 *
 * The pages of a slice that is freed are not used again before the neighbour's agent has ended its
 * outbound slice, whichever process maps that: the descriptor that is kept here holds them.  This
 * host asks for that in a fifo of the table in the neighbour's window, and the neighbour answers by
 * a count in this host's; both count from the nonce of the host that asks.  The next generation of
 * the link begins with all slices ended, so nothing is asked for then.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "port_cdev_priv.h"

struct cdev_slice *cdev_slice_new(int fd, uint64_t len)
{
	struct cdev_slice *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return NULL;
	s->len = len;
	s->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (s->fd < 0) {
		free(s);
		return NULL;
	}
	return s;
}

void cdev_slice_delete(struct cdev_slice *s)
{
	close(s->fd);
	free(s);
}

void cdev_list_add(struct cdev_slice **list, struct cdev_slice *s)
{
	s->next = *list;
	*list = s;
}

/* Appends a slice to the end of the list. */
static void list_append(struct cdev_slice **list, struct cdev_slice *s)
{
	while (*list != NULL)
		list = &(*list)->next;
	s->next = NULL;
	*list = s;
}

struct cdev_slice *cdev_list_find(struct cdev_slice *list, uint32_t id)
{
	while (list != NULL && list->id != id)
		list = list->next;
	return list;
}

struct cdev_slice *cdev_list_adopted(struct cdev_slice *list, const struct stat *memory)
{
	while (list != NULL && (list->inode == 0 || list->inode != memory->st_ino ||
				list->device != memory->st_dev))
		list = list->next;
	return list;
}

void cdev_list_take(struct cdev_slice **list, struct cdev_slice *s)
{
	while (*list != s)
		list = &(*list)->next;
	*list = s->next;
}

void cdev_list_clear(struct cdev_slice **list)
{
	struct cdev_slice *s;

	while ((s = *list) != NULL) {
		*list = s->next;
		cdev_slice_delete(s);
	}
}

void cdev_end(int port_fd, int fd)
{
	struct viaduct_end end = { .fd = fd };

	/*
	 * Fails when the adapter is gone, and its slices with it, or for memory of a program to
	 * which the adapter may lead for ever: that stays pinned, whatever is done here.
	 */
	ioctl(port_fd, VIADUCT_END, &end);
}

/* ---- this host's slices, which the neighbour is to end ---------------------------------------- */

void cdev_ends_ask(struct cdev_ends *e, struct cdev_tables *t)
{
	struct cdev_slice *s = e->leaving;

	if (e->asked == e->answered + CDEV_ENDS_MAX)
		return;
	for (uint32_t n = e->answered; s != NULL && n != e->asked; n++)
		s = s->next;
	for (; s != NULL && e->asked != e->answered + CDEV_ENDS_MAX; s = s->next)
		cdev_tables_end_ask(t, e->asked++, s->id);
	cdev_tables_end_tell(t, e->asked);
}

void cdev_ends_leave(struct cdev_ends *e, struct cdev_slice *s)
{
	list_append(&e->leaving, s);
}

/* Returns an entry of the list that has the same place in the windows, or NULL. */
static struct cdev_slice *same_slice(struct cdev_slice *list, const struct cdev_slice *s)
{
	while (list != NULL && (list->window != s->window || list->offset != s->offset))
		list = list->next;
	return list;
}

void cdev_own_delete(struct cdev_port *c, struct cdev_slice *s)
{
	struct cdev_slice *other = same_slice(c->own, s);

	if (other == NULL)
		other = same_slice(c->ends.leaving, s);
	if (s->ends && other != NULL)
		other->ends = true;
	else if (s->ends)
		cdev_end(c->view.fd, s->fd);
	cdev_slice_delete(s);
}

/* Deletes the slice that was freed first, of at least one; it does not count as answered. */
static void leaving_delete(struct cdev_port *c)
{
	struct cdev_slice *s = c->ends.leaving;

	c->ends.leaving = s->next;
	cdev_own_delete(c, s);
}

void cdev_ends_answered(struct cdev_port *c)
{
	uint32_t answered = cdev_tables_ended(&c->tables);
	struct cdev_ends *e = &c->ends;

	if (answered - e->answered > e->asked - e->answered)
		return; /* not of this generation, or false */
	while (e->answered != answered) {
		leaving_delete(c);
		e->answered++;
	}
}

void cdev_slice_disown(const struct cdev_slice *s, struct cdev_slice *own, int port_fd)
{
	struct stat memory = { .st_dev = s->device, .st_ino = s->inode };

	if (s->inode != 0 && cdev_list_adopted(own, &memory) == NULL)
		cdev_end(port_fd, s->fd);
}

void cdev_ends_disown(const struct cdev_ends *e, struct cdev_slice *own, int port_fd)
{
	for (const struct cdev_slice *s = e->leaving; s != NULL; s = s->next)
		cdev_slice_disown(s, own, port_fd);
}

/* ---- the neighbour's slices, which this agent has opened -------------------------------------- */

/*
 * Returns how many requests of the neighbour are not served yet; one that is too high is not of this generation, or
 * false, and counts as none.
 */
static uint32_t wanted(const struct cdev_ends *e, const struct cdev_tables *t)
{
	uint32_t n =
		cdev_tables_end_wanted(t) - atomic_load_explicit(&e->served, memory_order_relaxed);

	return n <= CDEV_ENDS_MAX ? n : 0;
}

bool cdev_ends_wanted(const struct cdev_ends *e, const struct cdev_tables *t)
{
	return wanted(e, t) != 0;
}

void cdev_ends_serve(struct cdev_ends *e, struct cdev_tables *t, int port_fd)
{
	uint32_t n = wanted(e, t), at = atomic_load_explicit(&e->served, memory_order_relaxed);
	struct cdev_slice *s;

	if (n == 0)
		return;
	for (; n > 0; n--) {
		s = cdev_list_find(e->opened, cdev_tables_end_id(t, at++));
		if (s == NULL)
			continue;
		cdev_list_take(&e->opened, s);
		cdev_end(port_fd, s->fd);
		cdev_slice_delete(s);
	}
	atomic_store_explicit(&e->served, at, memory_order_relaxed);
	cdev_tables_end_answer(t, at);
}

/* ---- the link ---------------------------------------------------------------------------------- */

void cdev_ends_begin(struct cdev_ends *e, int port_fd)
{
	for (struct cdev_slice *s = e->opened; s != NULL; s = s->next)
		cdev_end(port_fd, s->fd);
	cdev_list_clear(&e->opened);
}

void cdev_ends_begun(struct cdev_port *c)
{
	const struct cdev_tables *t = &c->tables;
	struct cdev_ends *e = &c->ends;

	while (e->leaving != NULL)
		leaving_delete(c);
	e->asked = e->answered = t->nonce;
	atomic_store_explicit(&e->served,
			      atomic_load_explicit(&t->peer_nonce, memory_order_relaxed),
			      memory_order_relaxed);
}

void cdev_ends_fini(struct cdev_ends *e)
{
	cdev_list_clear(&e->opened);
	cdev_list_clear(&e->leaving);
}
