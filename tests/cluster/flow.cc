/* SPDX-License-Identifier: BSD-2-Clause */
#include "flow.h"

#include <cstdlib>

#include <poll.h>
#include <sched.h>

#include <gtest/gtest.h>

namespace clu {

uint64_t mix(uint64_t x)
{
	x = (x ^ x >> 31) * 0x9e3779b97f4a7c15u;
	return x ^ x >> 29;
}

const char *pattern(uint64_t number)
{
	static const std::vector<char> bytes = [] {
		std::vector<char> all(kLongest + 4096);
		for (size_t i = 0; i < all.size(); i++)
			all[i] = static_cast<char>(mix(i) >> 8);
		return all;
	}();
	return bytes.data() + mix(number) % 4096;
}

void put(char *at, uint64_t number, size_t length)
{
	memcpy(at, pattern(number), length);
	if (length >= sizeof(number))
		memcpy(at, &number, sizeof(number));
}

bool holds(const char *at, uint64_t number, size_t length)
{
	size_t head = length >= sizeof(number) ? sizeof(number) : 0;

	return memcmp(at, &number, head) == 0 &&
	       memcmp(at + head, pattern(number) + head, length - head) == 0;
}

static VIP_UINT16 control_of(Kind kind)
{
	switch (kind) {
	case SEND:
		return VIP_CONTROL_OP_SENDRECV;
	case SEND_IMM:
		return VIP_CONTROL_OP_SENDRECV | VIP_CONTROL_IMMEDIATE;
	case WRITE:
		return VIP_CONTROL_OP_RDMAWRITE;
	case WRITE_IMM:
		return VIP_CONTROL_OP_RDMAWRITE | VIP_CONTROL_IMMEDIATE;
	default:
		return VIP_CONTROL_OP_RDMAREAD;
	}
}

VIP_DESCRIPTOR *fill_message(Slab &slab, size_t i, Kind kind, uint64_t number, size_t length,
			     uint64_t place, VIP_MEM_HANDLE handle)
{
	VIP_UINT16 control = control_of(kind);
	bool sends = kind == SEND || kind == SEND_IMM;
	VIP_DESCRIPTOR *d = sends ? slab.fill(i, length, control)
				  : slab.fill_rdma(i, length, control, place, handle);

	if (kind == READ)
		memset(slab.data(i), 0, length);
	else
		put(slab.data(i), number, length);
	d->CS.ImmediateData = static_cast<VIP_UINT32>(number);
	return d;
}

void rest()
{
	static const bool busy = getenv("CLUSTER_BUSY") != nullptr;
	if (busy)
		sched_yield();
	else
		poll(nullptr, 0, 1);
}

std::vector<uint64_t> windows(const Fabric &fabric)
{
	std::vector<uint64_t> used;
	for (unsigned i = 0; i < fabric.size(); i++)
		used.push_back(fabric.window_used(i));
	return used;
}

void expect_idle(const Fabric &fabric, const std::vector<uint64_t> &before)
{
	for (unsigned i = 0; i < fabric.size(); i++) {
		EXPECT_TRUE(until([&] { return fabric.connections(i) == 0; }));
		EXPECT_TRUE(until([&] { return fabric.window_used(i) == before[i]; }))
			<< "host " << i << " lends out " << fabric.window_used(i) << " bytes, "
			<< before[i] << " at first";
	}
}

} // namespace clu
