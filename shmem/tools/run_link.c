/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run_link.h"

#define HEAD sizeof(struct run_wire_head)

struct run_link *run_link_create(int in, int out, bool up, uint32_t pes)
{
	struct run_link *l = calloc(1, sizeof(*l));

	if (l != NULL)
		*l = (struct run_link){ .in = in, .out = out, .up = up, .pes = pes };
	return l;
}

void run_link_destroy(struct run_link *l)
{
	if (l == NULL)
		return;
	close(l->in);
	if (l->out != l->in)
		close(l->out);
	free(l->data);
	free(l->queue);
	free(l);
}

/* ---- what arrives ---- */

/*
 * Checks a head that is whole, and makes room for its data in place of those of the frame before. 0, -EPROTO,
 * -EPROTONOSUPPORT or -ENOMEM.
 */
static int begin(struct run_link *l)
{
	int rc = run_wire_known(&l->head);
	int64_t most = l->up ? run_wire_up_max(&l->head, l->pes)
			     : run_wire_down_max(&l->head, l->pes);

	if (rc != 0)
		return rc;
	if (most < 0 || l->head.bytes > most)
		return -EPROTO;
	free(l->data);
	l->data = malloc((size_t)l->head.bytes + 1);
	if (l->data == NULL)
		return -ENOMEM;
	l->data[l->head.bytes] = '\0';
	return 0;
}

int run_link_pull(struct run_link *l)
{
	size_t want = HEAD - l->got;
	char *at = (char *)&l->head + l->got;
	ssize_t n;
	int rc;

	if (l->got == HEAD + l->head.bytes && l->got >= HEAD) {
		l->got = 0;
		at = (char *)&l->head;
		want = HEAD;
	} else if (l->got >= HEAD) {
		at = l->data + (l->got - HEAD);
		want = HEAD + l->head.bytes - l->got;
	}
	n = read(l->in, at, want);
	if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return 0;
	if (n < 0 && errno == EINTR)
		return -EAGAIN;
	if (n <= 0)
		return -ECONNRESET;
	l->got += (size_t)n;
	if (l->got == HEAD) {
		rc = begin(l);
		if (rc != 0)
			return rc;
	}
	return l->got >= HEAD && l->got == HEAD + l->head.bytes ? 1 : -EAGAIN;
}

/* ---- what leaves ---- */

/* Makes room in the queue for so many bytes more. 0 or -ENOMEM. */
static int reserve(struct run_link *l, size_t more)
{
	size_t room = l->room != 0 ? l->room : 4096;
	char *queue;

	while (room < l->queued + more)
		room *= 2;
	if (room == l->room)
		return 0;
	queue = realloc(l->queue, room);
	if (queue == NULL)
		return -ENOMEM;
	l->queue = queue;
	l->room = room;
	return 0;
}

/* Puts bytes at the end of the queue, which has room for them: reserve(). */
static void append(struct run_link *l, const void *at, size_t bytes)
{
	if (bytes > 0)
		memcpy(l->queue + l->queued, at, bytes);
	l->queued += bytes;
}

int run_link_queue(struct run_link *l, enum run_wire_kind kind, uint32_t arg, const void *a,
		   size_t a_bytes, const void *b, size_t b_bytes)
{
	struct run_wire_head head = run_wire_head(kind, arg, (uint32_t)(a_bytes + b_bytes));
	int rc = reserve(l, HEAD + a_bytes + b_bytes);

	if (rc != 0)
		return rc;
	append(l, &head, HEAD);
	append(l, a, a_bytes);
	append(l, b, b_bytes);
	return 0;
}

void run_link_push(struct run_link *l)
{
	size_t done = 0;
	ssize_t n;

	if (l->queued == 0)
		return;
	while (done < l->queued) {
		n = write(l->out, l->queue + done, l->queued - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			break;
		done = n <= 0 ? l->queued : done + (size_t)n;
	}
	memmove(l->queue, l->queue + done, l->queued - done);
	l->queued -= done;
	if (l->queued == 0) {
		free(l->queue);
		l->queue = NULL;
		l->room = 0;
	}
}
