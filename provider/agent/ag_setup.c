/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Setting a link up through scratchpads, and taking it down.
 *
 * When the port's link comes up each agent makes a control slice and writes into the neighbour's
 * scratchpads (8 words, the first one last):
 *
 *	0 command  0x5644 and a hash of words 1-4, 6, 7, by which a torn set of words is detected
 *	1 protocol version << 16 | host id
 *	2 nonce	   of this set-up; never 0
 *	3 id and
 *	4 bytes	   of the control slice
 *	5 ack	   the neighbour's nonce, once its control slice is mapped here
 *	6 sizes	   doorbell bits in use in the highest byte, MiB of the window in the others
 *	7 hosts	   hosts of the fabric
 *
 * The link is usable when the neighbour's slice is mapped and this host's nonce is acknowledged.  A
 * new nonce of the neighbour means that it began again.  The words are repeated while nothing
 * answers.  After a second without success the set-up begins again, as words of an earlier
 * generation of the neighbour may have misled one side.  The neighbour's slice stays mapped then:
 * it can be opened once, and the neighbour, which may not begin again, still announces it.  If there
 * was no room for the control slice, the set-up is tried again after a second, too.
 */
#include "ag_setup.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "ag_cfg.h"
#include "ag_connect.h"
#include "ag_ctl.h"
#include "ag_link.h"
#include "ag_loop.h"
#include "ag_ratelimit.h"
#include "ag_record.h"
#include "ag_relay.h"
#include "ag_resume_ask.h"
#include "ag_retire.h"
#include "ag_route.h"
#include "ag_share.h"
#include "ag_state.h"
#include "port.h"
#include "u_fd.h"
#include "u_log.h"
#include "u_random.h"
#include "u_time.h"
#include "w_ctl.h"

#define SETUP_MAGIC 0x5644u
#define SETUP_POLL_NS (20 * INT64_C(1000000))
#define SETUP_REPEAT_NS (50 * INT64_C(1000000))
/*
 * A set-up without an answer begins again after this time.  Words of the neighbour come with an event, which a turn of
 * the agent handles before it looks at the time; so agents that get turns more seldom than that are joined, too.
 */
#define SETUP_LIMIT_NS (1000 * INT64_C(1000000))

enum {
	PAD_COMMAND,
	PAD_VERSION,
	PAD_NONCE,
	PAD_SLICE,
	PAD_BYTES,
	PAD_ACK,
	PAD_SIZES, /* doorbell bits in use in the highest byte, MiB of the window in the others */
	PAD_HOSTS,
	PAD_COUNT
};

/* Returns the command word that goes with the other words.  The ack is not part of it. */
static uint32_t fold(const uint32_t w[PAD_COUNT])
{
	uint32_t h = 2166136261u;
	unsigned int i;

	for (i = PAD_VERSION; i < PAD_COUNT; i++) {
		if (i != PAD_ACK)
			h = (h ^ w[i]) * 16777619u;
	}
	return SETUP_MAGIC << 16 | ((h >> 16 ^ h) & 0xffff);
}

/*
 * Reads the words that the neighbour announced from this host's scratchpads.  0; or -EAGAIN: there are none, or
 * not all of them yet, and `w` is not to be used.
 */
static int pads_read(struct ag_link *l, uint32_t w[PAD_COUNT])
{
	unsigned int i;

	for (i = 0; i < PAD_COUNT; i++)
		w[i] = port_spad_read(l->port, i);
	return w[PAD_COMMAND] == fold(w) && w[PAD_NONCE] != 0 ? 0 : -EAGAIN;
}

/* Writes this host's words into the neighbour's scratchpads, rings, and notes when to repeat that. */
static void announce(struct ag_link *l)
{
	const struct ag_cfg *cfg = &l->agent->cfg;
	uint32_t w[PAD_COUNT] = {
		[PAD_VERSION] = W_CTL_VERSION << 16 | cfg->host_id,
		[PAD_NONCE] = l->nonce,
		[PAD_SLICE] = l->ctl.id,
		[PAD_BYTES] = (uint32_t)l->ctl.len,
		[PAD_ACK] = l->peer_nonce,
		[PAD_SIZES] = cfg->db_bits << 24 |
			      ((uint32_t)(l->port->limits.window_bytes >> 20) & 0xffffff),
		[PAD_HOSTS] = cfg->host_count,
	};
	unsigned int i;

	w[PAD_COMMAND] = fold(w);
	for (i = PAD_COUNT; i-- > 0;)
		port_peer_spad_write(l->port, i, w[i]);
	port_peer_db_ring(l->port, UINT32_C(1) << AG_DB_BIT);
	l->announce_at = u_now_ns() + SETUP_REPEAT_NS;
}

/*
 * Clears this host's scratchpads, into which the neighbour writes, so that its words are not taken for those of
 * the next set-up.
 */
static void pads_clear(struct ag_link *l)
{
	unsigned int i;

	for (i = 0; i < PAD_COUNT; i++)
		port_spad_write(l->port, i, 0);
}

/* Unmaps the neighbour's control slice, so that a set-up opens the one that is announced. */
static void neighbour_forget(struct ag_link *l)
{
	port_unmap(l->port, &l->out);
	memset(&l->out, 0, sizeof(l->out));
	l->peer_nonce = 0;
}

/* Gives up the set-up of a link, until its port goes down. */
static void link_bad(struct ag_link *l)
{
	ag_ctl_close(l);
	neighbour_forget(l);
	l->state = AG_LINK_BAD;
}

/*
 * Checks that the neighbour is the right one.  0; otherwise logs the reason and gives up the set-up until the
 * port goes down: -EPROTONOSUPPORT.
 */
static int neighbour_check(struct ag_link *l, const uint32_t w[PAD_COUNT])
{
	uint32_t version = w[PAD_VERSION] >> 16, host = w[PAD_VERSION] & 0xffff;
	uint32_t bits = w[PAD_SIZES] >> 24;
	bool right = version == W_CTL_VERSION && host == l->peer_host &&
		     w[PAD_HOSTS] == l->agent->cfg.host_count;

	/*
	 * The neighbour's processes may have any of its doorbell bits, and a ring of one that this
	 * adapter lacks would be lost.
	 */
	if (right && bits <= l->port->limits.db_bits)
		return 0;
	if (right)
		u_log_ratelimited(
			&l->ratelimit[AG_RATELIMIT_SETUP],
			"link %s stays down: host %u uses %u doorbell bits, this port has %u; "
			"give all agents the same --doorbells, at most %u",
			l->port->limits.name, host, bits, l->port->limits.db_bits,
			l->port->limits.db_bits);
	else if (version != W_CTL_VERSION)
		u_log_ratelimited(
			&l->ratelimit[AG_RATELIMIT_SETUP],
			"link %s stays down: this agent speaks version %u, the agent of host %u "
			"speaks %u; use agents of one release",
			l->port->limits.name, W_CTL_VERSION, host, version);
	else
		u_log_ratelimited(
			&l->ratelimit[AG_RATELIMIT_SETUP],
			"link %s stays down: host %u of %u expected at the other end, found "
			"host %u of %u; check cables and host ids",
			l->port->limits.name, l->peer_host, l->agent->cfg.host_count, host,
			w[PAD_HOSTS]);
	link_bad(l);
	return -EPROTONOSUPPORT;
}

/*
 * Maps the neighbour's control slice in place of an earlier one, and notes its nonce.  0; or -errno, and the
 * earlier one stays.
 */
static int outbound_map(struct ag_link *l, const uint32_t w[PAD_COUNT])
{
	struct port_map map;
	int fd, rc;

	if (w[PAD_BYTES] < ag_ctl_bytes())
		return -EPROTO;
	rc = port_peer_slice_open(l->port, w[PAD_SLICE], w[PAD_BYTES], &fd);
	if (rc != 0)
		return rc;
	rc = port_map(l->port, fd, w[PAD_BYTES], PORT_OUTBOUND, &map);
	close(fd);
	if (rc != 0)
		return rc;
	port_unmap(l->port, &l->out);
	l->out = map;
	l->peer_nonce = w[PAD_NONCE];
	return 0;
}

/*
 * Marks all neighbours to be told of the links that are up now, and makes connections that wait for a path try
 * again.
 */
static void paths_changed(struct ag_link *l)
{
	ag_route_changed(l);
	ag_resume_retry(l->agent);
}

/*
 * Makes the link usable, as a new generation, has neighbours and connections told of it, and handles records
 * that have come.
 */
static void link_up(struct ag_link *l)
{
	l->state = AG_LINK_UP;
	l->link_generation++;
	l->heard_at = u_now_ns();
	l->beat_at = l->heard_at;
	u_log_ratelimited(&l->ratelimit[AG_RATELIMIT_STATE], "link %s to host %u is up",
			  l->port->limits.name, l->peer_host);
	paths_changed(l);
	ag_record_receive(l);
}

/*
 * Does what the neighbour's words allow in a set-up: maps and acknowledges its slice, and makes the link usable
 * once this host's nonce is acknowledged.  A wrong neighbour ends the set-up.
 */
static void setup_step(struct ag_link *l)
{
	uint32_t w[PAD_COUNT];

	if (pads_read(l, w) != 0 || neighbour_check(l, w) != 0)
		return;
	if (w[PAD_NONCE] != l->peer_nonce) {
		if (outbound_map(l, w) != 0)
			return;
		announce(l);
	}
	if (w[PAD_ACK] == l->nonce && l->nonce != 0)
		link_up(l);
}

/* Begins a set-up, with a new control slice and nonce; if there is no room, it is due again after SETUP_LIMIT_NS. */
static void setup_begin(struct ag_link *l, uint32_t generation)
{
	char text[U_FD_ERROR];
	int rc;

	if (generation != l->generation)
		neighbour_forget(l);
	l->generation = generation;
	l->setup_again_at = 0;
	rc = ag_ctl_open(l);
	if (rc != 0) {
		/*
		 * There may be room later: a neighbour that was stopped and runs again frees
		 * messages that its cable holds.
		 */
		u_log_ratelimited(&l->ratelimit[AG_RATELIMIT_SETUP],
				  "link %s stays down: no control slice: %s", l->port->limits.name,
				  u_fd_error(-rc, text));
		l->setup_again_at = u_now_ns() + SETUP_LIMIT_NS;
		return;
	}
	do {
		u_random(&l->nonce, sizeof(l->nonce));
	} while (l->nonce == 0 || l->nonce == UINT32_MAX);
	l->state = AG_LINK_SETUP;
	l->setup_until = u_now_ns() + SETUP_LIMIT_NS;
	announce(l);
}

/* Has the neighbour's agent announced another set-up while the link is up? */
static bool neighbour_began_again(struct ag_link *l)
{
	uint32_t w[PAD_COUNT];

	return l->state == AG_LINK_UP && pads_read(l, w) == 0 && w[PAD_NONCE] != l->peer_nonce;
}

void ag_setup_check(struct ag_link *l)
{
	uint32_t generation = 0;
	bool up = port_link_state(l->port, &generation) == PORT_LINK_UP;

	if (l->state != AG_LINK_DOWN && (!up || generation != l->generation))
		ag_setup_reset(l, "the link went down");
	else if (neighbour_began_again(l))
		ag_setup_reset(l, "the neighbour's agent began again");
	if (!up) {
		l->setup_again_at = 0;
		neighbour_forget(l);
	}
	if (up && l->state == AG_LINK_DOWN && !l->admin_down && l->setup_again_at == 0)
		setup_begin(l, generation);
	if (l->state == AG_LINK_SETUP)
		setup_step(l);
}

/* As ag_setup_reset(), but the neighbour's slice stays mapped. */
static void reset(struct ag_link *l, const char *why)
{
	bool was_up = l->state == AG_LINK_UP;

	if (was_up)
		u_log_ratelimited(&l->ratelimit[AG_RATELIMIT_STATE],
				  "link %s to host %u is down: %s", l->port->limits.name,
				  l->peer_host, why);
	if (l->state != AG_LINK_DOWN)
		pads_clear(l);
	l->state = AG_LINK_DOWN;
	l->broken = NULL;
	if (was_up)
		paths_changed(l);
	ag_relay_link_down(l);
	ag_retire_left(l, NULL);
	ag_connect_link_down(l, why);
	ag_share_link_down(l);
	ag_ctl_close(l);
}

void ag_setup_reset(struct ag_link *l, const char *why)
{
	reset(l, why);
	neighbour_forget(l);
}

/* The neighbour misbehaved: takes the link down at both ends, to be tried again a little later. */
void ag_setup_cut(struct ag_link *l, int64_t now)
{
	u_log_ratelimited(&l->ratelimit[AG_RATELIMIT_CUT], "link %s is cut: %s",
			  l->port->limits.name, l->broken);
	port_link_disable(l->port);
	ag_setup_reset(l, l->broken);
	l->enabled = false;
	l->retry_at = now + AG_RETRY_NS;
}

void ag_setup_service(struct ag_link *l)
{
	port_service(l->port);
	ag_setup_check(l);
	ag_record_receive(l);
}

int64_t ag_setup_timers(struct ag_link *l, int64_t now)
{
	if (l->setup_again_at != 0 && now >= l->setup_again_at) {
		l->setup_again_at = 0;
		ag_setup_check(l);
	}
	/* First the words: an agent that gets turns seldom may find both the limit passed and what it waited for. */
	if (l->state == AG_LINK_SETUP)
		setup_step(l);
	if (l->state == AG_LINK_SETUP && now >= l->setup_until) {
		reset(l, "the link could not be set up");
		ag_setup_check(l);
	}
	if (l->state == AG_LINK_SETUP) {
		if (now >= l->announce_at)
			announce(l);
		return now + SETUP_POLL_NS;
	}
	return l->setup_again_at != 0 ? l->setup_again_at : U_NEVER;
}
