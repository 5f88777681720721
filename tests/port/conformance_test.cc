/* SPDX-License-Identifier: BSD-2-Clause */
/* The rules of port.h, which every port must keep, whatever its kind. */
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "open_fds.h"
#include "rig.h"

class Port : public testing::TestWithParam<Variant> {
protected:
	Variant v() const { return GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(All, Port, testing::ValuesIn(all_variants()),
			 [](const testing::TestParamInfo<Variant> &i) { return i.param.name(); });

TEST_P(Port, LimitsAreAsConfigured)
{
	Rig rig(v(), { 5, 3, 1 << 20 });

	for (struct port *p : { rig.agent[0], rig.user[0], rig.user[1] }) {
		EXPECT_STREQ(p->limits.kind, v().kind);
		EXPECT_EQ(p->limits.db_bits, 5u);
		EXPECT_EQ(p->limits.spads, 3u);
		EXPECT_EQ(p->limits.window_bytes, 1u << 20);
		EXPECT_GE(p->limits.slice_align, 4096u);
		EXPECT_EQ(p->limits.slice_align & (p->limits.slice_align - 1), 0u);
	}
	EXPECT_STREQ(rig.user[0]->limits.name, v().self() ? "self" : "right");
	EXPECT_EQ(port_ops_check(rig.user[0]->ops), 0);
}

/* Windows and slices */

TEST_P(Port, SlicesAreSealedMemoryOfTheirLength)
{
	if (v().cdev())
		GTEST_SKIP() << "slices are descriptors of the module, not files with a length";
	Rig rig(v());
	struct port_slice s;
	struct stat st;

	ASSERT_EQ(port_slice_alloc(rig.agent[1], 5000, &s), 0);
	EXPECT_NE(s.id, 0u);
	EXPECT_GE(s.len, 5000u);
	EXPECT_EQ(s.len % rig.agent[1]->limits.slice_align, 0u);
	ASSERT_EQ(fstat(s.fd, &st), 0);
	EXPECT_EQ(static_cast<size_t>(st.st_size), s.len);
	EXPECT_EQ(fcntl(s.fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL),
		  F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	EXPECT_EQ(fcntl(s.fd, F_GETFD), FD_CLOEXEC);
	EXPECT_NE(ftruncate(s.fd, 0), 0);
	port_slice_free(rig.agent[1], s.id);
	close(s.fd);
}

TEST_P(Port, WindowIsExhaustedAndReused)
{
	Rig rig(v());
	struct port_slice s[16];
	struct port_slice more = {};

	for (auto &one : s)
		ASSERT_EQ(port_slice_alloc(rig.agent[1], 65536, &one), 0);
	EXPECT_EQ(port_slice_alloc(rig.agent[1], 1, &more), -ENOSPC);
	EXPECT_EQ(more.id, 0u);
	port_slice_free(rig.agent[1], s[3].id);
	port_slice_free(rig.agent[1], s[3].id);
	EXPECT_EQ(port_slice_alloc(rig.agent[1], 65537, &more), -ENOSPC);
	ASSERT_EQ(port_slice_alloc(rig.agent[1], 65536, &more), 0);
	for (auto &one : s) {
		EXPECT_NE(one.id, more.id);
		port_slice_free(rig.agent[1], one.id);
		close(one.fd);
	}
	port_slice_free(rig.agent[1], more.id);
	close(more.fd);
	ASSERT_EQ(port_slice_alloc(rig.agent[1], 1 << 20, &more), 0);
	close(more.fd);
}

TEST_P(Port, ImpossibleSlicesAreRefused)
{
	Rig rig(v());
	struct port_slice s;

	EXPECT_EQ(port_slice_alloc(rig.agent[1], 0, &s), -EINVAL);
	EXPECT_EQ(port_slice_alloc(rig.agent[1], SIZE_MAX, &s), -ENOSPC);
	EXPECT_EQ(port_slice_alloc(rig.agent[1], SIZE_MAX - 4095, &s), -ENOSPC);
	EXPECT_EQ(port_slice_alloc(rig.agent[1], (1 << 20) + 1, &s), -ENOSPC);
	port_slice_free(rig.agent[1], 12345);
}

TEST_P(Port, OnlyOfferedSlicesOpen)
{
	Rig rig(v());
	struct port_slice s;
	int fd = -1;

	EXPECT_EQ(port_peer_slice_open(rig.agent[0], 77, 4096, &fd), -ENOENT);
	ASSERT_EQ(port_slice_alloc(rig.agent[1], 8192, &s), 0);
	EXPECT_EQ(port_peer_slice_open(rig.agent[0], s.id + 1, 4096, &fd), -ENOENT);
	EXPECT_EQ(port_peer_slice_open(rig.agent[0], s.id, 8193, &fd), -ERANGE);
	EXPECT_EQ(fd, -1);
	ASSERT_EQ(port_peer_slice_open(rig.agent[0], s.id, 8192, &fd), 0);
	EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	EXPECT_EQ(port_peer_slice_open(rig.agent[0], s.id, 8192, &fd), -ENOENT) << "used up";
	close(s.fd);
	port_slice_free(rig.agent[1], s.id);
	EXPECT_EQ(port_peer_slice_open(rig.agent[0], s.id, 8192, &fd), -ENOENT);
}

TEST_P(Port, FreedSlicesAreOfferedNoMore)
{
	Rig rig(v());
	struct port_slice s;
	int fd;

	ASSERT_EQ(port_slice_alloc(rig.agent[1], 4096, &s), 0);
	port_slice_free(rig.agent[1], s.id);
	close(s.fd);
	EXPECT_EQ(port_peer_slice_open(rig.agent[0], s.id, 4096, &fd), -ENOENT);
}

TEST_P(Port, MemoryOfAnotherPortIsShared)
{
	Rig rig(v());
	Rig other({ "self", "emu", false });
	struct port_slice s;
	struct port_map in;
	struct port_map out;
	uint32_t id;
	int fd;

	ASSERT_EQ(port_slice_alloc(other.agent[0], 8192, &s), 0);
	if (v().cdev()) {
		EXPECT_EQ(port_slice_share(rig.agent[1], s.fd, 8192, &id), -EOPNOTSUPP)
			<< "it does not lie behind the adapter";
		close(s.fd);
		return;
	}
	EXPECT_EQ(port_slice_share(rig.agent[1], s.fd, 8193, &id), -ERANGE);
	ASSERT_EQ(port_slice_share(rig.agent[1], s.fd, 8192, &id), 0);
	ASSERT_EQ(port_peer_slice_open(rig.agent[0], id, 8192, &fd), 0);
	ASSERT_EQ(port_map(rig.user[1], s.fd, 8192, PORT_INBOUND, &in), 0);
	ASSERT_EQ(port_map(rig.user[0], fd, 8192, PORT_OUTBOUND, &out), 0);
	u_out_copy(&out.out, static_cast<char *>(out.base) + 4097, "shared", 7);
	u_out_fence(&out.out);
	if (rig.late())
		port_flush(rig.user[0]);
	EXPECT_STREQ(static_cast<char *>(in.base) + 4097, "shared");
	port_unmap(rig.user[1], &in);
	port_unmap(rig.user[0], &out);
	port_slice_free(rig.agent[1], id);
	close(s.fd);
	close(fd);
}

TEST_P(Port, MemoryOfTheSamePortIsSharedAgain)
{
	Rig rig(v());
	Window w(rig, 8192);
	struct port_map out;
	uint32_t id;
	int fd;

	EXPECT_EQ(port_slice_share(rig.agent[1], w.slice.fd, w.slice.len + 1, &id), -ERANGE);
	EXPECT_EQ(port_slice_share(rig.agent[1], w.slice.fd, 0, &id), -EINVAL);
	ASSERT_EQ(port_slice_share(rig.agent[1], w.slice.fd, 8192, &id), 0);
	EXPECT_NE(id, w.slice.id);
	ASSERT_EQ(port_peer_slice_open(rig.agent[0], id, 8192, &fd), 0);
	ASSERT_EQ(port_map(rig.user[0], fd, 8192, PORT_OUTBOUND, &out), 0);
	u_out_copy(&out.out, static_cast<char *>(out.base) + 4097, "again", 6);
	u_out_fence(&out.out);
	port_flush(rig.user[0]);
	EXPECT_STREQ(static_cast<char *>(w.in.base) + 4097, "again");
	port_unmap(rig.user[0], &out);
	port_slice_free(rig.agent[1], id);
	close(fd);
}

TEST_P(Port, MapsOnlyMemoryThatCannotVanish)
{
	Rig rig(v());
	struct port_map map = {};
	struct port_slice s;
	int soft = memfd_create("soft", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int pipes[2];
	int opened;

	ASSERT_EQ(ftruncate(soft, 8192), 0);
	ASSERT_EQ(pipe2(pipes, O_CLOEXEC), 0);
	ASSERT_EQ(port_slice_alloc(rig.agent[1], 8192, &s), 0);
	ASSERT_EQ(port_peer_slice_open(rig.agent[0], s.id, 8192, &opened), 0);
	for (enum port_dir dir : { PORT_INBOUND, PORT_OUTBOUND }) {
		bool in = dir == PORT_INBOUND;
		struct port *whose = rig.user[in ? 1 : 0];
		int fd = in ? s.fd : opened;

		EXPECT_EQ(port_map(rig.user[0], soft, 8192, dir, &map), -EINVAL);
		EXPECT_EQ(port_map(rig.user[0], pipes[0], 8192, dir, &map), -EINVAL);
		EXPECT_EQ(port_map(rig.user[0], -1, 8192, dir, &map), -EINVAL);
		EXPECT_EQ(port_map(whose, fd, 0, dir, &map), -EINVAL);
		EXPECT_EQ(port_map(whose, fd, 8193, dir, &map), -ERANGE);
		EXPECT_EQ(port_map(whose, fd, SIZE_MAX, dir, &map), -ERANGE);
		EXPECT_EQ(map.base, nullptr);
	}
	close(opened);
	close(soft);
	close(pipes[0]);
	close(pipes[1]);
	close(s.fd);
}

TEST_P(Port, SlicesLeakNoDescriptor)
{
	Rig rig(v());
	int before;

	Window warm(rig, 4096);
	EXPECT_TRUE(rig.settle(
		[] { return true; })); /* descriptors of events are made when asked for */
	before = open_fds();
	for (int i = 0; i < 300; i++)
		Window w(rig, 4096 * (1 + i % 5));
	EXPECT_TRUE(rig.settle([&] { return open_fds() == before; }))
		<< open_fds() << " instead of " << before;
}

/* The first word of each page of a map. */
static void store_into_pages(const struct port_map &map, uint64_t word)
{
	for (size_t at = 0; at < map.len; at += 4096)
		u_out_store64(&map.out,
			      reinterpret_cast<uint64_t *>(static_cast<char *>(map.base) + at),
			      word);
	u_out_fence(&map.out);
}

/* A process of the peer keeps its maps of slices that were freed. */
TEST_P(Port, FreedSlicesAreOutOfReachWhenTheirPagesAreUsedAgain)
{
	Rig rig(v());
	const size_t len = 512 << 10;
	std::vector<struct port_map>
		kept; /* of more memory than the adapter's windows hold together */
	struct port_slice s;
	struct port_map in;
	struct port_map out;
	int fd;

	while (kept.size() < 20) {
		ASSERT_TRUE(rig.settle([&] {
			return port_slice_alloc(rig.agent[1], len, &s) == 0;
		})) << "the pages do not come back";
		ASSERT_EQ(port_map(rig.user[1], s.fd, len, PORT_INBOUND, &in), 0);
		for (auto &old : kept)
			store_into_pages(old, ~UINT64_C(0));
		port_flush(rig.user[0]);
		for (size_t at = 0; at < len; at += 4096)
			ASSERT_EQ(static_cast<char *>(in.base)[at], 0) << at;
		ASSERT_EQ(port_peer_slice_open(rig.agent[0], s.id, len, &fd), 0);
		ASSERT_EQ(port_map(rig.user[0], fd, len, PORT_OUTBOUND, &out), 0);
		kept.push_back(out);
		store_into_pages(out, 1);
		close(fd);
		port_unmap(rig.user[1], &in);
		close(s.fd);
		port_slice_free(rig.agent[1], s.id);
	}
	for (auto &map : kept)
		port_unmap(rig.user[0], &map);
}

TEST_P(Port, MemoryOfTheWindowIsSharedAsOftenAsOneLikes)
{
	Rig rig(v());
	struct port_slice s = {};
	struct port_map in;
	struct port_map out;
	uint32_t id;
	int fd;

	if (!v().cdev()) {
		EXPECT_EQ(port_memory_alloc(rig.agent[1], 8192, &s), -EOPNOTSUPP)
			<< "any memory will do";
		return;
	}
	EXPECT_EQ(port_memory_alloc(rig.agent[1], 0, &s), -EINVAL);
	EXPECT_EQ(port_memory_alloc(rig.agent[1], (1 << 20) + 1, &s), -ENOSPC);
	ASSERT_EQ(port_memory_alloc(rig.agent[1], 5000, &s), 0);
	EXPECT_EQ(s.len, 8192u);
	EXPECT_EQ(port_peer_slice_open(rig.agent[0], s.id, 4096, &fd), -ENOENT) << "not offered";
	ASSERT_EQ(port_map(rig.user[1], s.fd, s.len, PORT_INBOUND, &in), 0);
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(port_slice_share(rig.agent[1], s.fd, s.len, &id), 0);
		ASSERT_EQ(port_peer_slice_open(rig.agent[0], id, s.len, &fd), 0);
		ASSERT_EQ(port_map(rig.user[0], fd, s.len, PORT_OUTBOUND, &out), 0);
		u_out_store32(&out.out, static_cast<uint32_t *>(out.base), i + 1);
		u_out_fence(&out.out);
		port_flush(rig.user[0]);
		EXPECT_EQ(*static_cast<volatile int *>(in.base), i + 1);
		port_slice_free(rig.agent[1], id);
		close(fd);
		port_unmap(rig.user[0], &out);
	}
	port_link_disable(rig.agent[0]);
	ASSERT_TRUE(rig.settle_link(PORT_LINK_DOWN));
	EXPECT_EQ(*static_cast<volatile int *>(in.base), 3) << "it does not end with the link";
	struct port_slice more = {};
	EXPECT_EQ(port_memory_alloc(rig.agent[1], 4096, &more), 0) << "and there is more";
	close(more.fd);
	port_slice_free(rig.agent[1], more.id);
	port_unmap(rig.user[1], &in);
	close(s.fd);
	port_slice_free(rig.agent[1], s.id);
	ASSERT_EQ(port_link_enable(rig.agent[0]), 0);
	ASSERT_TRUE(rig.settle_link(PORT_LINK_UP));
	EXPECT_EQ(port_memory_alloc(rig.agent[1], 1 << 20, &s), 0) << "all came back";
	close(s.fd);
}

/* Window memory behind an adapter can be mapped by processes of its own host, too. */
TEST_P(Port, MemoryOfAnAdapterIsMappedBySelf)
{
	if (!v().cdev())
		GTEST_SKIP() << "this is about slices of the module";
	Rig rig(v());
	Rig own({ "self", "emu", true });
	Rig pair({ "pair", "emu", true });
	Window w(rig, 8192);
	struct port_map map = {};

	EXPECT_EQ(port_map(own.user[0], w.slice.fd, 8193, PORT_INBOUND, &map), -ERANGE);
	EXPECT_EQ(port_map(own.user[0], w.slice.fd, 0, PORT_INBOUND, &map), -EINVAL);
	EXPECT_EQ(port_map(pair.user[0], w.slice.fd, 8192, PORT_INBOUND, &map), -EINVAL)
		<< "a neighbour could have sent it";
	EXPECT_EQ(map.base, nullptr);
	ASSERT_EQ(port_map(own.user[0], w.slice.fd, 8192, PORT_OUTBOUND, &map), 0);
	u_out_store32(&map.out, static_cast<uint32_t *>(map.base), 77);
	EXPECT_EQ(w.in32(0), 77u);
	port_unmap(own.user[0], &map);
}

/* Stores */

TEST_P(Port, StoresAreVisibleAfterAFence)
{
	Rig rig(v());
	Window w(rig, 16384);
	std::vector<uint8_t> data(16384);

	for (size_t i = 0; i < data.size(); i++)
		data[i] = static_cast<uint8_t>(i * 7 + (i >> 8));
	for (size_t len : { 1, 3, 4, 8, 63, 64, 65, 127, 1000, 4096, 9001 }) {
		for (size_t off : { 0, 1, 4, 60, 64, 100, 4093 }) {
			memset(w.in.base, 0, w.in.len);
			w.store(off, data.data(), len);
			w.land();
			ASSERT_EQ(memcmp(w.in_bytes() + off, data.data(), len), 0) << len;
			ASSERT_EQ(w.in_bytes()[off + len], 0);
			ASSERT_TRUE(off == 0 || w.in_bytes()[off - 1] == 0);
		}
	}
	w.store(0, data.data(), data.size());
	w.land();
	EXPECT_EQ(memcmp(w.in.base, data.data(), data.size()), 0);
}

TEST_P(Port, WordsAreVisibleAfterAFence)
{
	Rig rig(v());
	Window w(rig, 4096);
	uint64_t wide;

	for (uint32_t i = 0; i < 2000; i++) {
		u_out_store32(&w.out.out, w.out32(i * 4 % 4096), i + 1);
		w.land();
		ASSERT_EQ(w.in32(i * 4 % 4096), i + 1);
		u_out_store64(&w.out.out, w.out64(128), ~UINT64_C(0) - i);
		w.land();
		memcpy(&wide, w.in_bytes() + 128, 8);
		ASSERT_EQ(wide, ~UINT64_C(0) - i);
	}
}

TEST_P(Port, LaterStoresToTheSameBytesWin)
{
	Rig rig(v());
	Window w(rig, 4096);

	for (uint32_t i = 0; i < 500; i++) {
		u_out_store32(&w.out.out, w.out32(64), 2 * i);
		u_out_store32(&w.out.out, w.out32(64), 2 * i + 1);
		w.land();
		ASSERT_EQ(w.in32(64), 2 * i + 1);
	}
}

TEST_P(Port, FlushMakesStoresVisible)
{
	Rig rig(v());
	Window one(rig, 4096);
	Window two(rig, 4096);

	for (uint32_t i = 1; i < 500; i++) {
		u_out_store32(&one.out.out, one.out32(i * 68 % 4096 & ~3u), i);
		u_out_store32(&two.out.out, two.out32(i * 68 % 4096 & ~3u), i);
		port_flush(rig.user[0]);
		ASSERT_EQ(one.in32(i * 68 % 4096 & ~3u), i);
		ASSERT_EQ(two.in32(i * 68 % 4096 & ~3u), i);
	}
}

/* Payload, fence, flag, fence: the wire protocol relies on this order, here as another thread sees it. */
TEST_P(Port, FencedFlagsPublishTheirPayload)
{
	Rig rig(v());
	Window w(rig, 8192);
	const uint32_t rounds = 3000;
	uint32_t broken = 0;
	int64_t deadline = u_now_ns() + kPatience;

	std::thread reader([&] {
		uint32_t seen = 0;
		uint32_t now;

		while (seen < rounds && u_now_ns() < deadline) {
			now = w.in32(0);
			if (now == seen)
				std::this_thread::yield();
			for (uint32_t i = 0; now != seen && i < 16; i++)
				broken += w.in32(4096 + i * 128) < now;
			seen = now;
		}
		broken += seen != rounds;
	});
	for (uint32_t n = 1; n <= rounds; n++) {
		for (uint32_t i = 0; i < 16; i++)
			u_out_store32(&w.out.out, w.out32(4096 + i * 128), n);
		w.fence();
		u_out_store32(&w.out.out, w.out32(0), n);
		w.fence();
	}
	reader.join();
	EXPECT_EQ(broken, 0u);
}

TEST_P(Port, StoresOfManyThreadsAllLand)
{
	Rig rig(v());
	Window w(rig, 65536);
	std::vector<std::thread> threads;

	for (unsigned int t = 0; t < 4; t++) {
		threads.emplace_back([&w, t] {
			uint8_t mine[200];

			memset(mine, static_cast<int>(t + 1), sizeof(mine));
			for (size_t off = t * 16384; off + 200 <= (t + 1) * 16384; off += 200)
				w.store(off, mine, sizeof(mine));
			w.land();
		});
	}
	for (auto &t : threads)
		t.join();
	for (size_t i = 0; i < 65536; i++) {
		bool stored = i % 16384 < 16384 / 200 * 200;

		ASSERT_EQ(w.in_bytes()[i], stored ? i / 16384 + 1 : 0) << i;
	}
}

/* Doorbells */

TEST_P(Port, EachDoorbellBitRings)
{
	for (uint32_t bits : { 1u, 2u, 16u, 31u, 32u }) {
		Rig rig(v(), { bits, 8, 1 << 20 });

		EXPECT_EQ(port_db_read(rig.user[1]), 0u);
		for (uint32_t i = 0; i < bits; i++) {
			rig.ring(UINT32_C(1) << i);
			ASSERT_EQ(port_db_read(rig.user[1]), UINT32_C(1) << i);
			port_db_clear(rig.user[1], UINT32_C(1) << i);
			ASSERT_EQ(port_db_read(rig.user[1]), 0u);
		}
		rig.ring(UINT32_MAX);
		EXPECT_EQ(port_db_read(rig.user[1]), UINT32_MAX >> (32 - bits));
	}
}

TEST_P(Port, DoorbellsOnlyRingAtThePeer)
{
	if (v().self())
		GTEST_SKIP() << "self is its own peer";
	Rig rig(v());

	rig.ring(0xff);
	EXPECT_EQ(port_db_read(rig.user[0]), 0u);
	EXPECT_EQ(port_db_read(rig.user[1]), 0xffu);
}

TEST_P(Port, DoorbellsCoalesceAndClearByBit)
{
	Rig rig(v());

	for (int i = 0; i < 10; i++)
		rig.ring(0x5);
	EXPECT_EQ(port_db_read(rig.user[1]), 0x5u);
	port_db_clear(rig.user[1], 0x1);
	EXPECT_EQ(port_db_read(rig.user[1]), 0x4u);
	port_db_clear(rig.user[1], 0x2);
	EXPECT_EQ(port_db_read(rig.user[1]), 0x4u);
	rig.ring(0x1);
	port_db_clear(rig.user[1], UINT32_MAX);
	EXPECT_EQ(port_db_read(rig.user[1]), 0u);
}

TEST_P(Port, MaskedDoorbellsAreDeliveredWhenTheMaskClears)
{
	Rig rig(v());
	uint32_t ticket;

	port_db_set_mask(rig.user[1], 0x6);
	rig.ring(0x7);
	EXPECT_EQ(port_db_read(rig.user[1]), 0x1u);
	ticket = port_irq_ticket(rig.user[1]->irq);
	port_db_clear_mask(rig.user[1], 0x8);
	EXPECT_EQ(port_irq_wait(rig.user[1]->irq, ticket, 0x8, 0), -ETIMEDOUT)
		<< "nothing was set behind that mask";
	port_db_clear_mask(rig.user[1], 0x2);
	EXPECT_EQ(port_db_read(rig.user[1]), 0x3u);
	EXPECT_EQ(port_irq_wait(rig.user[1]->irq, ticket, 0x2, 0), 0);
	port_db_clear_mask(rig.user[1], UINT32_MAX);
	EXPECT_EQ(port_db_read(rig.user[1]), 0x7u);
}

TEST_P(Port, EachViewSeesEveryRing)
{
	Rig rig(v());
	struct port *views[] = { rig.user[1], rig.attach(1), rig.attach(1), rig.attach(1) };
	struct port *late;

	port_db_set_mask(views[3], 0x2);
	rig.ring(0x3);
	port_db_clear(views[1], 0x1);
	EXPECT_EQ(port_db_read(views[0]), 0x3u);
	EXPECT_EQ(port_db_read(views[1]), 0x2u);
	EXPECT_EQ(port_db_read(views[2]), 0x3u);
	EXPECT_EQ(port_db_read(views[3]), 0x1u);
	late = rig.attach(1);
	EXPECT_EQ(port_db_read(late), 0u) << "what rang before a view was there is not for it";
}

/* Interrupts */

TEST_P(Port, WaitReturnsAtOnceWhenSomethingRangSinceTheTicket)
{
	Rig rig(v());
	struct port_irq *irq = rig.user[1]->irq;
	uint32_t ticket = port_irq_ticket(irq);

	rig.ring(0x4);
	EXPECT_EQ(port_irq_wait(irq, ticket, 0x1, -1), 0);
	EXPECT_EQ(port_irq_wait(irq, port_irq_ticket(irq), 0x4, 0), -ETIMEDOUT);
	EXPECT_EQ(port_irq_wait(irq, port_irq_ticket(irq), 0x4, 1000000), -ETIMEDOUT);
	EXPECT_EQ(port_irq_wait(irq, port_irq_ticket(irq), 0, -1), -EINVAL);
}

TEST_P(Port, RingsAndKicksWakeSleepers)
{
	Rig rig(v());
	struct port_irq *irq = rig.user[1]->irq;

	for (int how = 0; how < 2; how++) {
		uint32_t ticket = port_irq_ticket(irq);
		std::atomic<bool> awake{ false };
		std::thread sleeper([&] {
			while (port_irq_wait(irq, ticket, 0x10, kPatience) == 0 &&
			       port_irq_ticket(irq) == ticket)
				;
			awake = port_irq_ticket(irq) != ticket;
		});
		if (how == 0)
			port_peer_db_ring(rig.user[0], 0x10);
		else
			port_irq_kick(irq, 0x10);
		sleeper.join();
		EXPECT_TRUE(awake);
	}
}

/* A thread that no peer rings sleeps in the kernel, and stays there until its deadline. */
TEST_P(Port, WaitingThreadSleeps)
{
	Rig rig(v());
	struct port_irq *irq = rig.user[1]->irq;
	std::atomic<int> tid{ 0 };
	std::atomic<bool> slept{ false };
	std::atomic<bool> ended{ false };
	struct rusage before;
	struct rusage after;
	int waits = 0;

	std::thread sleeper([&] {
		int64_t patience = u_now_ns() + 60 * kSecond;

		tid = gettid();
		getrusage(RUSAGE_THREAD, &before);
		while (!slept && u_now_ns() < patience) {
			int64_t start = u_now_ns();

			EXPECT_EQ(port_irq_wait(irq, port_irq_ticket(irq), 0x1, kSecond / 5),
				  -ETIMEDOUT);
			EXPECT_GE(u_now_ns() - start, kSecond / 5);
			waits++;
		}
		getrusage(RUSAGE_THREAD, &after);
		ended = true;
	});
	while (!ended) {
		slept = slept || (tid != 0 && is_asleep(tid));
		std::this_thread::yield();
	}
	sleeper.join();
	EXPECT_TRUE(slept);
	/* Each pause of a thread that polls again and again would count. */
	EXPECT_LE(after.ru_nvcsw - before.ru_nvcsw, 20 * waits);
}

/* Scratchpads */

TEST_P(Port, ScratchpadsAreReadAndWrittenFromBothSides)
{
	for (uint32_t count : { 1u, 8u, 64u }) {
		Rig rig(v(), { 16, count, 1 << 20 });

		for (uint32_t i = 0; i < count; i++) {
			EXPECT_EQ(port_spad_read(rig.agent[1], i), 0u);
			EXPECT_EQ(port_peer_spad_write(rig.agent[0], i, 100 + i), 0);
		}
		port_flush(rig.agent[0]);
		for (uint32_t i = 0; i < count; i++) {
			EXPECT_EQ(port_spad_read(rig.agent[1], i), 100 + i);
			EXPECT_EQ(port_peer_spad_read(rig.agent[0], i), 100 + i);
			EXPECT_EQ(port_spad_write(rig.agent[1], i, 200 + i), 0);
			EXPECT_EQ(port_peer_spad_read(rig.agent[0], i), 200 + i);
		}
		EXPECT_EQ(port_spad_write(rig.agent[0], count, 1), -EINVAL);
		EXPECT_EQ(port_peer_spad_write(rig.agent[0], count, 1), -EINVAL);
		EXPECT_EQ(port_spad_read(rig.agent[0], count), UINT32_MAX);
		EXPECT_EQ(port_peer_spad_read(rig.agent[0], count), UINT32_MAX);
	}
}

TEST_P(Port, ScratchpadsAreTheAgents)
{
	Rig rig(v());
	struct port *view = rig.attach(0);

	ASSERT_EQ(port_spad_write(rig.agent[0], 0, 7), 0);
	ASSERT_EQ(port_spad_write(rig.agent[1], 0, 7), 0);
	EXPECT_EQ(port_spad_write(view, 0, 8), -EPERM);
	EXPECT_EQ(port_peer_spad_write(view, 0, 8), -EPERM);
	port_flush(view);
	EXPECT_EQ(port_spad_read(view, 0), UINT32_MAX);
	EXPECT_EQ(port_peer_spad_read(view, 0), UINT32_MAX);
	EXPECT_EQ(port_spad_read(rig.agent[0], 0), 7u);
	EXPECT_EQ(port_spad_read(rig.agent[1], 0), 7u);
}

/* Link */

TEST_P(Port, LinkOfSelfIsAlwaysUp)
{
	if (!v().self())
		GTEST_SKIP() << "has a cable";
	Rig rig(v());
	uint32_t generation = 0;

	EXPECT_EQ(port_link_enable(rig.agent[0]), 0);
	port_link_disable(rig.agent[0]);
	EXPECT_EQ(port_link_state(rig.user[0], &generation), PORT_LINK_UP);
	EXPECT_NE(generation, 0u);
}

TEST_P(Port, LinkIsUpWhenBothSidesEnabledIt)
{
	if (v().self())
		GTEST_SKIP() << "always up";
	Rig rig(v());
	uint32_t generation[4] = {};

	ASSERT_EQ(port_link_state(rig.user[0], &generation[0]), PORT_LINK_UP);
	EXPECT_NE(generation[0], 0u);
	for (int round = 1; round < 4; round++) {
		port_link_disable(rig.agent[round & 1]);
		ASSERT_TRUE(rig.settle_link(PORT_LINK_DOWN));
		EXPECT_EQ(port_link_state(rig.user[0], nullptr), PORT_LINK_DOWN);
		EXPECT_EQ(port_link_state(rig.user[1], nullptr), PORT_LINK_DOWN);
		port_peer_db_ring(rig.user[0], 1);
		EXPECT_EQ(port_db_read(rig.user[1]), 0u);
		EXPECT_EQ(port_peer_spad_write(rig.agent[0], 0, 1), -ENOTCONN);
		EXPECT_EQ(port_peer_spad_read(rig.agent[0], 0), UINT32_MAX);
		EXPECT_EQ(port_link_enable(rig.agent[round & 1]), 0);
		ASSERT_TRUE(rig.settle_link(PORT_LINK_UP));
		ASSERT_EQ(port_link_state(rig.user[0], &generation[round]), PORT_LINK_UP);
		for (int i = 0; i < round; i++)
			EXPECT_NE(generation[i], generation[round]);
		rig.ring(1);
		EXPECT_EQ(port_db_read(rig.user[1]), 1u);
		port_db_clear(rig.user[1], 1);
	}
}

TEST_P(Port, ServiceCountsLinkChanges)
{
	if (v().self())
		GTEST_SKIP() << "always up";
	Rig rig(v());
	int changes = 0;

	while (port_service(rig.agent[0]) + port_service(rig.agent[1]) > 0)
		;
	port_link_disable(rig.agent[1]);
	for (int64_t end = u_now_ns() + kPatience; changes == 0 && u_now_ns() < end;)
		changes = port_service(rig.agent[0]);
	EXPECT_EQ(changes, 1);
	EXPECT_EQ(port_service(rig.agent[1]), 1);
	EXPECT_EQ(port_service(rig.agent[0]), 0);
	EXPECT_EQ(port_service(rig.agent[1]), 0);
}

/* Views of clients */

TEST_P(Port, ViewsHaveNoSayInWhatIsTheAgents)
{
	Rig rig(v());
	struct port *view = rig.attach(0);
	struct port_slice s;
	char text[PORT_VIEW_MAX];
	int fds[PORT_ATTACH_FDS];
	unsigned int nfds;
	uint32_t id;
	int fd;

	EXPECT_EQ(port_slice_alloc(view, 4096, &s), -EPERM);
	EXPECT_EQ(port_peer_slice_open(view, 1, 4096, &fd), -EPERM);
	EXPECT_EQ(port_slice_share(view, 0, 4096, &id), -EPERM);
	EXPECT_EQ(port_memory_alloc(view, 4096, &s), -EPERM);
	EXPECT_EQ(port_link_enable(view), -EPERM);
	EXPECT_EQ(port_export_view(view, text, sizeof(text), fds, &nfds), -EPERM);
	port_link_disable(view);
	port_slice_free(view, 1);
	EXPECT_EQ(port_link_state(view, nullptr), PORT_LINK_UP);
	EXPECT_EQ(port_event_fd(view) < 0,
		  std::string(v().kind).find("fault") == std::string::npos);
	EXPECT_EQ(port_service(view), 0);
}

TEST_P(Port, ViewTextThatDoesNotFitIsRefused)
{
	Rig rig(v());
	char text[PORT_VIEW_MAX];
	int fds[PORT_ATTACH_FDS];
	unsigned int nfds;
	size_t full;

	ASSERT_EQ(port_export_view(rig.agent[0], text, sizeof(text), fds, &nfds), 0);
	full = strlen(text) + 1;
	EXPECT_EQ(port_export_view(rig.agent[0], text, full, fds, &nfds), 0);
	for (size_t size = 0; size < full; size += 7)
		EXPECT_EQ(port_export_view(rig.agent[0], text, size, fds, &nfds), -ENOSPC);
}

TEST_P(Port, BadViewTextIsRefused)
{
	Rig rig(v());
	char good[PORT_VIEW_MAX];
	struct port *view = nullptr;
	int fds[PORT_ATTACH_FDS];
	unsigned int nfds;
	int before;

	ASSERT_EQ(port_export_view(rig.agent[0], good, sizeof(good), fds, &nfds), 0);
	before = open_fds();
	for (size_t cut = 0; cut < std::string(good).find("name=") + 5; cut++) {
		std::string text(good, cut);

		EXPECT_EQ(port_attach(text.c_str(), fds, nfds, rig.irq[0], &view), -EINVAL) << text;
	}
	for (std::string text :
	     { std::string(good) + " | strict", std::string(good) + " | model x=1",
	       std::string("cdev") + good, std::string(300, 'x'),
	       std::string(good) + " | fault seed=1 drop_db=2" })
		EXPECT_EQ(port_attach(text.c_str(), fds, nfds, rig.irq[0], &view), -EINVAL) << text;
	EXPECT_EQ(view, nullptr);
	EXPECT_EQ(open_fds(), before);
}
