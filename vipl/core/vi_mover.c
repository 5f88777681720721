/* SPDX-License-Identifier: BSD-2-Clause */
#include "vi_mover.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "u_futex.h"
#include "u_log.h"
#include "u_thread.h"

#define AREA "vi"
#define INTERVAL_NS INT64_C(1000000000)
#define FEW_TICKS 10 /* an interval in which a processor counted fewer says nothing */

struct vi_mover *vi_mover_create(const struct u_affinity *a, pthread_mutex_t *lock)
{
	struct vi_mover *m = calloc(1, sizeof(*m));

	if (m == NULL)
		return NULL;
	m->lock = lock;
	m->topo = a->topo;
	u_place_of_service(&a->c, &m->places);
	return m;
}

/* ---- the end of an interval --------------------------------------------------------------------- */

/* Forgets thread i. */
static void forget(struct vi_mover *m, unsigned int i)
{
	unsigned int last = --m->count;

	m->number[i] = m->number[last];
	m->index[i] = m->index[last];
	m->read[i] = m->read[last];
	m->threads[i] = m->threads[last];
	m->said[i] = m->said[last];
}

/* Moves thread i as decided; one that cannot be moved is forgotten. */
static void carry_out(struct vi_mover *m, unsigned int i, const struct u_move_decision *d)
{
	int rc = u_thread_move_number(m->number[i], &d->to);

	if (rc == 0)
		return;
	if (rc != -ESRCH)
		u_warn(AREA, "service thread %u cannot be moved: %s", m->index[i], strerror(-rc));
	forget(m, i);
}

void vi_mover_step(struct vi_mover *m)
{
	const struct u_move_case c = { .topo = m->topo,
				       .places = m->places,
				       .used = m->used,
				       .salt = (unsigned int)getpid() };
	struct u_move_decision *d = m->decided;
	unsigned int i, goes = m->count;
	char text[U_MOVE_TEXT];

	u_move_decide(&c, m->threads, m->count, d);
	for (i = 0; i < m->count; i++) {
		if (d[i].why == U_MOVE_GOES)
			goes = i;
		if (d[i].why != m->said[i] || goes == i)
			u_info(AREA, "service thread %u %s", m->index[i], u_move_text(&d[i], text));
		m->said[i] = d[i].why;
	}
	if (goes < m->count)
		carry_out(m, goes, &d[goes]);
}

/* Ticks that processors counted between two readings, of the one that counted most. */
static uint64_t ticks_between(const struct u_load *before, const struct u_load *after)
{
	uint64_t most = 0;

	for (int cpu = 0; cpu < U_CPUSET_END; cpu++) {
		if (before->all[cpu] != 0 && after->all[cpu] - before->all[cpu] > most &&
		    after->all[cpu] > before->all[cpu])
			most = after->all[cpu] - before->all[cpu];
	}
	return most;
}

/* Reads what each thread has used; those that have ended are forgotten. */
static void read_threads(struct vi_mover *m, uint64_t ticks)
{
	struct u_load_thread now;
	unsigned int i = 0;

	while (i < m->count) {
		if (u_load_read_thread(U_LOAD_THREADS, m->number[i], &now) != 0 ||
		    now.started != m->read[i].started) {
			forget(m, i);
			continue;
		}
		m->threads[i].used = (unsigned int)((now.used - m->read[i].used) * 1000 / ticks);
		m->read[i++] = now;
	}
}

/* Reads the loads of an interval.  False: they cannot be had, or it was too short. */
static bool read_interval(struct vi_mover *m)
{
	uint64_t ticks;

	if (m->count == 0 || u_load_read(U_LOAD_FILE, &m->now) != 0)
		return false;
	ticks = ticks_between(&m->last, &m->now);
	if (ticks < FEW_TICKS)
		return false;
	u_load_between(&m->last, &m->now, m->used);
	m->last = m->now;
	read_threads(m, ticks);
	return true;
}

/* ---- the thread ---------------------------------------------------------------------------------- */

static void *run(void *arg)
{
	struct vi_mover *m = arg;

	while (atomic_load(&m->ends) == 0) {
		u_futex_wait(&m->ends, 0, ~UINT32_C(0), INTERVAL_NS, true);
		if (atomic_load(&m->ends) != 0)
			break;
		pthread_mutex_lock(m->lock);
		if (read_interval(m))
			vi_mover_step(m);
		pthread_mutex_unlock(m->lock);
	}
	return NULL;
}

int vi_mover_add(struct vi_mover *m, unsigned int index, const struct u_cpuset *cpus)
{
	int rc, number = (int)syscall(SYS_gettid);
	unsigned int i = 0;

	while (i < m->count && m->number[i] != number)
		i++;
	if (i == VI_MOVER_MOST)
		return 0;
	rc = u_load_read_thread(U_LOAD_THREADS, number, &m->read[i]);
	if (rc == 0 && m->count == 0)
		rc = u_load_read(U_LOAD_FILE, &m->last);
	if (rc == 0 && !m->runs) {
		rc = u_thread_start(&m->thread, "vi-move", run, m);
		m->runs = rc == 0;
	}
	if (rc != 0) {
		u_warn(AREA, "service thread %u is not moved by load: %s", index, strerror(-rc));
		return rc;
	}
	m->number[i] = number;
	m->index[i] = index;
	m->threads[i] = (struct u_move_thread){ .cpus = *cpus };
	m->said[i] = U_MOVE_QUIET;
	m->count += i == m->count;
	return 0;
}

void vi_mover_destroy(struct vi_mover *m)
{
	if (m == NULL)
		return;
	if (m->runs) {
		atomic_store(&m->ends, 1);
		u_futex_wake(&m->ends, 1, ~UINT32_C(0), true);
		u_thread_join(m->thread);
	}
	free(m);
}
