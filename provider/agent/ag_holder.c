/* SPDX-License-Identifier: BSD-2-Clause */
#include "ag_holder.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ag_ratelimit.h"
#include "ag_state.h"
#include "u_log.h"

/*
 * A limit: `most`, or less where this process may have few descriptors: `base`, and one more for
 * each `per` descriptors.  A client has up to four descriptors here, and so has an end that is
 * being connected.
 */
struct ceiling {
	uint32_t most, base, per;
};

/* The limits for a process, for a user, and for the owner of the fabric and root. */
static const struct {
	const char *what;
	struct ceiling process, user, owner;
} ceilings[AG_THINGS] = {
	[AG_CLIENTS] = { "connections to the agent", { 512, 0, 8 }, { 1024, 0, 8 }, { 3072, 2, 5 } },
	[AG_OPENING] = { "connections in the making",
			 { 4096, 4, 32 },
			 { 8192, 8, 16 },
			 { 8192, 8, 8 } },
	[AG_CONNS] = { "connections", { 262144, 0, 0 }, { 524288, 0, 0 }, { 786432, 0, 0 } },
	[AG_LISTENS] = { "waiters", { 4096, 0, 0 }, { 16384, 0, 0 }, { 16384, 0, 0 } },
};

/* Parts of a window, in sixteenths. */
#define WINDOW_PROCESS 14u
#define WINDOW_USER 8u
#define WINDOW_OWNER 15u

/* Is the user the owner of the fabric, or root, who counts as one? */
static bool is_owner(const struct ag_agent *a, uid_t uid)
{
	return uid == a->cfg.owner || uid == 0;
}

/*
 * Returns the holder of that user and process, with one more client; made if there is none, or if the process
 * is unseen.  NULL: no memory.
 */
static struct ag_holder *get(struct ag_agent *a, uid_t uid, pid_t pid, bool unseen)
{
	struct ag_list *pos, *tmp;
	struct ag_holder *h;

	ag_list_each(pos, tmp, &a->holders)
	{
		h = ag_list_entry(pos, struct ag_holder, node);
		if (!unseen && h->uid == uid && h->pid == pid) {
			h->clients++;
			return h;
		}
	}
	h = calloc(1, sizeof(*h));
	if (h == NULL)
		return NULL;
	h->uid = uid;
	h->pid = unseen ? -1 : pid;
	h->clients = 1;
	ag_list_append(&a->holders, &h->node);
	return h;
}

/* Takes a client off a holder, and frees it with its last one.  Accepts NULL. */
static void put(struct ag_holder *h)
{
	if (h == NULL || --h->clients > 0)
		return;
	ag_list_remove(&h->node);
	free(h);
}

int ag_holders_get(struct ag_agent *a, uid_t uid, pid_t pid, struct ag_holders *out)
{
	out->user = get(a, uid, 0, false);
	out->process = get(a, uid, pid, pid <= 0);
	if (out->user != NULL && out->process != NULL)
		return 0;
	ag_holders_put(out);
	return -ENOMEM;
}

void ag_holders_put(struct ag_holders *h)
{
	put(h->user);
	put(h->process);
	h->user = h->process = NULL;
}

/* Returns what `c` allows with as many descriptors as this process may have. */
static uint32_t limit(const struct ag_agent *a, const struct ceiling *c)
{
	uint64_t few = c->per == 0 ? c->most : c->base + a->fds / c->per;

	return few < c->most ? (uint32_t)few : c->most;
}

bool ag_holders_may(struct ag_agent *a, const struct ag_holders *h, enum ag_thing thing)
{
	uid_t uid = h->user->uid;
	uint32_t process = limit(a, &ceilings[thing].process);
	uint32_t user = limit(a, is_owner(a, uid) ? &ceilings[thing].owner : &ceilings[thing].user);

	if (h->process->count[thing] < process && h->user->count[thing] < user)
		return true;
	u_log_ratelimited(&a->ratelimit[AG_RATELIMIT_CLIENT],
			  "pid %d gets no more %s: it has %u, uid %u has %u; a process may have "
			  "%u, this user %u",
			  (int)h->process->pid, ceilings[thing].what, h->process->count[thing],
			  (unsigned int)uid, h->user->count[thing], process, user);
	return false;
}

/* Adds `more`, which may be negative, to what its user and its process have of a thing. */
void ag_holders_count(struct ag_holders *h, enum ag_thing thing, int more)
{
	h->user->count[thing] += (uint32_t)more;
	h->process->count[thing] += (uint32_t)more;
}

bool ag_holders_may_use(struct ag_agent *a, const struct ag_holders *h, uint32_t port,
			uint64_t window, uint64_t bytes)
{
	uint64_t process = window / 16 * WINDOW_PROCESS;
	uint64_t user = window / 16 * (is_owner(a, h->user->uid) ? WINDOW_OWNER : WINDOW_USER);
	uint64_t has = h->process->window[port], all = h->user->window[port];

	if (has <= process && bytes <= process - has && all <= user && bytes <= user - all)
		return true;
	u_log_ratelimited(&a->ratelimit[AG_RATELIMIT_CLIENT],
			  "pid %d gets no %llu bytes of the window of port %u: it has %llu, uid %u "
			  "has %llu; a process may have %llu, this user %llu; raise "
			  "VIADUCT_WINDOW_BYTES, with an adapter window_bytes of viaduct.ko",
			  (int)h->process->pid, (unsigned long long)bytes, port,
			  (unsigned long long)has, (unsigned int)h->user->uid,
			  (unsigned long long)all, (unsigned long long)process,
			  (unsigned long long)user);
	return false;
}

/* Adds `bytes`, which may be negative, to what its user and its process have of the window of a port. */
void ag_holders_use(struct ag_holders *h, uint32_t port, int64_t bytes)
{
	h->user->window[port] += (uint64_t)bytes;
	h->process->window[port] += (uint64_t)bytes;
}
