/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The control slice, by which the agents of neighbours exchange records once their link is set up.
 *
 * Each agent reads its inbound control slice and writes the neighbour's:
 *
 *	line 0	 credit: records of this agent that the neighbour has consumed
 *	4096..	 CTL_RECORDS records of 512 bytes
 *
 * A record is published by its sequence word, stored after a fence; a writer may be CTL_RECORDS
 * ahead of the credit.  The doorbell is rung after a burst, and again for records that are not
 * consumed after a while, so a lost doorbell only delays.
 */
#include "ag_ctl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_link.h"
#include "ag_list.h"
#include "ag_msg.h"
#include "ag_route.h"
#include "ag_state.h"
#include "port.h"
#include "u_out.h"
#include "u_time.h"
#include "w_cm.h"
#include "w_ctl.h"
#include "w_slot.h"

/* With so many queued, requests to connect are held back. */
#define LINK_REQUESTS 128u
#define NUDGE_NS                                                                                   \
	(20 *                                                                                      \
	 INT64_C(1000000)) /* after which the doorbell is rung again for records not consumed */
#define CTL_RECORDS 64u
#define CTL_HEAD 4096u

struct ctl_record {
	uint8_t msg[AG_CTL_MSG_MAX];
	uint32_t len;
	_Atomic uint32_t seq; /* w_seq(n); stored last */
};
static_assert(AG_CTL_BATCH == 4 * CTL_RECORDS, "AG_CTL_BATCH");
static_assert(sizeof(struct ctl_record) == W_CTL_MAX, "ctl_record");
static_assert(sizeof(struct w_cm) <= AG_CTL_MSG_MAX, "w_cm in a record");
static_assert(sizeof(struct w_cm_tell) <= AG_CTL_MSG_MAX, "w_cm_tell in a record");

uint32_t ag_ctl_bytes(void)
{
	return CTL_HEAD + CTL_RECORDS * (uint32_t)sizeof(struct ctl_record);
}

/* Returns the place of record n in a control slice, of which there are CTL_RECORDS. */
static struct ctl_record *record_at(const struct port_map *map, uint32_t n)
{
	return (struct ctl_record *)((char *)map->base + CTL_HEAD) + n % CTL_RECORDS;
}

/* Returns the credit word of a control slice: records that the agent which writes this slice has consumed. */
static _Atomic uint32_t *credit_at(const struct port_map *map)
{
	return (_Atomic uint32_t *)map->base;
}

static bool is_self(const struct ag_link *l)
{
	return l->index == 0;
}

int ag_ctl_open(struct ag_link *l)
{
	int rc = port_slice_alloc(l->port, ag_ctl_bytes(), &l->ctl);

	if (rc != 0) {
		l->ctl.fd = -1;
		return rc;
	}
	rc = port_map(l->port, l->ctl.fd, l->ctl.len, PORT_INBOUND, &l->in);
	if (rc != 0) {
		close(l->ctl.fd);
		l->ctl.fd = -1;
		port_slice_free(l->port, l->ctl.id);
		return rc;
	}
	l->window_used += l->ctl.len;
	l->tx_next = l->tx_done = l->rx_next = l->rx_told = 0;
	l->hold_until = 0;
	l->stuck_since = 0;
	return 0;
}

void ag_ctl_close(struct ag_link *l)
{
	struct ag_list *pos, *tmp;

	port_unmap(l->port, &l->in);
	memset(&l->in, 0, sizeof(l->in));
	if (l->ctl.fd >= 0) {
		close(l->ctl.fd);
		l->ctl.fd = -1;
		port_slice_free(l->port, l->ctl.id);
		l->window_used -= l->ctl.len;
	}
	ag_list_each(pos, tmp, &l->queue) ag_msg_free(ag_list_entry(pos, struct ag_msg, node));
	ag_list_init(&l->queue);
	l->queue_len = 0;
	l->hold_until = 0;
}

bool ag_ctl_full(const struct ag_link *l)
{
	return !is_self(l) && l->queue_len >= AG_LINK_QUEUE;
}

bool ag_ctl_busy(const struct ag_link *l)
{
	return !is_self(l) && l->queue_len >= LINK_REQUESTS;
}

/*
 * The length of the queue at which the link is broken: a neighbour that causes answers and does not
 * read them cannot make it grow further.
 */
static uint32_t hard_limit(const struct ag_link *l)
{
	return 4 * AG_LINK_QUEUE + 2 * (l->conn_count + l->circuit_count);
}

void ag_ctl_send(struct ag_link *l, const void *msg)
{
	struct ag_msg *m;

	if (!is_self(l) && l->state != AG_LINK_UP)
		return;
	m = l->queue_len < hard_limit(l) || is_self(l) ? ag_msg_new(msg, NULL, 0) : NULL;
	if (m == NULL) {
		ag_link_break(l, "the neighbour's agent does not read its messages");
		return;
	}
	ag_list_append(&l->queue, &m->node);
	l->queue_len++;
	l->agent->dirty = true;
}

struct ag_msg *ag_ctl_pop(struct ag_link *l)
{
	struct ag_msg *m = ag_list_entry(l->queue.next, struct ag_msg, node);

	ag_list_remove(&m->node);
	l->queue_len--;
	return m;
}

/*
 * Stores the record, a fence, then the word that publishes it.  The caller has checked that there is room;
 * ag_ctl_ring() fences and rings after the burst.
 */
static void record_write(struct ag_link *l, const void *msg, uint32_t len)
{
	struct ctl_record *r = record_at(&l->out, l->tx_next);

	u_out_copy(&l->out.out, r->msg, msg, len);
	u_out_copy(&l->out.out, &r->len, &len, sizeof(len));
	u_out_fence(&l->out.out);
	u_out_store32(&l->out.out, &r->seq, w_seq(l->tx_next));
	l->tx_next++;
	l->ring = true;
}

/* Writes the oldest queued record and frees it.  The caller has checked that there is one, and room for it. */
static void queue_write(struct ag_link *l)
{
	struct ag_msg *m = ag_ctl_pop(l);

	record_write(l, m->bytes, m->len);
	ag_msg_free(m);
}

/* Link-state updates and queued records alternate, so that neither can keep the other waiting. */
void ag_ctl_write(struct ag_link *l)
{
	struct w_cm_links links;

	while (l->tx_next - l->tx_done < CTL_RECORDS) {
		bool queued = !ag_list_empty(&l->queue);

		if (!(l->links_last && queued) && ag_route_untold(l, &links)) {
			record_write(l, &links, sizeof(links));
			l->links_last = true;
		} else if (queued) {
			queue_write(l);
			l->links_last = false;
		} else {
			return;
		}
	}
}

/*
 * Reads the count of records that the neighbour consumed.  0, or -EPROTO: it is more than were written, and the
 * link is marked to be taken down.
 */
static int credit_read(struct ag_link *l)
{
	uint32_t credit = atomic_load_explicit(credit_at(&l->in), memory_order_acquire);

	if (credit - l->tx_done > l->tx_next - l->tx_done) {
		ag_link_break(l, "the neighbour's agent broke the protocol (credit)");
		return -EPROTO;
	}
	l->tx_done = credit;
	return 0;
}

bool ag_ctl_take_credit(struct ag_link *l)
{
	return l->state == AG_LINK_UP && l->broken == NULL && credit_read(l) == 0;
}

void ag_ctl_ring(struct ag_link *l)
{
	if (!l->ring)
		return;
	u_out_fence(&l->out.out);
	port_peer_db_ring(l->port, UINT32_C(1) << AG_DB_BIT);
	l->ring = false;
	l->nudge_at = u_now_ns() + NUDGE_NS;
}

void ag_ctl_return_credit(struct ag_link *l)
{
	uint32_t since = l->rx_next - l->rx_told;

	if (since == 0)
		return;
	u_out_store32(&l->out.out, credit_at(&l->out), l->rx_next);
	u_out_fence(&l->out.out);
	l->rx_told = l->rx_next;
	if (since >= CTL_RECORDS / 2)
		l->ring = true;
}

/*
 * The record is copied once; the copy is checked and used, as the neighbour can change the
 * original.
 */
bool ag_ctl_next(struct ag_link *l, void *copy)
{
	struct ctl_record *r = record_at(&l->in, l->rx_next);
	uint32_t len;
	int type;

	if (atomic_load_explicit(&r->seq, memory_order_acquire) != w_seq(l->rx_next))
		return false;
	len = r->len;
	memcpy(copy, r->msg, AG_CTL_MSG_MAX);
	type = len <= AG_CTL_MSG_MAX ? w_ctl_check(copy, len) : -EPROTO;
	if (type >= W_CM_REQ)
		return true;
	ag_link_break(l, "the neighbour's agent broke the protocol (record)");
	return false;
}

void ag_ctl_consumed(struct ag_link *l, int64_t now)
{
	l->heard_at = now;
	l->rx_next++;
	if (l->rx_next - l->rx_told >= CTL_RECORDS / 2)
		ag_ctl_return_credit(l);
}

/* Queues a heartbeat that asks the neighbour for an answer. */
static void heartbeat(struct ag_link *l)
{
	struct w_cm cm = {
		.src_host = (uint16_t)l->agent->cfg.host_id,
		.dst_host = l->peer_host,
		.status = 1,
		.path = { .hops = 1, .at = 1, .port = { (uint8_t)l->index } },
	};

	w_ctl_init(&cm, W_CM_HEARTBEAT, sizeof(cm));
	ag_ctl_send(l, &cm);
}

bool ag_ctl_silent(const struct ag_link *l, int64_t now)
{
	return l->conn_count + l->circuit_count > 0 && now - l->heard_at >= AG_SILENCE_NS;
}

int64_t ag_ctl_beat_timer(struct ag_link *l, int64_t now)
{
	if (l->conn_count + l->circuit_count == 0)
		return U_NEVER;
	if (ag_ctl_silent(l, now))
		ag_link_break(l, "the neighbour's agent is silent");
	if (now >= l->beat_at) {
		heartbeat(l);
		l->beat_at = now + AG_BEAT_NS;
	}
	return l->beat_at;
}

/*
 * A neighbour that consumes nothing for AG_SILENCE_NS is cut off, even if it sends heartbeats: processes that use it
 * are paused while much is queued.  Its credit was read just before.  Returns the next deadline, or U_NEVER while
 * nothing is queued.
 */
static int64_t stuck_timer(struct ag_link *l, int64_t now)
{
	if (ag_list_empty(&l->queue)) {
		l->stuck_since = 0;
		return U_NEVER;
	}
	if (l->stuck_since == 0 || l->stuck_at != l->tx_done) {
		l->stuck_since = now;
		l->stuck_at = l->tx_done;
	}
	if (now - l->stuck_since >= AG_SILENCE_NS)
		ag_link_break(l, "the neighbour's agent does not read its messages");
	return l->stuck_since + AG_SILENCE_NS;
}

int64_t ag_ctl_queue_timer(struct ag_link *l, int64_t now)
{
	int64_t next = stuck_timer(l, now);

	if (l->tx_next == l->tx_done && ag_list_empty(&l->queue))
		return next;
	if (now >= l->nudge_at) {
		port_peer_db_ring(l->port, UINT32_C(1) << AG_DB_BIT);
		l->nudge_at = now + NUDGE_NS;
	}
	return next < l->nudge_at ? next : l->nudge_at;
}
