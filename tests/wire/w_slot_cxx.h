/* SPDX-License-Identifier: BSD-2-Clause */
/* w_slot.h for C++17, which cannot read C11 atomics: its functions, by call. */
#ifndef W_SLOT_CXX_H
#define W_SLOT_CXX_H

#include <stdint.h>

struct w_stream;

struct w_stream *wx_stream_new(uint32_t max_length, uint32_t payload_bytes);
void wx_stream_free(struct w_stream *s);
int wx_slot_check(struct w_stream *s, uint8_t op, uint8_t flags, uint16_t reserved, uint32_t arg,
		  uint32_t frag, uint32_t rdma_length, uint32_t *inline_off);
uint32_t wx_seq(uint32_t n);
uint64_t wx_payload_rewind(uint64_t cursor, uint32_t payload_bytes);
uint32_t wx_payload_place(uint64_t *cursor, uint32_t payload_bytes, uint32_t length);
uint32_t wx_notify(uint32_t bits, uint32_t slot);
int wx_notify_due(uint32_t notify, uint32_t published);
uint32_t wx_receives(uint8_t op, uint8_t flags, uint32_t arg);
/* Does the word of an error hold these three? */
int wx_error_holds(uint32_t slot, uint32_t message, uint32_t why);
int wx_geometry_ok(uint32_t slots, uint32_t payload_bytes);

#endif
