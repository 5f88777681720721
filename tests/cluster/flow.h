/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The common part of tests of flows of messages under failing links: messages whose kind, length
 * and content follow from their number, and the state that a fabric must have when the flows have
 * ended.
 */
#ifndef FLOW_H
#define FLOW_H

#include "clu.h"

namespace clu {

enum Kind { SEND, SEND_IMM, WRITE, WRITE_IMM, READ };

/* Does a message of this kind complete a receive? */
inline bool notifies(Kind kind)
{
	return kind != WRITE && kind != READ;
}

uint64_t mix(uint64_t x);

constexpr size_t kLongest = 5u << 18; /* bytes of a message */
/* Content of messages: kLongest bytes that differ from number to number. */
const char *pattern(uint64_t number);
/* From 8 bytes on a message begins with its number itself. */
void put(char *at, uint64_t number, size_t length);
bool holds(const char *at, uint64_t number, size_t length);

/*
 * Descriptor `i` of a slab, with its content; immediate data is the lower half of the number.
 * `place` and `handle` are of the peer's memory.
 */
VIP_DESCRIPTOR *fill_message(Slab &slab, size_t i, Kind kind, uint64_t number, size_t length,
			     uint64_t place, VIP_MEM_HANDLE handle);

/*
 * Gives the processor away: a dozen processes that poll would leave none to those that have
 * something to do.  With CLUSTER_BUSY=1 they poll all the same.
 */
void rest();

/* Window memory that each host lends out. */
std::vector<uint64_t> windows(const Fabric &fabric);
/* Nothing is lent out, apart from what a link itself needs. */
void expect_idle(const Fabric &fabric, const std::vector<uint64_t> &before);

} // namespace clu

#endif
