/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams that pollers poll: how they come back, and the sleeps of both sides. */
#include "pair.h"

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

using namespace clu;

namespace {

/* A fabric of one host, and the library with pollers. */
struct Here {
	explicit Here(uint32_t pollers = 1) : fabric(1)
	{
		st_config config = {};
		config.size = sizeof(config);

		config.device = "host0";
		config.pollers = pollers;
		if (st_init(&config) != 0)
			fail(__FILE__, __LINE__, "st_init");
	}
	~Here() { st_fini(20000); }
	Fabric fabric;
};

std::map<void *, int> news, armed; /* how often each owner came back */

void back(void *owner, bool is_armed)
{
	(is_armed ? armed : news)[owner]++;
}

int count(const std::map<void *, int> &owners)
{
	int n = 0;

	for (const auto &owner : owners)
		n += owner.second;
	return n;
}

/* Waits until a stream has come back. */
int take()
{
	int n, before = count(armed);

	while ((n = st_watch_take(back)) == 0 && count(armed) == before)
		std::this_thread::yield();
	return n;
}

struct Poller : testing::Test {
	void SetUp() override
	{
		news.clear();
		armed.clear();
	}
};

/* A thread that receives from streams; pollers have the idle ones. */
class Reader {
public:
	explicit Reader(std::vector<st_stream *> of) : streams(of), waker(st_waker_get())
	{
		if (waker == nullptr)
			fail(__FILE__, __LINE__, "st_waker_get");
	}
	~Reader() { st_waker_put(waker); }
	Reader(const Reader &) = delete;
	/* Sleeps without a time limit unless something is there, in the order that st_stream.h requires. */
	void rest()
	{
		int own = st_sleep_begin(nullptr, nullptr);
		std::vector<pollfd> f = { { own, POLLIN, 0 }, { st_waker_fd(waker), POLLIN, 0 } };

		st_waker_want(waker);
		bool quiet = true;
		for (st_stream *s : streams)
			quiet = quiet && watch(s);
		for (st_stream *s : streams) {
			quiet = quiet && st_wait_arm(st_wait_of(s)) == 0;
			f.push_back({ st_wait_fd(st_wait_of(s)), POLLIN, 0 });
		}
		if (quiet && st_watch_take(back) == 0) {
			sleeps++;
			if (poll(f.data(), f.size(), 60000) < 1)
				fail(__FILE__, __LINE__, "nobody rang");
		}
		st_sleep_end();
		st_waker_clear(waker);
		for (st_stream *s : streams)
			forget(st_wait_of(s));
		st_watch_take(back);
		for (st_stream *s : streams) {
			if (news.count(s))
				given.erase(s);
			if (armed.count(s)) {
				given.erase(s);
				left[s] = true;
			}
		}
		news.clear();
		armed.clear();
	}
	/* Receives; returns the number of bytes. */
	int read()
	{
		int all = 0;
		char some[64];

		for (st_stream *s : streams) {
			iovec v = { some, sizeof(some) };
			ssize_t n = given.count(s) ? 0 : st_recv(s, &v, 1, 0);

			if (n > 0) {
				all += static_cast<int>(n);
				left.erase(s);
			}
		}
		return all;
	}
	int sleeps = 0;

private:
	/* Gives the stream to a poller; false: something is there. */
	bool watch(st_stream *s)
	{
		if (given.count(s))
			return true;
		if (!left.count(s) && st_watch_give(s, ST_IN, waker, s) != nullptr) {
			given[s] = true;
			return true;
		}
		return st_arm(s, ST_IN) == 0;
	}
	static void forget(st_wait *w)
	{
		st_stream *told[4];

		for (int n = st_wait_take(w, told, 4); n > 0; n--)
			st_put(told[n - 1]);
	}
	std::vector<st_stream *> streams;
	std::map<st_stream *, bool> given, left;
	st_waker *waker;
};

} // namespace

TEST_F(Poller, ThereIsNoneUnlessAskedFor)
{
	Here here(0);
	Pair p;

	p.promoted("host0");
	EXPECT_FALSE(st_pollers_on());
	EXPECT_EQ(st_waker_get(), nullptr);
}

TEST_F(Poller, TooManyAreRefused)
{
	st_config config = {};
	config.size = sizeof(config);

	config.pollers = ST_POLLERS_MOST + 1;
	EXPECT_EQ(st_init(&config), -EINVAL);
}

TEST_F(Poller, BytesBringAStreamBack)
{
	Here here;
	Pair p;
	char got[8] = {};

	EXPECT_FALSE(st_pollers_on()) << "before there is a NIC";
	p.promoted("host0");
	st_waker *waker = st_waker_get();
	ASSERT_NE(waker, nullptr);
	for (int i = 0; i < 100; i++) {
		p.a.send_all("hello", 5);
		ASSERT_NE(st_watch_give(p.b, ST_IN, waker, &p.b), nullptr);
		EXPECT_EQ(take(), 1);
		ASSERT_EQ(p.b.recv(got, 8), 5);
	}
	EXPECT_EQ(news[&p.b], 100);
	/*
	 * The bytes come while the poller polls, or, on a slow machine, after it has armed the
	 * stream, after 5 ms.
	 */
	for (int i = 0; i < 100; i++) {
		ASSERT_NE(st_watch_give(p.b, ST_IN, waker, &p.b), nullptr);
		p.a.send_all("hello", 5);
		take();
		ASSERT_EQ(p.b.recv_wait(got, 8), 5);
		EXPECT_EQ(news[&p.b] + armed[&p.b], 101 + i);
	}
	st_waker_put(waker);
}

TEST_F(Poller, AStreamOnTcpCannotBeGiven)
{
	Here here;
	Pair p, plain;

	p.promoted("host0");
	st_waker *waker = st_waker_get();
	EXPECT_EQ(st_watch_give(plain.b, ST_IN, waker, &plain.b), nullptr);
	st_waker_put(waker);
}

TEST_F(Poller, AnIdleStreamComesBackArmed)
{
	Here here;
	Pair p;

	p.promoted("host0");
	st_waker *waker = st_waker_get();
	st_wait *w = st_wait_of(p.b);
	/*
	 * It comes back with news if the helper polls the stream at the same moment; then it is
	 * given again.
	 */
	EXPECT_TRUE(until(
		[&] { return st_watch_give(p.b, ST_IN, waker, &p.b) != nullptr && take() == 0; }));
	EXPECT_EQ(armed[&p.b], 1);
	uint64_t arms = stats().arms;
	EXPECT_GT(arms, 0u);
	/* As after st_arm(): the other end rings. */
	while (st_wait_arm(w) != 0)
		std::this_thread::yield(); /* an entry of the arm came */
	p.a.send_all("x", 1);
	pollfd f = { st_wait_fd(w), POLLIN, 0 };
	ASSERT_EQ(poll(&f, 1, 60000), 1);
	EXPECT_EQ(stats().arms, arms);
	st_waker_put(waker);
}

TEST_F(Poller, RoomBringsAStreamBack)
{
	Here here;
	Pair p;
	std::vector<char> block(4096, 'r');
	size_t sent = 0;

	p.promoted("host0");
	st_waker *waker = st_waker_get();
	for (ssize_t n; (n = p.a.send(block.data(), block.size())) > 0;)
		sent += static_cast<size_t>(n);
	ASSERT_NE(st_watch_give(p.a, ST_OUT, waker, &p.a), nullptr);
	std::vector<char> all(sent);
	p.b.recv_all(all.data(), sent);
	while (news[&p.a] == 0 && armed[&p.a] == 0)
		st_watch_take(back);
	if (armed[&p.a] > 0) { /* this machine was slow: the end that reads rings */
		struct st_ready ready;
		do
			st_ready(p.a, &ready);
		while (!(ready.events & ST_OUT));
	}
	st_waker_put(waker);
}

TEST_F(Poller, ADroppedStreamComesBackToNobody)
{
	Here here;
	Pair p;

	p.promoted("host0");
	st_waker *waker = st_waker_get();
	st_watch *watch = st_watch_give(p.b, ST_IN, waker, &p.b);
	ASSERT_NE(watch, nullptr);
	st_watch_drop(watch);
	p.a.send_all("x", 1);
	ASSERT_NE(st_watch_give(p.b, ST_IN, waker, &p.a), nullptr);
	EXPECT_EQ(take(), 1);
	EXPECT_EQ(news.count(&p.b) + armed.count(&p.b), 0u);
	EXPECT_EQ(news[&p.a], 1);
	st_waker_put(waker);
}

TEST_F(Poller, LeavingTheViBringsAStreamBack)
{
	Here here;
	Pair p;

	p.promoted("host0");
	st_waker *waker = st_waker_get();
	ASSERT_NE(st_watch_give(p.b, ST_IN, waker, &p.b), nullptr);
	st_demote(p.a, ST_WHY_ASKED);
	take();
	if (armed[&p.b] == 0) {
		EXPECT_EQ(news[&p.b], 1);
	}
	st_waker_put(waker);
}

TEST_F(Poller, CloseBringsAStreamBack)
{
	Here here;
	Pair p;

	p.promoted("host0");
	st_waker *waker = st_waker_get();
	ASSERT_NE(st_watch_give(p.b, ST_IN, waker, &p.b), nullptr);
	p.b.close();
	take();
	EXPECT_EQ(news[&p.b] + armed[&p.b], 1);
	st_waker_put(waker);
}

/* Bytes come at any moment while the reader is about to sleep. */
TEST_F(Poller, NoSleeperIsLeftAsleep)
{
	for (uint32_t pollers : { 1u, 2u }) {
		Here here(pollers);
		Pair p, q;
		std::atomic<int> told{ 0 };
		const int rounds = 1000;

		p.promoted("host0");
		q.promoted("host0");
		Reader reader({ p.b.s, q.b.s });
		std::thread sender([&] {
			Random random(pollers);

			for (int i = 0; i < rounds; i++) {
				(random.below(2) ? p : q).a.send_all("x", 1);
				for (size_t n = random.below(40); n > 0; n--)
					std::this_thread::yield();
				while (told.load() < i)
					std::this_thread::yield();
			}
		});
		while (told < rounds) {
			told += reader.read();
			if (told < rounds)
				reader.rest();
		}
		sender.join();
		EXPECT_EQ(told.load(), rounds);
		EXPECT_GT(reader.sleeps, 0);
	}
}

TEST_F(Poller, TheWakerIsWrittenForASleeperAndForNoOther)
{
	Here here;
	Pair p;
	char c;

	p.promoted("host0");
	st_waker *waker = st_waker_get();
	uint64_t before = stats().poller_wakes;
	p.a.send_all("x", 1);
	ASSERT_NE(st_watch_give(p.b, ST_IN, waker, &p.b), nullptr);
	EXPECT_EQ(take(), 1);
	EXPECT_EQ(stats().poller_wakes, before) << "nobody slept";
	ASSERT_EQ(p.b.recv(&c, 1), 1);
	st_waker_put(waker);
	Reader reader({ p.b.s });
	/* On a slow machine the poller arms the stream, and the other end rings. */
	for (int i = 0; i < 10000 && stats().poller_wakes == before; i++) {
		std::thread sender([&] { p.a.send_all("y", 1); });

		while (reader.read() == 0)
			reader.rest();
		sender.join();
	}
	EXPECT_GT(stats().poller_wakes, before);
}

TEST_F(Poller, AChildOfForkHasNone)
{
	Here here;
	Pair p;

	p.promoted("host0");
	st_waker *waker = st_waker_get();
	st_watch *watch = st_watch_give(p.b, ST_IN, waker, &p.b);
	ASSERT_NE(watch, nullptr);
	pid_t child = fork();
	if (child == 0) {
		st_fork_child();
		bool none = !st_pollers_on() && !st_waker_valid(waker) && !st_watch_valid(watch) &&
			    st_watch_take(back) == 0 && st_waker_get() == nullptr;
		st_watch_drop(watch);
		st_waker_want(waker);
		st_waker_put(waker);
		_exit(none ? 0 : 1);
	}
	int status = 0;
	ASSERT_EQ(waitpid(child, &status, 0), child);
	EXPECT_EQ(status, 0);
	p.a.send_all("x", 1);
	take();
	EXPECT_EQ(news[&p.b] + armed[&p.b], 1);
	st_waker_put(waker);
}
