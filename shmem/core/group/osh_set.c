/* SPDX-License-Identifier: BSD-2-Clause */
/* Active sets: teams that the library keeps, each made by the first collective of its members. */
#include <pthread.h>
#include <stdlib.h>

#include "osh_msg.h"
#include "osh_set.h"
#include "osh_target.h"
#include "osh_wait.h"

static struct {
	pthread_mutex_t lock;
	struct osh_team *list;
} sets = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* The message by which members of a set tell each other their blocks, over osh_setup_team. */
struct set_msg {
	uint64_t offset; /* of the block */
	int start, log_stride, n;
};

/* Threads that make sets at the same time receive each other's messages, which wait here for their thread. */
struct pending_msg {
	struct set_msg msg;
	int from;
	struct pending_msg *next;
};

static struct {
	pthread_mutex_t lock; /* of osh_setup_team, too */
	struct pending_msg *list;
} pending = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Are start, stride and size equal? The offsets are not compared. */
static bool same_set(const struct set_msg *a, const struct set_msg *b)
{
	return a->start == b->start && a->log_stride == b->log_stride && a->n == b->n;
}

/*
 * Whether a message of PE `from` about the set `mine` is pending; if so, it is taken off the list, into *theirs. The
 * caller has the lock.
 */
static bool look_up(const struct set_msg *mine, int from, struct set_msg *theirs)
{
	struct pending_msg **at = &pending.list, *p;

	while (*at != NULL && ((*at)->from != from || !same_set(&(*at)->msg, mine)))
		at = &(*at)->next;
	p = *at;
	if (p == NULL)
		return false;
	*theirs = p->msg;
	*at = p->next;
	free(p);
	return true;
}

/*
 * Whether PE `from` has told of the set `mine`; if so, it is in *theirs. Does not wait; a message about another set
 * becomes pending. The caller has the lock.
 */
static bool recv_set(const char *fn, const struct set_msg *mine, int from, struct set_msg *theirs)
{
	struct pending_msg *p, **end = &pending.list;

	if (look_up(mine, from, theirs))
		return true;
	if (!osh_msg_is_there(fn, osh_setup_team, from))
		return false;
	osh_msg_recv(fn, osh_setup_team, from, theirs, sizeof(*theirs));
	if (same_set(theirs, mine))
		return true;
	p = malloc(sizeof(*p));
	if (p == NULL)
		osh_fatal("%s: out of memory", fn);
	*p = (struct pending_msg){ *theirs, from, NULL };
	while (*end != NULL)
		end = &(*end)->next;
	*end = p;
	return false;
}

/*
 * Waits for the message of PE `from` about the set of `mine`, and returns it in *theirs. Messages about other sets
 * are kept for their threads. Takes the lock itself.
 */
static void wait_for_set(const char *fn, const struct set_msg *mine, int from,
			 struct set_msg *theirs)
{
	struct osh_wait w = OSH_WAIT_PE(fn, NULL, from);
	bool there;

	for (;;) {
		pthread_mutex_lock(&pending.lock);
		there = recv_set(fn, mine, from, theirs);
		pthread_mutex_unlock(&pending.lock);
		if (there)
			break;
		osh_wait(&w);
	}
	osh_wait_end(&w);
}

/*
 * Makes the team of a set, in which this PE is number `me`, and waits for the blocks of all members; a failure ends
 * the job. Takes the lock of `pending` itself; the caller puts the team on the list of sets.
 */
static struct osh_team *set_create(const char *fn, const int *pes, const struct set_msg *set,
				   int me)
{
	struct osh_team *team = osh_team_alloc(pes, set->n, me);
	struct set_msg mine = *set, theirs;

	if (team == NULL)
		osh_fatal("%s: no memory for another active set", fn);
	team->start = set->start;
	team->log_stride = set->log_stride;
	mine.offset = team->offset;
	pthread_mutex_lock(&pending.lock);
	osh_setup_team->kind = OSH_KIND_SET;
	for (int i = 1; i < team->n; i++)
		osh_msg_send(fn, osh_setup_team, pes[(me + i) % team->n], &mine, sizeof(mine));
	pthread_mutex_unlock(&pending.lock);
	osh_team_note_block(fn, team, me, mine.offset);
	for (int i = 1; i < team->n; i++) {
		int from = (me + i) % team->n;

		wait_for_set(fn, &mine, pes[from], &theirs);
		osh_team_note_block(fn, team, from, theirs.offset);
	}
	return team;
}

struct osh_team *osh_active_set(const char *fn, int start, int log_stride, int size)
{
	struct osh_team *set;
	int *pes, me = -1;

	if (osh_world == NULL)
		osh_bad_access(fn, NULL, 0, -1);
	if (start == 0 && log_stride == 0 && size == osh_pe.n)
		return osh_world;
	if (size < 1 || start < 0 || log_stride < 0 || log_stride > 30 ||
	    start + ((long)(size - 1) << log_stride) >= osh_pe.n)
		osh_fatal(
			"%s: no active set has PE_start %d, logPE_stride %d and PE_size %d among %d PE%s",
			fn, start, log_stride, size, osh_pe.n, osh_pe.n == 1 ? "" : "s");
	pthread_mutex_lock(&sets.lock);
	for (set = sets.list; set != NULL; set = set->next) {
		if (set->start == start && set->log_stride == log_stride && set->n == size)
			break;
	}
	pthread_mutex_unlock(&sets.lock);
	if (set != NULL)
		return set;
	pes = malloc((size_t)size * sizeof(int));
	for (int i = 0; pes != NULL && i < size; i++) {
		pes[i] = start + (i << log_stride);
		if (pes[i] == osh_pe.me)
			me = i;
	}
	if (me < 0)
		osh_fatal("%s: this PE is not in the active set", fn);
	set = set_create(fn, pes, &(struct set_msg){ 0, start, log_stride, size }, me);
	free(pes);
	pthread_mutex_lock(&sets.lock);
	set->next = sets.list;
	sets.list = set;
	pthread_mutex_unlock(&sets.lock);
	return set;
}

/* Frees the pending messages. A program that is right has left none. */
static void drop_pending(void)
{
	struct pending_msg *p;

	while ((p = pending.list) != NULL) {
		pending.list = p->next;
		free(p);
	}
}

void osh_sets_close(void)
{
	drop_pending();
	osh_teams_end(&sets.list);
}
