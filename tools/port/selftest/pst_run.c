/* SPDX-License-Identifier: BSD-2-Clause */
/* The judge's loop over the clauses, and the helper's. */
#include <errno.h>
#include <string.h>
#include <sys/utsname.h>

#include "pst_priv.h"

#define SEED UINT32_C(0x51ab)
#define ERRNO_MOST 4095u

enum { ARG_CLAUSE, ARG_WRITES, ARG_SEED, ARG_SHARE_US };
enum { ARG_ERR = 0, ARG_COUNTS };

/* What may be there from another clause goes: words, payload, rings. */
static void data_clear(struct pst *s)
{
	memset(s->data.in.base, 0, PST_DATA);
	port_db_clear(s->port, UINT32_MAX);
	s->ticket = port_irq_ticket(s->port->irq);
	s->seen = 0;
}

/* Does this end's half of a clause: one end stores, rings or writes, the other looks. */
static int half_run(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	const struct pst_clause *clause = &pst_clauses[job->clause];

	return s->judge == job->judge_writes ? clause->write(s, job, c) : clause->read(s, job, c);
}

/* Adds what the other end saw.  Of two reasons the first counts, of two delays the longer one. */
static void counts_add(struct pst_counts *to, const struct pst_counts *from)
{
	if (to->wrong == 0 && from->wrong != 0) {
		to->why = from->why;
		to->at = from->at;
	}
	to->tried += from->tried;
	to->wrong += from->wrong;
	to->extra += from->extra;
	if (from->late_most_ns > to->late_most_ns) {
		to->late50_ns = from->late50_ns;
		to->late_most_ns = from->late_most_ns;
	}
}

/* A clause that an error ended counts as broken, with the reason that fits the error. */
static void error_note(struct pst_counts *c, int err)
{
	uint32_t why = PST_WHY_ERROR;

	if (err == -ETIMEDOUT || err == -EPROTO)
		why = PST_WHY_NO_ANSWER;
	else if (err == -ENOTCONN)
		why = PST_WHY_LINK_ENDED;
	else if (err == -EALREADY)
		why = PST_WHY_SAME_ROLE;
	pst_wrong(c, why, (uint32_t)-err);
}

/* ---- the helper --------------------------------------------------------------------------------- */

/*
 * Does one request of the judge and replies with the error and the counts of this half.  -EBADMSG: there is no such
 * clause.  -ENOTCONN.
 */
static int job_help(struct pst *s, const uint32_t args[PST_ARGS])
{
	struct pst_job job = { .clause = args[ARG_CLAUSE],
			       .judge_writes = args[ARG_WRITES] != 0,
			       .seed = args[ARG_SEED],
			       .share_ns = (int64_t)args[ARG_SHARE_US] * 1000 };
	uint32_t reply[PST_ARGS] = { 0 };
	struct pst_counts c = { 0 };
	int err;

	if (job.clause >= pst_clause_count || pst_clauses[job.clause].write == NULL)
		return -EBADMSG;
	data_clear(s);
	pst_say(s, PST_READY, args, 1);
	err = half_run(s, &job, &c);
	if (err == -ENOTCONN)
		return err;
	reply[ARG_ERR] = (uint32_t)-err;
	memcpy(&reply[ARG_COUNTS], &c, sizeof(c));
	pst_say(s, PST_REPLY, reply, ARG_COUNTS + sizeof(c) / sizeof(uint32_t));
	return 0;
}

/* Replies with the release of this host's kernel, which the report names. */
static void kernel_tell(struct pst *s)
{
	uint32_t args[PST_ARGS] = { 0 };
	struct utsname u;

	if (uname(&u) == 0)
		memcpy(args, u.release, u_min64(strlen(u.release), sizeof(args) - 1));
	pst_say(s, PST_REPLY, args, PST_ARGS);
}

/* The judge's next request.  It has no deadline but the end of the link. */
static int request_hear(struct pst *s, uint32_t args[PST_ARGS])
{
	int err;

	do {
		err = pst_hear(s, PST_REQUEST, args, s->cfg->gone_ns);
	} while (err == -ETIMEDOUT);
	return err;
}

int pst_help(const struct pst_cfg *cfg)
{
	struct pst s = { .port = cfg->port, .cfg = cfg };
	uint32_t args[PST_ARGS];
	int err = pst_join(&s);

	if (err == 0) {
		err = request_hear(&s, args);
		kernel_tell(&s);
	}
	while (err == 0) {
		err = request_hear(&s, args);
		if (err == 0)
			err = job_help(&s, args);
	}
	/* Something other than a request: the judge is done. */
	if (err == -EPROTO) {
		pst_say(&s, PST_REPLY, args, 1);
		err = 0;
	}
	pst_leave(&s);
	return err;
}

/* ---- the judge ---------------------------------------------------------------------------------- */

/* The sum by which a weight is divided: each clause is tried in two directions. */
static uint32_t weights(void)
{
	uint32_t sum = 0;

	for (unsigned int i = 0; i < pst_clause_count; i++)
		sum += 2 * pst_clauses[i].weight;
	return sum;
}

/* Asks the helper for its half, and waits until it is ready: what comes after that belongs to this clause. */
static int job_request(struct pst *s, const struct pst_job *job)
{
	const uint32_t args[] = { [ARG_CLAUSE] = job->clause,
				  [ARG_WRITES] = job->judge_writes,
				  [ARG_SEED] = job->seed,
				  [ARG_SHARE_US] = (uint32_t)(job->share_ns / 1000) };
	uint32_t ready[PST_ARGS];

	data_clear(s);
	pst_say(s, PST_REQUEST, args, sizeof(args) / sizeof(args[0]));
	return pst_hear(s, PST_READY, ready, s->cfg->gone_ns);
}

/* One clause in one direction.  0; -EOPNOTSUPP; -errno of this end or of the other. */
static int job_judge(struct pst *s, const struct pst_job *job, struct pst_counts *c)
{
	struct pst_counts theirs = { 0 };
	uint32_t reply[PST_ARGS];
	int err = job_request(s, job), heard;

	if (err != 0)
		return err;
	err = half_run(s, job, c);
	if (err == -ENOTCONN)
		return err;
	heard = pst_hear(s, PST_REPLY, reply, 3 * s->cfg->gone_ns + 2 * job->share_ns);
	if (heard != 0)
		return heard;
	memcpy(&theirs, &reply[ARG_COUNTS], sizeof(theirs));
	counts_add(c, &theirs);
	if (err == 0 && reply[ARG_ERR] > ERRNO_MOST)
		return -EPROTO;
	return err != 0 ? err : -(int)reply[ARG_ERR];
}

/* The reason in words, with the number, or the mask of bits, that belongs to it. */
static void verdict_text(struct pst_verdict *v)
{
	const struct pst_counts *c = &v->way[v->way[0].wrong != 0 ? 0 : 1];
	bool numbered = c->why > PST_WHY_SAME_ROLE && c->why != PST_WHY_LINK_STILL_UP &&
			c->why != PST_WHY_LINK_UNTOLD && c->why != PST_WHY_LINK_REACHES;

	if (v->state != PST_BROKEN)
		return;
	if (numbered)
		snprintf(v->text, sizeof(v->text),
			 c->why == PST_WHY_BITS_LOST || c->why == PST_WHY_CLEARED_MORE ? "%s 0x%x"
										       : "%s %u",
			 pst_why_text(c->why), c->at);
	else
		snprintf(v->text, sizeof(v->text), "%s", pst_why_text(c->why));
}

/* One clause in both directions, the second only if the first has kept it. */
static int clause_judge(struct pst *s, uint32_t i, struct pst_verdict *v)
{
	const struct pst_clause *clause = &pst_clauses[i];
	int err = 0;

	v->state = PST_KEPT;
	for (unsigned int way = 0; way < 2 && v->state == PST_KEPT; way++) {
		struct pst_job job = { .clause = i,
				       .judge_writes = way == 0,
				       .seed = pst_mix(SEED + i, way),
				       .share_ns = (int64_t)(s->cfg->seconds * 1e9 *
							     clause->weight / weights()) };

		err = job_judge(s, &job, &v->way[way]);
		if (err == -EOPNOTSUPP)
			v->state = PST_NOT_TESTABLE;
		else if (err != 0)
			error_note(&v->way[way], err);
		if (v->way[way].wrong != 0)
			v->state = PST_BROKEN;
		else if (v->way[way].tried == 0 && v->state == PST_KEPT)
			v->state = PST_NOT_TESTABLE;
	}
	if (v->state == PST_NOT_TESTABLE)
		snprintf(v->text, sizeof(v->text),
			 "the port has too few doorbells or scratchpads, or no ring arrived");
	verdict_text(v);
	return err == -ENOTCONN ? err : 0;
}

/* Is this the entry of the table that measures and judges nothing? */
static bool is_time(const struct pst_clause *clause)
{
	return clause->write == pst_time_write;
}

/* Speeds are reported, whatever the answer. */
static void time_take(struct pst *s, uint32_t i)
{
	struct pst_counts c = { 0 };
	struct pst_job job = { .clause = i,
			       .judge_writes = true,
			       .share_ns = (int64_t)(s->cfg->seconds * 1e9 / weights()) };

	job_judge(s, &job, &c);
}

/* All clauses in their order.  When the link has ended, those that are left are said to be not testable. */
static int clauses_judge(struct pst *s)
{
	struct pst_report *r = s->report;
	int err = 0;

	for (uint32_t i = 0; i < pst_clause_count; i++) {
		const struct pst_clause *clause = &pst_clauses[i];
		struct pst_verdict *v = &r->clause[r->clauses];

		if (is_time(clause)) {
			if (err == 0)
				time_take(s, i);
			continue;
		}
		*v = (struct pst_verdict){ .id = clause->id,
					   .rule = clause->rule,
					   .needs = clause->needs,
					   .state = PST_NOT_TESTABLE };
		r->clauses++;
		if (clause->write == NULL)
			snprintf(v->text, sizeof(v->text), "%s", clause->why_not);
		else if (err != 0)
			snprintf(v->text, sizeof(v->text), "the peer cannot be reached any more");
		else
			err = clause_judge(s, i, v);
		r->broken += v->state == PST_BROKEN;
		if (s->cfg->heard != NULL)
			s->cfg->heard(s->cfg->arg, v);
	}
	return err;
}

/* A text of the peer: only what can be printed is kept. */
static void peer_name(char *to, const uint32_t args[PST_ARGS])
{
	const char *from = (const char *)args;
	size_t n = 0;

	for (; n < PST_ARGS * sizeof(args[0]) && from[n] != '\0'; n++)
		to[n] = from[n] > ' ' && from[n] <= '~' ? from[n] : '?';
	to[n] = '\0';
}

/* The first clause: both ends find each other.  Without it nothing else can be tested. */
static int reach(struct pst *s)
{
	struct pst_verdict *v = &s->report->clause[s->report->clauses++];
	uint32_t args[PST_ARGS] = { 0 };
	int err = pst_join(s);

	*v = (struct pst_verdict){ .id = "reach",
				   .rule = "both ends reach each other by scratchpads and a slice",
				   .needs = "everything" };
	if (err == 0) {
		pst_say(s, PST_REQUEST, args, 1);
		err = pst_hear(s, PST_REPLY, args, s->cfg->gone_ns);
	}
	peer_name(s->report->peer_kernel, args);
	v->way[0].tried = 1;
	if (err != 0) {
		error_note(&v->way[0], err);
		v->state = PST_BROKEN;
		verdict_text(v);
		s->report->broken++;
	}
	if (s->cfg->heard != NULL)
		s->cfg->heard(s->cfg->arg, v);
	return err;
}

int pst_judge(const struct pst_cfg *cfg, struct pst_report *out)
{
	struct pst s = { .port = cfg->port, .cfg = cfg, .judge = true, .report = out };
	int64_t begin = u_now_ns();
	uint32_t args[PST_ARGS] = { 0 };
	int err;

	memset(out, 0, sizeof(*out));
	err = reach(&s);
	if (err == 0)
		err = clauses_judge(&s);
	if (err == 0) {
		pst_say(&s, PST_DONE, args, 1);
		pst_hear(&s, PST_REPLY, args, cfg->lost_ns);
	}
	out->limits = cfg->port->limits;
	out->seconds = (double)(u_now_ns() - begin) / 1e9;
	pst_leave(&s);
	return 0;
}
