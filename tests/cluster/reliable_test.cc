/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages between two hosts whose link is cut and restored and loses doorbells.  On reliable
 * levels each arrives exactly once and in order, or its sender is told: within a connection the
 * receiver sees 0, 1, 2 ... without gap or repetition, up to where the connection broke, and then
 * the sender's sends fail.  Both connect again and go on.
 */
#include "clu.h"

#include <cstdio>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

using namespace clu;

constexpr unsigned kStreams = 8;
constexpr size_t kMax = 100u << 10, kReceives = 24, kSends = 12;
constexpr unsigned kGenerations = 2000; /* connections of a stream, one after the other */

/* The cells of each connection on the board. */
enum { POSTED, SUCCEEDED, RECEIVED, GENERATION_CELLS };
static std::atomic<uint64_t> &generation(unsigned stream, uint64_t number, unsigned what)
{
	NEED(number < kGenerations);
	return cell(256 + (stream * kGenerations + number) * GENERATION_CELLS + what);
}
static std::atomic<uint64_t> &finished(unsigned stream)
{
	return cell(stream);
}
static std::atomic<uint64_t> &generations(unsigned stream)
{
	return cell(16 + stream);
}
/* The number of cuts of the link that are planned, and of those made. */
static std::atomic<uint64_t> &cuts_planned()
{
	return cell(40);
}
static std::atomic<uint64_t> &cuts_made()
{
	return cell(41);
}
/* Messages of all streams. */
static std::atomic<uint64_t> &sent_so_far()
{
	return cell(42);
}

static VIP_RELIABILITY_LEVEL level(unsigned stream)
{
	return stream % 2 ? VIP_SERVICE_RELIABLE_RECEPTION : VIP_SERVICE_RELIABLE_DELIVERY;
}

struct Head {
	uint32_t stream, generation, number, last;
};

/* The rest of a message is a piece of this, from a place that its number tells. */
static const char *pattern(const Head &head)
{
	static const std::vector<char> bytes = [] {
		std::vector<char> all(kMax + 4096);
		uint32_t x = 12345;
		for (char &c : all)
			c = static_cast<char>((x = x * 1664525 + 1013904223) >> 24);
		return all;
	}();
	return bytes.data() + (head.number * 61 + head.stream * 7 + head.generation) % 4096;
}

/* Mostly short. */
static size_t random_length(Random &random)
{
	double x = static_cast<double>(random.next() >> 11) * 0x1p-53;
	return sizeof(Head) + static_cast<size_t>(x * x * x * x * x * x * (kMax - sizeof(Head)));
}

/* ---- the sender ----------------------------------------------------------------------------- */

class Sender {
public:
	Sender(Nic &n, unsigned s, uint64_t messages)
	    : nic(n), stream(s), count(messages), slab(n, kSends, kMax), vi(n, attrs(level(s))),
	      random(100 + s)
	{
	}

	void run()
	{
		while (!finished(stream)) {
			VIP_RETURN rc = connect();
			if (rc == VIP_NO_MATCH && finished(stream))
				return; // the last message had arrived all the same
			NEED_RC(VIP_SUCCESS, rc);
			posted = taken = good = 0;
			while (step())
				;
			vi.disconnect();
			generations(stream) = ++number;
		}
	}

private:
	/* Tries again until the receiver is there, which waits no more once it has the last message. */
	VIP_RETURN connect()
	{
		VIP_RETURN rc = VIP_NO_MATCH;
		for (int i = 0; i < 20 && rc == VIP_NO_MATCH && !finished(stream); i++)
			rc = request(nic, vi, 1, text("stream%u", stream), 1);
		return rc;
	}

	/*
	 * May more messages be sent before the next cut?  However late the cuts come, each has its part of
	 * the messages before it.
	 */
	bool may_go_on()
	{
		uint64_t made = cuts_made(), planned = cuts_planned();
		return made >= planned || total * (planned + 1) < count * (made + 1);
	}

	/* Posts a send if there is room, takes those that completed; false at the end of the connection. */
	bool step()
	{
		bool more = (total < count || !last_sent) && may_go_on();
		if (more && posted - taken < kSends &&
		    posted - generation(stream, number, RECEIVED) < kReceives)
			post();
		VIP_DESCRIPTOR *d;
		VIP_RETURN rc = VipSendDone(vi, &d);
		if (d)
			taken++;
		if (rc == VIP_SUCCESS)
			generation(stream, number, SUCCEEDED) = ++good;
		if (rc == VIP_DESCRIPTOR_ERROR && d) {
			NEED((d->CS.Status & VIP_STATUS_ERROR_MASK) != 0);
			last_sent = false;
			return false;
		}
		if (vi.state() == VIP_STATE_ERROR && posted == taken) {
			last_sent = false;
			return false;
		}
		return !finished(stream);
	}

	void post()
	{
		bool last = total >= count;
		Head head = { stream, static_cast<uint32_t>(number), static_cast<uint32_t>(posted),
			      last };
		size_t at = posted % kSends, length = last ? sizeof(head) : random_length(random);
		memcpy(slab.data(at), &head, sizeof(head));
		memcpy(slab.data(at) + sizeof(head), pattern(head), length - sizeof(head));
		generation(stream, number, POSTED) = ++posted;
		post_send(vi, slab, slab.fill(at, length));
		last_sent = last;
		total++;
		sent_so_far()++;
	}

	Nic &nic;
	unsigned stream;
	uint64_t count, total = 0, number = 0;
	uint64_t posted = 0, taken = 0, good = 0; /* of this connection */
	bool last_sent = false;
	Slab slab;
	Vi vi;
	Random random;
};

/* ---- the receiver --------------------------------------------------------------------------- */

class Receiver {
public:
	Receiver(Nic &n, unsigned s)
	    : nic(n), stream(s), slab(n, kReceives, kMax), vi(n, attrs(level(s)))
	{
	}

	void run()
	{
		while (!finished(stream)) {
			for (size_t i = 0; i < kReceives; i++)
				post_recv(vi, slab, slab.fill(i, kMax));
			VIP_RETURN rc = serve(nic, vi, text("stream%u", stream), 2);
			if (rc == VIP_SUCCESS) {
				next = 0;
				while (step())
					;
			}
			vi.disconnect();
		}
	}

private:
	bool step()
	{
		VIP_DESCRIPTOR *d;
		VIP_RETURN rc = VipRecvWait(vi, 1000, &d);
		if (rc == VIP_SUCCESS) {
			check(d);
			post_recv(vi, slab, slab.fill(slab.index(d), kMax));
			generation(stream, number, RECEIVED) = next;
			return true;
		}
		/* A connection that breaks gives its receives back with an error. */
		return rc == VIP_TIMEOUT;
	}

	void check(VIP_DESCRIPTOR *d)
	{
		const char *data = slab.data(slab.index(d));
		Head head;
		NEED(d->CS.Length >= sizeof(head));
		memcpy(&head, data, sizeof(head));
		NEED(head.stream == stream);
		if (next == 0) {
			NEED(!any || head.generation > number);
			number = head.generation;
			any = true;
		}
		if (head.generation != number || head.number != next)
			fail(__FILE__, __LINE__,
			     text("message %llu of connection %llu, found %u of %u",
				  static_cast<unsigned long long>(next),
				  static_cast<unsigned long long>(number), head.number,
				  head.generation));
		NEED(memcmp(data + sizeof(head), pattern(head), d->CS.Length - sizeof(head)) == 0);
		next++;
		if (head.last) {
			generation(stream, number, RECEIVED) = next;
			finished(stream) = 1;
		}
	}

	Nic &nic;
	unsigned stream;
	uint64_t next = 0, number = 0;
	bool any = false;
	Slab slab;
	Vi vi;
};

template <class End, class... Extra> static void all_streams(const char *device, Extra... extra)
{
	Await awaited("all streams to end", stress() ? 3000 : 100);
	Nic nic(device);
	std::vector<std::unique_ptr<End>> ends;
	std::vector<std::thread> threads;
	std::atomic<unsigned> failures{ 0 };
	for (unsigned s = 0; s < kStreams; s++)
		ends.push_back(std::make_unique<End>(nic, s, extra...));
	for (auto &end : ends)
		threads.emplace_back([&] {
			try {
				end->run();
			} catch (const std::exception &e) {
				fprintf(stderr, "cluster: %s\n", e.what());
				failures++;
			}
		});
	for (auto &thread : threads)
		thread.join();
	NEED(failures == 0);
}

ROLE(sender)
{
	all_streams<Sender>("host0", static_cast<uint64_t>(atoll(args[0].c_str())) / kStreams);
}

ROLE(receiver)
{
	all_streams<Receiver>("host1");
}

/* ---- all together --------------------------------------------------------------------------- */

static void check_board(uint64_t least_breaks)
{
	uint64_t breaks = 0, posted = 0, received = 0;
	for (unsigned s = 0; s < kStreams; s++) {
		uint64_t count = generations(s);
		ASSERT_GT(count, 0u);
		breaks += count - 1;
		for (uint64_t n = 0; n < count; n++) {
			uint64_t p = generation(s, n, POSTED), g = generation(s, n, SUCCEEDED);
			uint64_t r = generation(s, n, RECEIVED);
			EXPECT_LE(r, p) << "stream " << s << " connection " << n;
			if (level(s) == VIP_SERVICE_RELIABLE_RECEPTION) {
				EXPECT_LE(g, r) << "a send succeeded that did not arrive: stream "
						<< s << " connection " << n;
			}
			if (n + 1 == count) {
				EXPECT_EQ(p, r) << "lost without a word: stream " << s;
			}
			posted += p;
			received += r;
		}
	}
	EXPECT_GE(breaks, least_breaks);
	printf("%llu sent, %llu arrived, %llu connections broke\n",
	       static_cast<unsigned long long>(posted), static_cast<unsigned long long>(received),
	       static_cast<unsigned long long>(breaks));
}

static void faulty(const std::string &faults, unsigned cuts, uint64_t least_breaks)
{
	uint64_t count = scaled(25000, 1000000);
	Await awaited("messages over a faulty link: " + faults, stress() ? 3000 : 110);
	board_clear();
	cuts_planned() = cuts;
	Args options = { "--seed", "7" };
	if (!faults.empty())
		options.insert(options.end(), { "--port", "emu+fault", "--fault", faults });
	Fabric fabric(2, options);
	Process receiver = role("receiver", {}, { { "VIADUCT_LOG", "error" } });
	Process sender = role("sender", { std::to_string(count) }, { { "VIADUCT_LOG", "error" } });
	for (unsigned i = 1; i <= cuts; i++) {
		/*
		 * Halfway to where the streams would wait: under traffic, and in each generation of
		 * the link.
		 */
		uint64_t at = count * (2 * i - 1) / (2 * (cuts + 1));
		NEED(until([&] { return sent_so_far() >= at || sender.ended(); },
			   stress() ? 600000 : 60000));
		unsigned host = i % 2;
		const char *port = host == 0 ? "right" : "left";
		fabric.link(host, port, false);
		NEED(until([&] { return !fabric.links_up(); }));
		fabric.link(host, port, true);
		cuts_made() = i;
	}
	EXPECT_EQ(0, sender.wait(stress() ? 3000 : 80));
	EXPECT_EQ(0, receiver.wait());
	check_board(least_breaks);
}

TEST(Reliable, LinkCutAndRestored)
{
	faulty("drop_db=0.2,spurious_db=0.05", 8, 8);
}

TEST(Reliable, LinkFailsInTheMiddleOfALine)
{
	faulty("drop_db=0.1,torn=0.7,down_after=500000,down_ms=30", 0, 4);
}

TEST(Reliable, RingsOvertakeStores)
{
	faulty("early_db=0.3", 8, 8);
}

TEST(Reliable, WithoutFaultsNothingBreaks)
{
	faulty("", 0, 0);
	for (unsigned s = 0; s < kStreams; s++)
		EXPECT_EQ(1u, generations(s));
}

/* Messages that an unreliable VI loses are counted where they were lost. */
TEST(Unreliable, LossesAreCountedAtTheReceiver)
{
	const size_t count = 1000, posted = 300;
	Await awaited("unreliable messages", 60);
	Fabric fabric(2);
	Nic a("host0"), b("host1");
	Slab sa(a, 1, 64), sb(b, posted, 64);
	Vi va(a, attrs(VIP_SERVICE_UNRELIABLE)), vb(b, attrs(VIP_SERVICE_UNRELIABLE));
	for (size_t i = 0; i < posted; i++)
		post_recv(vb, sb, sb.fill(i, 64));
	NEED_RC(VIP_SUCCESS, join(a, va, b, vb, "loss"));
	for (size_t i = 0; i < count; i++) {
		memcpy(sa.data(0), &i, sizeof(i));
		post_send(va, sa, sa.fill(0, 64));
		sent(va);
	}
	NEED(until([&] {
		VIPX_COUNTERS c = b.counters(vb);
		return c.MessagesReceived + c.Dropped == count;
	}));
	size_t before = 0;
	for (size_t i = 0; i < posted; i++) {
		VIP_DESCRIPTOR *d = received(vb);
		size_t number;
		memcpy(&number, sb.data(sb.index(d)), sizeof(number));
		EXPECT_TRUE(i == 0 || number > before) << "twice, or out of order";
		before = number;
	}
	VIPX_COUNTERS at_a = a.counters(va), at_b = b.counters(vb);
	EXPECT_EQ(count, at_a.MessagesSent);
	EXPECT_EQ(0u, at_a.Dropped);
	EXPECT_EQ(0u, at_a.RecvQueueEmpty);
	EXPECT_EQ(posted, at_b.MessagesReceived);
	EXPECT_EQ(count - posted, at_b.Dropped);
	EXPECT_EQ(count - posted, at_b.RecvQueueEmpty);
	EXPECT_TRUE(b.event(VIP_ERROR_RECVQ_EMPTY, vb));
	EXPECT_EQ(0u, a.count(VIP_ERROR_RECVQ_EMPTY));
	EXPECT_EQ(VIP_STATE_CONNECTED, va.state());
	EXPECT_EQ(VIP_STATE_CONNECTED, vb.state());
}
