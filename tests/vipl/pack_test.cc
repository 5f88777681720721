/* SPDX-License-Identifier: BSD-2-Clause */
/* vipl_ext: short sends that are posted in one call, and may go in one packet. */
#include "harness.h"

#include <atomic>
#include <random>

using namespace conf;

namespace {

/* Sends of side a and receives of side b, of the lengths given; the bytes of each message are its own. */
struct Batch {
	Batch(Link &link, const std::vector<size_t> &lens, size_t room) : l(link), lengths(lens)
	{
		VIP_ULONG posted = 0;

		for (size_t i = 0; i < lens.size(); i++) {
			char *from = l.a.bytes(lens[i] + 1), *to = l.b.bytes(room + 1);

			for (size_t n = 0; n < lens[i]; n++)
				from[n] = byte(i, n);
			memset(to, 0x5a, room + 1);
			sends.push_back(make(l.a, 0, { { from, l.a.mem.h, lens[i] } }));
			recvs.push_back(make(l.b, 0, { { to, l.b.mem.h, room } }));
		}
		EXPECT_RC(VIP_SUCCESS,
			  VipxPostRecvs(*l.vb, recvs.data(), recvs.size(), l.b.mem.h, &posted));
		EXPECT_EQ(recvs.size(), posted);
	}
	static char byte(size_t i, size_t n) { return static_cast<char>(i * 31 + n * 7 + 1); }

	/* Posts sends [from, to) in one call. */
	void post(size_t from, size_t to)
	{
		VIP_ULONG posted = 0;

		EXPECT_RC(VIP_SUCCESS,
			  VipxPostSends(*l.va, sends.data() + from, to - from, l.a.mem.h, &posted));
		EXPECT_EQ(to - from, posted);
	}
	void post() { post(0, sends.size()); }

	/* Receive i holds message i, and nothing after it. */
	void expect(size_t i, const VIP_DESCRIPTOR *d)
	{
		const char *at = static_cast<const char *>(recvs[i]->DS[0].Local.Data.Address);

		ASSERT_EQ(recvs[i], d) << i;
		EXPECT_TRUE(has_status(d, VIP_STATUS_OP_RECEIVE));
		ASSERT_EQ(lengths[i], d->CS.Length) << i;
		for (size_t n = 0; n < lengths[i]; n++)
			ASSERT_EQ(byte(i, n), at[n]) << "byte " << n << " of message " << i;
		EXPECT_EQ(0x5a, at[lengths[i]]) << i;
	}
	void expect_all()
	{
		for (size_t i = 0; i < recvs.size(); i++)
			ASSERT_NO_FATAL_FAILURE(expect(i, take_recv(*l.vb)));
		for (size_t i = 0; i < sends.size(); i++) {
			ASSERT_EQ(sends[i], take_send(*l.va)) << i;
			EXPECT_TRUE(has_status(sends[i], VIP_STATUS_OP_SEND));
		}
	}
	Link &l;
	std::vector<size_t> lengths;
	std::vector<VIP_DESCRIPTOR *> sends, recvs;
};

} // namespace

TEST(Pack, EveryShortLength)
{
	for (auto &level : levels()) {
		RULE(std::string("vipl_ext VipxPostSends: as Count calls of VipPostSend(), ") +
		     "short messages of one length, " + level.name);
		Link l(level.value);

		for (size_t len = 0; len <= 64; len++) {
			Batch run(l, std::vector<size_t>(30, len), 64);

			run.post();
			run.expect_all();
		}
	}
}

TEST(Pack, LengthsAndCountsMixed)
{
	for (auto &level : levels()) {
		RULE(std::string("vipl_ext VipxPostSends: as Count calls of VipPostSend(), ") +
		     "lengths mixed, " + level.name);
		const char *given = getenv("VIADUCT_SEED");
		const unsigned seed = given ? static_cast<unsigned>(atoi(given)) : 1;
		SCOPED_TRACE("VIADUCT_SEED=" + std::to_string(seed));
		std::mt19937 gen(seed);
		Link l(level.value);

		for (int round = 0; round < 10; round++) {
			std::vector<size_t> lens;

			while (lens.size() < 100) {
				size_t len = gen() % 8 == 0 ? gen() % 1000 : gen() % 60;

				lens.insert(lens.end(), 1 + gen() % 20, len);
			}
			Batch run(l, lens, 1000);
			for (size_t from = 0; from < lens.size();) {
				size_t to = std::min(lens.size(), from + 1 + gen() % 50);

				run.post(from, to);
				from = to;
			}
			run.expect_all();
		}
	}
}

TEST(Pack, NoReceiveForTheThirdOfFive)
{
	for (auto &level : levels()) {
		RULE(std::string("vipl_ext VipxPostSends: each message takes a receive, ") +
		     "and one without is dropped or breaks, " + level.name);
		Link l(level.value);
		Batch two(l, { 6, 6 }, 16);
		const bool reliable = level.value != VIP_SERVICE_UNRELIABLE;
		const bool told = level.value == VIP_SERVICE_RELIABLE_RECEPTION;

		for (int i = 2; i < 5; i++)
			two.sends.push_back(make(l.a, 0, { l.seg_a(6) }));
		l.na.clear();
		two.post();
		for (size_t i = 0; i < 2; i++)
			two.expect(i, take_recv(*l.vb));
		for (size_t i = 0; i < 5; i++) {
			ASSERT_EQ(two.sends[i], take_send(*l.va)) << i;
			EXPECT_TRUE(has_status(
				two.sends[i],
				!told || i < 2 ? VIP_STATUS_OP_SEND
				: i == 2       ? VIP_STATUS_OP_SEND | VIP_STATUS_REMOTE_DESC_ERROR
					 : VIP_STATUS_OP_SEND | VIP_STATUS_DESC_FLUSHED_ERROR))
				<< i;
		}
		if (reliable)
			EXPECT_TRUE(l.broken());
		else
			EXPECT_TRUE(l.works());
		l.nb.clear();
		l.na.clear();
	}
}

TEST(Pack, TooLongForTheThirdOfFive)
{
	for (auto &level : levels()) {
		RULE(std::string("vipl_ext VipxPostSends: a message too long for its receive ") +
		     "fails alone or breaks, " + level.name);
		Link l(level.value);
		VIP_DESCRIPTOR *recvs[5];
		std::vector<VIP_DESCRIPTOR *> sends;
		const bool reliable = level.value != VIP_SERVICE_UNRELIABLE;
		VIP_ULONG posted;

		for (int i = 0; i < 5; i++) {
			recvs[i] = l.recv_b(i == 2 ? 5 : 6);
			sends.push_back(make(l.a, 0, { l.seg_a(6) }));
		}
		ASSERT_RC(VIP_SUCCESS, VipxPostSends(*l.va, sends.data(), 5, l.a.mem.h, &posted));
		for (int i = 0; i < 5; i++) {
			ASSERT_EQ(recvs[i], take_recv(*l.vb)) << i;
			EXPECT_TRUE(has_status(
				recvs[i],
				i < 2 || (i > 2 && !reliable) ? VIP_STATUS_OP_RECEIVE
				: i == 2 ? VIP_STATUS_OP_RECEIVE | VIP_STATUS_LENGTH_ERROR
					 : VIP_STATUS_OP_RECEIVE | VIP_STATUS_DESC_FLUSHED_ERROR))
				<< i;
		}
		for (auto *s : sends)
			ASSERT_EQ(s, take_send(*l.va));
		l.nb.clear();
		l.na.clear();
	}
}

TEST(Pack, EachIsAnEntryOfTheCq)
{
	for (auto &level : levels()) {
		RULE(std::string("vipl_ext VipxPostSends: each message is an entry of the CQ, ") +
		     level.name);
		Cq cq(nic(1), 1024), sent(nic(0), 1024);
		LinkOptions o;
		o.b_rcq = cq;
		o.a_scq = sent;
		Link l(level.value, o);
		Batch run(l, std::vector<size_t>(40, 5), 16);
		size_t n = 0, done = 0;
		VIP_DESCRIPTOR *d;
		VIP_VI_HANDLE vi;
		VIP_BOOLEAN recv;

		run.post();
		EXPECT_TRUE(eventually([&] {
			if (VipCQDone(cq, &vi, &recv) == VIP_SUCCESS) {
				EXPECT_EQ(l.vb->h, vi);
				EXPECT_RC(VIP_SUCCESS, VipRecvDone(vi, &d));
				run.expect(n++, d);
			}
			return n == 40;
		}));
		EXPECT_RC(VIP_NOT_DONE, VipCQDone(cq, &vi, &recv));
		EXPECT_TRUE(eventually([&] {
			if (VipCQDone(sent, &vi, &recv) == VIP_SUCCESS) {
				EXPECT_RC(VIP_SUCCESS, VipSendDone(vi, &d));
				EXPECT_EQ(run.sends[done++], d);
			}
			return done == 40;
		}));
		EXPECT_RC(VIP_NOT_DONE, VipCQDone(sent, &vi, &recv));
	}
}

TEST(Pack, EachEndsAWait)
{
	for (auto &level : levels()) {
		RULE(std::string("vipl_ext VipxPostSends: each message ends a wait, ") +
		     level.name);
		Link l(level.value);
		Batch run(l, std::vector<size_t>(40, 5), 16);
		std::thread waiting([&] {
			VIP_DESCRIPTOR *d;

			for (size_t i = 0; i < 40; i++) {
				EXPECT_RC(VIP_SUCCESS, VipRecvWait(*l.vb, kWaitMs, &d));
				EXPECT_EQ(run.recvs[i], d);
			}
		});

		for (size_t i = 0; i < 40; i += 10)
			run.post(i, i + 10);
		waiting.join();
	}
}

TEST(Pack, EachCallsAHandler)
{
	for (auto &level : levels()) {
		RULE(std::string("vipl_ext VipxPostSends: each message calls a handler, ") +
		     level.name);
		Link l(level.value);
		Batch run(l, std::vector<size_t>(12, 5), 16);
		std::atomic<int> called{ 0 };

		for (int i = 0; i < 12; i++)
			EXPECT_RC(VIP_SUCCESS,
				  VipRecvNotify(*l.vb, &called,
						[](VIP_PVOID context, VIP_NIC_HANDLE, VIP_VI_HANDLE,
						   VIP_DESCRIPTOR *) {
							++*static_cast<std::atomic<int> *>(context);
						}));
		run.post();
		EXPECT_TRUE(eventually([&] { return called == 12; })) << called;
	}
}
