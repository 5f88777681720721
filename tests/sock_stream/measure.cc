/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints figures of a stream between two threads; it is run by hand and is not a test. */
#include "pair.h"

#include <cerrno>
#include <thread>

#include <sched.h>

#include <gtest/gtest.h>

using namespace clu;

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void recv_polled(End &end, char *to, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t rc = end.recv(to + done, n - done);
		NEED(rc > 0 || rc == -EAGAIN);
		done += rc > 0 ? rc : 0;
	}
}

static void send_polled(End &end, const char *from, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t rc = end.send(from + done, n - done);
		NEED(rc > 0 || rc == -EAGAIN);
		done += rc > 0 ? rc : 0;
	}
}

static void ping_pong(Pair &p, size_t bytes, int rounds)
{
	std::vector<char> one(bytes), two(bytes);
	std::thread other([&] {
		pin(1);
		for (int i = 0; i < rounds; i++) {
			recv_polled(p.b, two.data(), bytes);
			send_polled(p.b, two.data(), bytes);
		}
	});
	pin(0);
	int64_t from = now_ns(), best = INT64_MAX;
	for (int i = 0; i < rounds; i++) {
		if (i % 1000 == 0) {
			int64_t now = now_ns();
			best = i > 0 && now - from < best ? now - from : best;
			from = now_ns();
		}
		send_polled(p.a, one.data(), bytes);
		recv_polled(p.a, one.data(), bytes);
	}
	other.join();
	printf("ping-pong %zu B: half a round trip %.3f us (best 1000)\n", bytes, best / 2e6);
}

static void stream(Pair &p, size_t piece, uint64_t total)
{
	std::vector<char> from(piece), to(piece);
	std::thread other([&] {
		pin(1);
		for (uint64_t done = 0; done < total; done += piece)
			recv_polled(p.b, to.data(), piece);
	});
	pin(0);
	int64_t start = now_ns();
	for (uint64_t done = 0; done < total; done += piece)
		send_polled(p.a, from.data(), piece);
	other.join();
	printf("stream of %zu B: %.2f GB/s\n", piece, total / double(now_ns() - start));
}

TEST(Measure, Figures)
{
	for (uint32_t ring : { 65536u, 262144u, 1u << 20 }) {
		Fabric fabric(1);
		Library library("host0", ring);
		Pair p;

		p.promoted("host0");
		printf("ring %u\n", ring);
		ping_pong(p, 64, 200000);
		ping_pong(p, 4096, 50000);
		stream(p, 4096, 1ull << 30);
		stream(p, 65536, 4ull << 30);
		stream(p, 262144, 4ull << 30);
	}
}
