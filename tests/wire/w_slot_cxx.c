/* SPDX-License-Identifier: BSD-2-Clause */
#include "w_slot_cxx.h"

#include <stdlib.h>

#include "w_slot.h"

struct w_stream *wx_stream_new(uint32_t max_length, uint32_t payload_bytes)
{
	struct w_stream *s = calloc(1, sizeof(*s));

	s->max_length = max_length;
	s->payload_bytes = payload_bytes;
	return s;
}

void wx_stream_free(struct w_stream *s)
{
	free(s);
}

int wx_slot_check(struct w_stream *s, uint8_t op, uint8_t flags, uint16_t reserved, uint32_t arg,
		  uint32_t frag, uint32_t rdma_length, uint32_t *inline_off)
{
	struct w_rdma rdma = { .length = rdma_length };

	return w_slot_check(s, op, flags, reserved, arg, frag, &rdma, inline_off);
}

uint32_t wx_seq(uint32_t n)
{
	return w_seq(n);
}

uint64_t wx_payload_rewind(uint64_t cursor, uint32_t payload_bytes)
{
	return w_payload_rewind(cursor, payload_bytes);
}

uint32_t wx_payload_place(uint64_t *cursor, uint32_t payload_bytes, uint32_t length)
{
	return w_payload_place(cursor, payload_bytes, length);
}

uint32_t wx_notify(uint32_t bits, uint32_t slot)
{
	return w_notify(bits, slot);
}

int wx_notify_due(uint32_t notify, uint32_t published)
{
	return w_notify_due(notify, published);
}

int wx_geometry_ok(uint32_t slots, uint32_t payload_bytes)
{
	return w_geometry_ok(slots, payload_bytes);
}

uint32_t wx_receives(uint8_t op, uint8_t flags, uint32_t arg)
{
	return w_receives(op, flags, arg);
}

int wx_error_holds(uint32_t slot, uint32_t message, uint32_t why)
{
	uint64_t word = w_error_word(slot, message, (enum w_err)why);

	return word != 0 && w_error_slot(word) == slot && w_error_message(word) == message &&
	       w_error_why(word) == (enum w_err)why;
}
