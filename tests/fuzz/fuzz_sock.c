/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A hostile end of a stream: it writes anything into the ring, at any time, and sends any message. The reader takes
 * no byte from outside the ring and no more than there can be, and goes on or resets the connection.
 */
#include <stdio.h>
#include <stdlib.h>

#include "fz_input.h"
#include "st_paths.h"

#define RING (2 * ST_CALM_BYTES) /* the second half may be left out */
#define KEY (1ull << 63 | 0x123456789)

static void must(bool holds, const char *what)
{
	if (holds)
		return;
	fprintf(stderr, "%s\n", what);
	abort();
}

static void messages(const uint8_t *data, size_t size)
{
	struct st_message m = { .magic = ST_WIRE_MAGIC, .version = ST_WIRE_VERSION };
	int kind;

	st_message_check((const void *)memcpy(&m.bytes, data, size < 32 ? size : 32), size);
	m.kind = size > 0 ? data[0] % 8 : 0;
	kind = st_message_check(&m, sizeof(m));
	must(kind < 0 || kind == m.kind, "a message of another kind");
	if (kind == ST_MSG_HELLO)
		must(m.hello.ring_bytes >= ST_RING_LEAST && m.hello.ring_bytes <= ST_RING_MOST &&
			     m.hello.ring + m.hello.ring_bytes > m.hello.ring,
		     "a ring that cannot be");
}

/* Writes a header with any content at the next place, or at the one after it. */
static void put_header(struct fz_input *in, struct st_stream *s, uint64_t *at)
{
	struct st_header h = { (uint32_t)fz_get(in, 2), fz_pick(in, 4), 0 };

	if (fz_pick(in, 4) != 0)
		h.length %= 200;
	h.tag = st_tag(KEY, *at) ^ (fz_pick(in, 8) == 0);
	memcpy(s->link->ring + st_header_at(RING, *at), &h, sizeof(h));
	if (h.kind == ST_REC_OVER && st_may_skip(RING, *at))
		*at = st_next_position(RING, *at, h.kind, 0);
	else
		*at = h.length <= st_header_at(RING, *at) ? *at + st_record_bytes(h.length)
							  : *at + ST_HEADER_BYTES;
}

static void read_some(struct fz_input *in, struct st_stream *s)
{
	uint32_t n = (uint32_t)fz_get(in, 2);
	uint8_t *to = malloc(n + 1);
	struct iovec iov = { to, n };
	uint64_t before = s->rx.position;
	int flags = fz_pick(in, 3) == 0 ? MSG_PEEK : 0;
	ssize_t got = st_rx(s, &iov, 1, flags);

	must(got <= (ssize_t)n, "more than was asked for");
	/* At most one ring of records, where one record may say that the rest of the ring is left out. */
	must(s->rx.position >= before && s->rx.position - before < 2 * RING, "the position jumped");
	must(st_rx_own_bytes(s) <= RING, "more than a ring holds");
	free(to);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fz_input in = { data, size };
	static struct st_stream s;
	struct st_link l = { .ring_bytes = RING, .key = KEY };
	struct st_wait w = { .cq_fd = -1, .epoll_fd = -1 };
	uint64_t at = 0;

	messages(data, size);
	must(st_credit_ok(16, 32, 64) && !st_credit_ok(32, 16, 64) && !st_credit_ok(32, 80, 64),
	     "credit outside of what was written");
	memset(&s, 0, sizeof(s));
	l.ring = calloc(1, RING);
	atomic_store(&l.broken, true); /* nothing is sent */
	s.fd = s.closing_fd = -1;
	s.link = &l;
	s.wait = &w;
	s.rx.path = ST_RX_RING;
	atomic_store(&s.refs, 1);
	atomic_store(&s.phase, ST_PHASE_UP);
	while (in.left > 0) {
		switch (fz_pick(&in, 3)) {
		case 0:
			put_header(&in, &s, &at);
			break;
		case 1:
			l.ring[fz_get(&in, 2) % RING] = (uint8_t)fz_get(&in, 1);
			break;
		default:
			if (s.rx.path == ST_RX_RING && !atomic_load(&s.dead))
				read_some(&in, &s);
		}
	}
	/* The stream was listed for a helper thread that does not run. */
	st_process.streams = NULL;
	free(s.rx.stash);
	free(l.ring);
	return 0;
}
