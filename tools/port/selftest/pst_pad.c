/* SPDX-License-Identifier: BSD-2-Clause */
/* Scratchpads: each, both ways, written here and read there. */
#include <errno.h>

#include "pst_priv.h"

#define ROUNDS 4u
#define LOST_MOST 2u

/* What scratchpad i is to hold in a round: near all ones, its index, or a random value. */
static uint32_t value(const struct pst_job *job, uint32_t round, uint32_t i)
{
	uint32_t v = pst_mix(job->seed + round, i);

	/* All ones are the answer of a scratchpad that is not there, so they are not written. */
	return round == 1 ? UINT32_MAX - 1 - i : round == 2 ? i : v == UINT32_MAX ? 1 : v;
}

/* Is the first index refused that there is not, by each call? */
static bool range_is_checked(struct pst *s)
{
	uint32_t n = s->port->limits.spads;

	return port_spad_write(s->port, n, 1) == -EINVAL &&
	       port_spad_read(s->port, n) == UINT32_MAX &&
	       port_peer_spad_write(s->port, n, 1) == -EINVAL &&
	       port_peer_spad_read(s->port, n) == UINT32_MAX;
}

/* The first scratchpad that `read` finds without its value of the round; their number if there is none. */
static uint32_t first_other(struct pst *s, const struct pst_job *job, uint32_t round,
			    uint32_t (*read)(struct port *p, unsigned int i))
{
	uint32_t i = 0, n = s->port->limits.spads;

	while (i < n && read(s->port, i) == value(job, round, i))
		i++;
	return i;
}

/* Waits until all have their values.  -ENOENT: not within lost_ns; the index of the first that has not. */
static int pads_await(struct pst *s, const struct pst_job *job, uint32_t round,
		      uint32_t (*read)(struct port *p, unsigned int i), uint32_t *first_out)
{
	struct pst_wait w = pst_wait_begin(s->cfg->lost_ns);
	int err = 0;

	while ((*first_out = first_other(s, job, round, read)) < s->port->limits.spads && err == 0)
		err = pst_poll(s, &w);
	return err == -ETIMEDOUT ? -ENOENT : err;
}

/* Are there, read across the link, the values that the peer has written into its scratchpads? */
static int pads_look_across(struct pst *s, const struct pst_job *job, uint32_t round,
			    struct pst_counts *c)
{
	uint32_t first;
	int err = pads_await(s, job, round + ROUNDS, port_peer_spad_read, &first);

	if (err == -ENOENT)
		pst_wrong(c, PST_WHY_PAD_READ, first);
	return err == -ENOENT ? 0 : err;
}

/* Writes the values of a round into the peer's scratchpads. */
static void pads_write_all(struct pst *s, const struct pst_job *job, uint32_t round,
			   struct pst_counts *c)
{
	for (uint32_t i = 0; i < s->port->limits.spads; i++) {
		if (port_peer_spad_write(s->port, i, value(job, round, i)) != 0)
			pst_wrong(c, PST_WHY_PAD_LOST, i);
	}
	port_flush(s->port);
}

/* The reader has written its own scratchpads of a round when it asks for the next. */
int pst_pads_write(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	uint32_t args[PST_ARGS];
	int err = 0;

	if (!range_is_checked(s))
		pst_wrong(c, PST_WHY_PAD_RANGE, s->port->limits.spads);
	for (uint32_t round = 1; err == 0; round++) {
		err = pst_hear(s, PST_STEP, args, s->cfg->gone_ns);
		if (err == 0 && round > 1)
			err = pads_look_across(s, job, round - 1, c);
		if (err != 0 || args[0] == PST_ACK_STOP)
			break;
		pads_write_all(s, job, round, c);
		pst_step_say(s, round);
	}
	return err;
}

/* Waits for the peer's values, then writes other ones on this side, which the peer reads across the link. */
static int pads_round_read(struct pst *s, const struct pst_job *job, uint32_t round,
			   struct pst_counts *c)
{
	uint32_t first;
	int err = pst_step_hear(s, round);

	if (err == 0)
		err = pads_await(s, job, round, port_spad_read, &first);
	if (err == -ENOENT)
		pst_wrong(c, PST_WHY_PAD_LOST, first);
	else if (err != 0)
		return err;
	c->tried += s->port->limits.spads;
	for (uint32_t i = 0; i < s->port->limits.spads; i++) {
		if (port_spad_write(s->port, i, value(job, round + ROUNDS, i)) != 0)
			pst_wrong(c, PST_WHY_PAD_RANGE, i);
	}
	return 0;
}

/* Asks for rounds until it has seen enough. */
int pst_pads_read(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	int64_t until = u_now_ns() + job->share_ns;
	uint32_t round = 0;
	int err = 0;

	if (!range_is_checked(s))
		pst_wrong(c, PST_WHY_PAD_RANGE, s->port->limits.spads);
	while (err == 0 && c->wrong < LOST_MOST && !pst_enough(until, round, ROUNDS)) {
		pst_step_say(s, ++round);
		err = pads_round_read(s, job, round, c);
	}
	if (err == 0)
		pst_step_say(s, PST_ACK_STOP);
	return err;
}
