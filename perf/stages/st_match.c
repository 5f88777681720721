/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "st.h"
#include "vipl.h"

/* ---- series ---- */

int st_result_init(struct st_result *res, uint32_t batches)
{
	size_t i, most = (size_t)batches * ST_ROUNDS * 2;

	memset(res, 0, sizeof(*res));
	for (i = 0; i <= ST_POINTS; i++) {
		res->stage[i].v = calloc(most, sizeof(double));
		if (!res->stage[i].v)
			return -ENOMEM;
	}
	res->stamped.v = calloc(batches, sizeof(double));
	res->bare.v = calloc(batches, sizeof(double));
	return res->stamped.v && res->bare.v ? 0 : -ENOMEM;
}

void st_result_fini(struct st_result *res)
{
	size_t i;

	for (i = 0; i <= ST_POINTS; i++)
		free(res->stage[i].v);
	free(res->stamped.v);
	free(res->bare.v);
}

void st_series_add(struct st_series *s, double value)
{
	s->v[s->count++] = value;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double st_series_at(struct st_series *s, double percent)
{
	size_t i = (size_t)(percent / 100 * (double)s->count);

	if (!s->count)
		return 0;
	qsort(s->v, s->count, sizeof(double), by_value);
	return s->v[i < s->count ? i : s->count - 1];
}

double st_series_mean(const struct st_series *s)
{
	double sum = 0;
	size_t i;

	for (i = 0; i < s->count; i++)
		sum += s->v[i];
	return s->count ? sum / (double)s->count : 0;
}

/* ---- stamps ---- */

static void match_sent(const struct u_trace_stamp *s, struct st_message *m)
{
	switch (s->point) {
	case U_TRACE_post_entered:
		m->at[ST_POSTED] = s->time;
		break;
	case U_TRACE_payload_written: /* the last slot's count, here and below */
		m->at[ST_WRITTEN] = s->time;
		break;
	case U_TRACE_slot_published:
		m->at[ST_PUBLISHED] = s->time;
		m->sent_slot = s->word;
		break;
	default:
		break;
	}
}

static void match_received(const struct u_trace_stamp *s, struct st_message *m)
{
	switch (s->point) {
	case U_TRACE_slot_seen:
		if (!m->at[ST_SEEN] || m->seen_slot != s->word)
			m->at[ST_SEEN] = s->time;
		m->seen_slot = s->word;
		break;
	case U_TRACE_payload_copied:
		m->at[ST_COPIED] = s->time;
		break;
	case U_TRACE_completion_written:
		if ((s->word & VIP_STATUS_OP_MASK) == VIP_STATUS_OP_RECEIVE)
			m->at[ST_COMPLETED] = s->time;
		break;
	case U_TRACE_completion_taken: /* that of a send comes earlier */
		m->at[ST_TAKEN] = s->time;
		break;
	default:
		break;
	}
}

void st_match(const struct u_trace_ring *ring, uint32_t from, uint32_t to, struct st_message *sent,
	      struct st_message *received)
{
	for (; from < to; from++) {
		if (sent)
			match_sent(&ring->at[from], sent);
		if (received)
			match_received(&ring->at[from], received);
	}
}

static bool complete(const struct st_message *m)
{
	size_t i;

	for (i = 0; i < ST_POINTS; i++) {
		if (!m->at[i])
			return false;
	}
	return m->sent_slot == m->seen_slot;
}

void st_result_add(struct st_result *res, const struct st_message *m)
{
	size_t i;

	if (!complete(m)) {
		res->left_out++;
		return;
	}
	/* As differences with a sign: the counters of two processors may differ. */
	for (i = 0; i + 1 < ST_POINTS; i++)
		st_series_add(&res->stage[i], (double)(int64_t)(m->at[i + 1] - m->at[i]));
	st_series_add(&res->stage[ST_WHOLE], (double)(int64_t)(m->at[ST_TAKEN] - m->at[ST_POSTED]));
}
