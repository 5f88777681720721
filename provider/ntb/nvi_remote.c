/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This end asks for a mapping by the messages of grants (struct w_grant) under a number of its own, and the owner
 * takes it back by them.  The memory is of this host, so the port maps it as inbound memory, which may be loaded;
 * decorators do not delay stores into it.
 *
 * The program may be loading or storing when the right ends.  So the range stays mapped: private memory that was
 * mapped elsewhere is moved over it (mremap()), and a thread that accesses a page during the move waits in the kernel
 * and finds the new page.  Unlike mmap() this needs no memory once it has begun, so it cannot fail in the middle.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "nvi_grant.h"
#include "nvi_remote.h"
#include "nvi_req.h"
#include "u_log.h"
#include "u_maps.h"
#include "u_time.h"

#define ANSWER_NS INT64_C(5000000000)
#define NAP_NS 1000000
/*
 * The request is repeated after this time, then after twice as long, and so on: agents drop
 * messages about a connection while one end does not know that it is made.
 */
#define AGAIN_NS INT64_C(10000000)
#define PAGE 4096u

enum state { ASKED, HELD, LOST };

/* A mapping, from its request on; in ch->remotes, under tx_lock. */
struct nvi_remote {
	struct nvi_remote *next;
	uint64_t number; /* in messages, and the token of the request that waits */
	uint32_t handle;
	enum state state;
	uint64_t addr, length; /* at the peer */
	struct port_map map;   /* from the beginning of the slice on; its length is 0 while ASKED */
	void *at;	       /* the pointer that the program got */
};

/* Returns the place of the mapping with this number, which holds NULL when there is none. */
static struct nvi_remote **find(struct nvi_chan *ch, uint64_t number)
{
	struct nvi_remote **at = &ch->remotes;

	while (*at != NULL && (*at)->number != number)
		at = &(*at)->next;
	return at;
}

/* Removes and frees the mapping at this place, and unmaps its memory if it has some; tells nobody. */
static void remove_remote(struct nvi_chan *ch, struct nvi_remote **at)
{
	struct nvi_remote *r = *at;

	*at = r->next;
	if (r->state != ASKED)
		port_unmap(ch->port, &r->map);
	free(r);
}

/* Wakes the thread that waits for the answer, which gets `err`.  Does nothing if none waits.  Takes ctl_lock. */
static void answer(struct nvi_nic *nic, const struct nvi_remote *r, int err)
{
	struct nvi_req *req;

	pthread_mutex_lock(&nic->ctl_lock);
	req = nvi_req_find(nic, r->number);
	if (req != NULL && !req->done)
		nvi_req_finish(req, NULL, err);
	pthread_mutex_unlock(&nic->ctl_lock);
}

/* ---- the end of the right --------------------------------------------------------------------- */

/* Replaces the peer's memory by private memory.  0; or -errno, and the peer's memory is still mapped. */
static int exchange(const struct nvi_remote *r)
{
	size_t len = u_align_up(r->map.len, PAGE);
	void *fresh = mmap(NULL, len, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int err;

	if (fresh == MAP_FAILED)
		return -errno;
	madvise(fresh, len, MADV_DONTFORK);
	if (u_maps_move(fresh, len, len, r->map.base) != MAP_FAILED)
		return 0;
	err = -errno;
	munmap(fresh, len);
	return err;
}

/*
 * Ends access to the peer's memory; `r` is not ASKED.  True also if that was done before.  False: it is still mapped.
 */
static bool lose(struct nvi_nic *nic, struct nvi_remote *r)
{
	int err;

	if (r->state == LOST)
		return true;
	err = exchange(r);
	if (err != 0) {
		u_log_ratelimited(&nic->held, "memory of a peer stays mapped: %s", strerror(-err));
		return false;
	}
	r->state = LOST;
	return true;
}

void nvi_remotes_lose(struct nvi_chan *ch)
{
	for (struct nvi_remote *r = ch->remotes; r != NULL; r = r->next) {
		if (r->state == ASKED)
			answer(ch->nic, r, -EISCONN);
		else
			lose(ch->nic, r);
	}
}

void nvi_remotes_end(struct nvi_chan *ch)
{
	while (ch->remotes != NULL) {
		if (ch->remotes->state == ASKED)
			answer(ch->nic, ch->remotes, -EISCONN);
		remove_remote(ch, &ch->remotes);
	}
}

/* ---- messages of the owner ------------------------------------------------------------------- */

/*
 * Maps the memory that the owner gave, for the program.  -EINVAL: it is not what was asked for; -EMFILE: `fd` is -1.
 * The descriptor stays the caller's.
 */
static int hold(struct nvi_chan *ch, struct nvi_remote *r, const struct w_grant *m, int fd)
{
	uint64_t offset = r->addr - m->base;
	int err;

	if (m->length > SIZE_MAX / 2 || r->addr < m->base ||
	    !u_range_ok(offset, r->length, m->length))
		return -EINVAL;
	if (fd < 0)
		return -EMFILE;
	err = port_map(ch->port, fd, offset + r->length, PORT_INBOUND, &r->map);
	if (err != 0)
		return err;
	madvise(r->map.base, u_align_up(r->map.len, PAGE), MADV_DONTFORK);
	r->at = (uint8_t *)r->map.base + offset;
	r->state = HELD;
	return 0;
}

/* Returns the error for a W_DENY_...: -EOPNOTSUPP: cannot be mapped, -ENOSPC: too many mappings, else -EINVAL. */
static int deny_errno(uint64_t reason)
{
	switch (reason) {
	case W_DENY_NO_WINDOW:
		return -EOPNOTSUPP;
	case W_DENY_NO_ROOM:
		return -ENOSPC;
	default:
		return -EINVAL;
	}
}

/* Handles GIVE; a second one, to a request that was repeated, changes nothing. */
void nvi_remote_on_give(struct nvi_nic *nic, struct nvi_chan *ch, const struct w_grant *m,
			uint64_t conn, int fd)
{
	struct vi_vi *vi = ch->vi;
	struct nvi_remote *r;
	bool unwanted;
	int err;

	u_biased_take(&vi->tx_lock);
	r = nvi_chan_is_live(nic, ch, conn) ? *find(ch, m->map) : NULL;
	unwanted = r == NULL;
	if (r != NULL && r->state == ASKED) {
		err = m->kind == W_GRANT_GIVE ? hold(ch, r, m, fd) : deny_errno(m->base);
		unwanted = err != 0;
		answer(nic, r, err);
	}
	u_biased_drop(&vi->tx_lock);
	if (m->kind == W_GRANT_GIVE && unwanted)
		nvi_grant_tell_about(nic, conn, W_GRANT_GONE, m->handle, m->map);
}

/*
 * Handles TAKE.  It is also the answer to a request while the owner changes rights: then the
 * request is made again.
 */
void nvi_remote_on_take(struct nvi_nic *nic, struct nvi_chan *ch, const struct w_grant *m,
			uint64_t conn)
{
	struct vi_vi *vi = ch->vi;
	struct nvi_remote *r;
	bool gone = true;

	u_biased_take(&vi->tx_lock);
	r = nvi_chan_is_live(nic, ch, conn) ? *find(ch, m->map) : NULL;
	if (r != NULL && r->state == ASKED)
		answer(nic, r, -EAGAIN);
	else if (r != NULL)
		gone = lose(nic, r);
	u_biased_drop(&vi->tx_lock);
	if (gone)
		nvi_grant_tell_about(nic, conn, W_GRANT_GONE, m->handle, m->map);
}

/* ---- the calls ------------------------------------------------------------------------------- */

/*
 * Enters a mapping as asked for, before the request is sent.  On failure `r` is not entered: -EISCONN, -EOPNOTSUPP: the
 * other end is not on this host, or -ENOSPC.
 */
static int begin(struct nvi_chan *ch, struct nvi_remote *r, uint64_t *conn_out)
{
	struct vi_vi *vi = ch->vi;
	uint32_t count = 0;
	int err = 0;

	u_biased_take(&vi->tx_lock);
	for (const struct nvi_remote *other = ch->remotes; other != NULL; other = other->next)
		count++;
	*conn_out = nvi_chan_conn(ch);
	if (vi->chan != ch || vi_state(vi) != VIP_STATE_CONNECTED || *conn_out == 0)
		err = -EISCONN;
	else if (ch->hops != 0)
		err = -EOPNOTSUPP;
	else if (count >= NVI_REMOTES_MAX)
		err = -ENOSPC;
	if (err == 0) {
		r->next = ch->remotes;
		ch->remotes = r;
	}
	u_biased_drop(&vi->tx_lock);
	return err;
}

/* Sends the request, repeats it, and waits for the answer; 0: the memory is mapped; -ETIMEDOUT: no answer came. */
static int ask(struct nvi_nic *nic, struct nvi_req *req, uint64_t conn, uint32_t handle,
	       int64_t deadline)
{
	int64_t wait = AGAIN_NS;
	int err;

	do {
		int64_t until = u_now_ns() + wait;

		err = nvi_grant_tell_about(nic, conn, W_GRANT_ASK, handle, req->token);
		if (err == 0)
			err = nvi_req_wait(nic, req, until < deadline ? until : deadline);
		wait *= 2;
	} while (err == -EINPROGRESS && u_time_left(deadline) != 0);
	return err == -EINPROGRESS ? -ETIMEDOUT : err;
}

/*
 * Gives the program its pointer, or forgets the mapping, which may have ended by itself with the connection.  Returns
 * `err`, or -EISCONN for the latter.  *give_back_out: the owner has to be told.
 */
static int finish(struct nvi_chan *ch, uint64_t number, int err, bool *give_back_out, void **out)
{
	struct nvi_remote **at;

	u_biased_take(&ch->vi->tx_lock);
	at = find(ch, number);
	if (*at == NULL) {
		err = err != 0 ? err : -EISCONN;
	} else if (err == 0) {
		*out = (*at)->at;
	} else {
		*give_back_out = (*at)->state == HELD;
		remove_remote(ch, at);
	}
	u_biased_drop(&ch->vi->tx_lock);
	return err;
}

/* Makes one attempt to map, and takes over `r`.  -EAGAIN: the owner is changing rights to the memory. */
static int map_once(struct nvi_chan *ch, struct nvi_remote *r, int64_t deadline, void **out)
{
	uint32_t handle = r->handle;
	struct nvi_nic *nic = ch->nic;
	bool give_back = false;
	struct nvi_req req;
	uint64_t conn;
	int err = nvi_req_begin(nic, &req, NULL);

	if (err != 0) {
		free(r);
		return err;
	}
	r->number = req.token;
	err = begin(ch, r, &conn);
	if (err != 0) {
		free(r);
	} else {
		err = ask(nic, &req, conn, handle, deadline);
		err = finish(ch, req.token, err, &give_back, out);
		if (give_back)
			nvi_grant_tell_about(nic, conn, W_GRANT_GONE, handle, req.token);
	}
	nvi_req_end(nic, &req);
	return err;
}

int nvi_remote_map(struct vi_vi *vi, uint64_t addr, uint64_t len, uint32_t handle, void **out)
{
	int64_t deadline = u_now_ns() + ANSWER_NS;
	struct nvi_remote *r;
	int err;

	do {
		r = calloc(1, sizeof(*r));
		if (r == NULL)
			return -ENOMEM;
		r->addr = addr;
		r->length = len;
		r->handle = handle;
		err = map_once(vi->prov, r, deadline, out);
		if (err == -EAGAIN)
			u_nap_ns(NAP_NS);
	} while (err == -EAGAIN && u_time_left(deadline) != 0);
	return err == -EAGAIN ? -ETIMEDOUT : err;
}

int nvi_remote_unmap(struct vi_vi *vi, void *address)
{
	struct nvi_chan *ch = vi->prov;
	struct nvi_nic *nic = vi->nic->prov;
	uint64_t conn = 0, number = 0;
	struct nvi_remote **at;
	uint32_t handle = 0;
	int err = 0;

	u_biased_take(&vi->tx_lock);
	at = &ch->remotes;
	while (*at != NULL && ((*at)->state == ASKED || (*at)->at != address))
		at = &(*at)->next;
	if (*at == NULL) {
		err = -EINVAL;
	} else {
		conn = (*at)->state == HELD ? nvi_chan_conn(ch) : 0;
		number = (*at)->number;
		handle = (*at)->handle;
		remove_remote(ch, at);
	}
	u_biased_drop(&vi->tx_lock);
	if (conn != 0)
		nvi_grant_tell_about(nic, conn, W_GRANT_GONE, handle, number);
	return err;
}
