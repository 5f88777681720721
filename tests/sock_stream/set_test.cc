/* SPDX-License-Identifier: BSD-2-Clause */
/* Many streams of one wait object; a thread arms only those that it has polled since (st_changes()). */
#include "pair.h"

#include <atomic>
#include <random>
#include <set>

#include <poll.h>

#include <gtest/gtest.h>

using namespace clu;

namespace {

constexpr size_t kStreams = 12;

/* The accepting ends of promoted pairs, with one wait object. */
class Set {
public:
	explicit Set(size_t n) : pairs(n)
	{
		if (st_wait_create(&wait) != 0)
			fail(__FILE__, __LINE__, "st_wait_create");
		for (Pair &p : pairs) {
			p.a.promote("host0");
			p.b.promote("host0", wait);
			hot.insert(p.b);
		}
		for (Pair &p : pairs)
			NEED(until([&] { return p.a.fast() && p.b.fast(); }));
	}
	~Set()
	{
		pairs.clear();
		st_wait_destroy(wait);
	}
	Set(const Set &) = delete;
	/* Sleeps unless something is there.  `events` of a stream are those that it does not have now. */
	void rest(const std::function<unsigned(st_stream *)> &events)
	{
		int own = st_sleep_begin(nullptr, nullptr);
		pollfd f[2] = { { own, POLLIN, 0 }, { st_wait_fd(wait), POLLIN, 0 } };
		bool quiet = st_changes() == seen;

		for (auto at = hot.begin(); quiet && at != hot.end();) {
			quiet = st_arm(*at, events(*at)) == 0;
			if (quiet)
				at = hot.erase(at);
		}
		quiet = quiet && st_wait_arm(wait) == 0 && !take();
		if (quiet) {
			sleeps++;
			if (poll(f, 2, 60000) < 1)
				fail(__FILE__, __LINE__, "nobody rang");
		}
		st_sleep_end();
		take();
		if (st_changes() != seen) {
			seen = st_changes();
			for (Pair &p : pairs)
				hot.insert(p.b);
		}
	}
	std::vector<Pair> pairs;
	std::set<st_stream *> hot;
	std::atomic<int> sleeps{ 0 };

private:
	bool take()
	{
		st_stream *some[4];
		bool any = false;

		while (int n = st_wait_take(wait, some, 4)) {
			any = true;
			for (int i = 0; i < n; i++) {
				hot.insert(some[i]);
				st_put(some[i]);
			}
		}
		return any;
	}
	st_wait *wait = nullptr;
	uint64_t seen = 0;
};

unsigned bytes(st_stream *)
{
	return ST_IN;
}

} // namespace

/* Each byte comes when the one before has been received, while other threads take entries and answers. */
TEST(SockSet, AStreamThatIsNotLookedAtStaysArmed)
{
	Await awaited("bytes of resting streams", stress() ? 1200 : 200);
	Fabric fabric(1);
	Library library("host0", 4096);
	Set set(kStreams);
	size_t rounds = scaled(4000, 200000), got = 0;
	std::atomic<size_t> received{ 0 };
	std::atomic<bool> ends{ false };
	Thread sender([&] {
		std::minstd_rand random(1);

		for (size_t i = 0; i < rounds; i++) {
			set.pairs[random() % kStreams].a.send_all("x", 1);
			while (received != i + 1)
				std::this_thread::yield();
		}
	});
	Thread other([&] {
		std::minstd_rand random(2);
		struct st_ready ready;

		while (!ends) {
			for (int i = 0; i < 40; i++)
				st_ready(set.pairs[random() % kStreams].b, &ready);
			for (unsigned i = random() % 100; i > 0; i--)
				std::this_thread::yield();
		}
	});

	while (got < rounds) {
		char byte;
		bool any = false;

		for (st_stream *s : std::set<st_stream *>(set.hot)) {
			iovec v = { &byte, 1 };

			any |= st_recv(s, &v, 1, 0) == 1;
		}
		if (any)
			received = ++got;
		else
			set.rest(bytes);
	}
	ends = true;
	EXPECT_GT(set.sleeps, 0);
	EXPECT_EQ(0u, stats().resets);
}

/* The thread has armed for bytes alone, since there was room, when another one fills the ring. */
TEST(SockSet, ASendThatFindsNoRoomIsTold)
{
	Await awaited("room", 100);
	Fabric fabric(1);
	Library library("host0", 65536);
	Set set(2);
	End &end = set.pairs[0].b;
	std::atomic<bool> full{ false };
	char much[4096] = {};
	Thread sleeper([&] {
		for (;;) {
			struct st_ready ready = {};

			if (set.hot.count(end))
				st_ready(end, &ready);
			if (full && (ready.events & ST_OUT))
				return;
			if (set.hot.count(end) && !(ready.events & ST_OUT))
				full = true;
			set.rest([&](st_stream *s) {
				return s == end && full ? ST_IN | ST_OUT : ST_IN;
			});
		}
	});

	NEED(until([&] { return set.sleeps > 0; }));
	/* A send that found no room may find room later, until the other end has no more to give. */
	NEED(until([&] {
		end.send(much, sizeof(much));
		return full.load();
	}));
	while (set.pairs[0].a.recv(much, sizeof(much)) > 0)
		;
	sleeper.join();
}

/* No entry of the completion queue reports it. */
TEST(SockSet, WhatAnotherThreadEndsIsCounted)
{
	Await awaited("a change", 100);
	Fabric fabric(1);
	Library library("host0", 65536);
	Set set(2);
	End &end = set.pairs[1].b;
	std::atomic<bool> seen{ false };
	Thread sleeper([&] {
		while (!seen) {
			struct st_ready ready = {};

			if (set.hot.count(end))
				st_ready(end, &ready);
			seen = ready.events & ST_RDHUP;
			if (!seen)
				set.rest(bytes);
		}
	});

	NEED(until([&] { return set.sleeps > 0; }));
	EXPECT_EQ(0, st_shutdown(end, SHUT_RD));
	NEED(until([&] { return seen.load(); }));
}
