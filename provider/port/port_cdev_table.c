/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * cdev: the tables of two agents in each other's windows.
 *
 * A store into a window that is not ready yet is lost, and neither side can know when the other's
 * is.  So each repeats its greeting until it is answered: a table is emptied before its owner says
 * hello, and an answer proves that the hello arrived, so later stores are not lost.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "port_cdev_priv.h"
#include "u_random.h"
#include "u_time.h"

#define SLOT_BITS 10u
static_assert(CDEV_OFFERS_MAX == 1u << SLOT_BITS, "slots");

/* Returns this host's table, which the neighbour writes. */
static struct cdev_table *mine(const struct cdev_tables *t)
{
	return t->in.base;
}

/* Returns the neighbour's table, into which this host stores. */
static struct cdev_table *yours(const struct cdev_tables *t)
{
	return t->out.base;
}

static uint32_t slot_of(uint32_t id)
{
	return id % CDEV_OFFERS_MAX;
}

/* Returns a random word, never 0 or all ones. */
static uint32_t random_word(void)
{
	uint32_t r;

	do {
		u_random(&r, sizeof(r));
		/* the values that an empty table and a dead link give */
	} while (r == 0 || r == UINT32_MAX);
	return r;
}

void cdev_tables_init(struct cdev_tables *t, struct port *p)
{
	memset(t, 0, sizeof(*t));
	t->port = p;
	t->slice_fd = -1;
	t->count = random_word();
}

void cdev_tables_end(struct cdev_tables *t)
{
	port_unmap(t->port, &t->out);
	atomic_store_explicit(&t->peer_nonce, 0, memory_order_relaxed);
}

void cdev_tables_fini(struct cdev_tables *t)
{
	cdev_tables_end(t);
	port_unmap(t->port, &t->in);
	if (t->slice_fd >= 0)
		close(t->slice_fd);
	t->slice_fd = -1;
}

/*
 * Maps this host's table, unless it is mapped: the first slice of a port.  -EAGAIN: the table of an agent that ended
 * a moment ago is in that place until the kernel has cleaned up after it.
 */
static int table_make(struct cdev_tables *t, int port_fd)
{
	struct viaduct_slice s = { .direction = VIADUCT_INBOUND, .len = sizeof(struct cdev_table) };
	int err;

	if (t->in.base != NULL)
		return 0;
	if (ioctl(port_fd, VIADUCT_SLICE, &s) != 0)
		return -errno;
	err = s.window == 0 && s.offset == 0
		      ? port_map(t->port, s.fd, sizeof(struct cdev_table), PORT_INBOUND, &t->in)
		      : -EAGAIN;
	if (err == 0)
		t->slice_fd = s.fd;
	else
		close(s.fd);
	return err;
}

/* Maps the neighbour's table again.  0; or -errno, and it is not mapped. */
static int table_open(struct cdev_tables *t, int port_fd)
{
	struct viaduct_slice s = { .direction = VIADUCT_OUTBOUND,
				   .len = sizeof(struct cdev_table) };
	int err;

	port_unmap(t->port, &t->out);
	if (ioctl(port_fd, VIADUCT_SLICE, &s) != 0)
		return -errno;
	err = port_map(t->port, s.fd, sizeof(struct cdev_table), PORT_OUTBOUND, &t->out);
	close(s.fd);
	return err;
}

int cdev_tables_begin(struct cdev_tables *t, int port_fd)
{
	int err = table_make(t, port_fd);

	if (err == 0)
		err = table_open(t, port_fd);
	if (err != 0)
		return err;
	memset(t->in.base, 0, sizeof(struct cdev_table));
	memset(t->mine, 0, sizeof(t->mine));
	memset(t->taken, 0, sizeof(t->taken));
	atomic_store_explicit(&t->peer_nonce, 0, memory_order_relaxed);
	t->nonce = random_word();
	return 0;
}

bool cdev_tables_greet(struct cdev_tables *t)
{
	uint32_t magic = atomic_load_explicit(&mine(t)->magic, memory_order_acquire);
	uint32_t hello = atomic_load_explicit(&mine(t)->hello, memory_order_acquire);

	hello = magic == CDEV_TABLE_MAGIC ? hello : 0;
	atomic_store_explicit(&t->peer_nonce, hello, memory_order_relaxed);
	u_out_store32(&t->out.out, &yours(t)->magic, CDEV_TABLE_MAGIC);
	u_out_store32(&t->out.out, &yours(t)->ack, hello);
	u_out_fence(&t->out.out);
	u_out_store32(&t->out.out, &yours(t)->hello, t->nonce);
	u_out_fence(&t->out.out);
	return hello != 0 && atomic_load_explicit(&mine(t)->ack, memory_order_acquire) == t->nonce;
}

bool cdev_tables_stand(const struct cdev_tables *t)
{
	return atomic_load_explicit(&mine(t)->hello, memory_order_acquire) ==
	       atomic_load_explicit(&t->peer_nonce, memory_order_relaxed);
}

/* Finds a slot whose offer was opened or that has none; -ENOBUFS: there is none. */
static int slot_find(struct cdev_tables *t, uint32_t *slot_out)
{
	uint32_t slot, n;

	for (n = 0; n < CDEV_OFFERS_MAX; n++) {
		slot = slot_of(t->count + n);
		if (t->mine[slot] == 0 ||
		    atomic_load_explicit(&mine(t)->opened[slot], memory_order_acquire) ==
			    t->mine[slot]) {
			*slot_out = slot;
			return 0;
		}
	}
	return -ENOBUFS;
}

int cdev_tables_offer(struct cdev_tables *t, const struct cdev_place *place, uint32_t *id_out)
{
	const struct u_out *out = &t->out.out;
	uint32_t slot = 0, id;
	int err = slot_find(t, &slot);

	if (err != 0)
		return err;
	do {
		t->count++;
		id = t->count << SLOT_BITS | slot;
	} while (id == 0 || id == t->mine[slot]);
	u_out_store32(out, &yours(t)->offer[slot].id, 0);
	u_out_fence(out);
	u_out_store32(out, &yours(t)->offer[slot].window, place->window);
	u_out_store64(out, &yours(t)->offer[slot].offset, place->offset);
	u_out_store64(out, &yours(t)->offer[slot].len, place->len);
	u_out_fence(out);
	u_out_store32(out, &yours(t)->offer[slot].id, id);
	u_out_fence(out);
	t->mine[slot] = id;
	*id_out = id;
	return 0;
}

void cdev_tables_withdraw(struct cdev_tables *t, uint32_t id)
{
	uint32_t slot = slot_of(id);

	if (t->mine[slot] != id)
		return;
	t->mine[slot] = 0;
	if (t->out.base == NULL)
		return;
	u_out_store32(&t->out.out, &yours(t)->offer[slot].id, 0);
	u_out_fence(&t->out.out);
}

/* Loads the id before and after the rest, which changes only while the id is 0. */
int cdev_tables_find(struct cdev_tables *t, uint32_t id, struct cdev_place *out)
{
	uint32_t slot = slot_of(id);
	struct cdev_place place;

	if (id == 0 || t->taken[slot] == id ||
	    atomic_load_explicit(&mine(t)->offer[slot].id, memory_order_acquire) != id)
		return -ENOENT;
	place.window = atomic_load_explicit(&mine(t)->offer[slot].window, memory_order_acquire);
	place.offset = atomic_load_explicit(&mine(t)->offer[slot].offset, memory_order_acquire);
	place.len = atomic_load_explicit(&mine(t)->offer[slot].len, memory_order_acquire);
	if (atomic_load_explicit(&mine(t)->offer[slot].id, memory_order_acquire) != id)
		return -ENOENT;
	*out = place;
	return 0;
}

void cdev_tables_take(struct cdev_tables *t, uint32_t id)
{
	t->taken[slot_of(id)] = id;
	u_out_store32(&t->out.out, &yours(t)->opened[slot_of(id)], id);
	u_out_fence(&t->out.out);
}

/* ---- ends ------------------------------------------------------------------------------------ */

void cdev_tables_end_ask(struct cdev_tables *t, uint32_t n, uint32_t id)
{
	u_out_store32(&t->out.out, &yours(t)->end[n % CDEV_ENDS_MAX], id);
}

void cdev_tables_end_tell(struct cdev_tables *t, uint32_t count)
{
	u_out_fence(&t->out.out);
	u_out_store32(&t->out.out, &yours(t)->ends, count);
	u_out_fence(&t->out.out);
}

uint32_t cdev_tables_ended(const struct cdev_tables *t)
{
	return atomic_load_explicit(&mine(t)->ended, memory_order_acquire);
}

uint32_t cdev_tables_end_wanted(const struct cdev_tables *t)
{
	return atomic_load_explicit(&mine(t)->ends, memory_order_acquire);
}

uint32_t cdev_tables_end_id(const struct cdev_tables *t, uint32_t n)
{
	return atomic_load_explicit(&mine(t)->end[n % CDEV_ENDS_MAX], memory_order_acquire);
}

void cdev_tables_end_answer(struct cdev_tables *t, uint32_t count)
{
	u_out_store32(&t->out.out, &yours(t)->ended, count);
	u_out_fence(&t->out.out);
}
