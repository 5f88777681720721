// SPDX-License-Identifier: BSD-2-Clause
// Direct stores into window memory: they end when the owner says so, whatever the peer does.
#include <sys/mman.h>
#include <unistd.h>

#include "grant_fixture.h"

extern "C" {
#include "w_slot.h"
}

namespace {

// ---- ending a grant

class Revoked : public Grant {
protected:
	void SetUp() override
	{
		open(VIP_SERVICE_RELIABLE_RECEPTION);
		warm(window);
		EXPECT_EQ(nvi_agent_given(agent), 1u);
		nvi_agent_thread(agent);
	}

	void expect_refused()
	{
		std::memset(window.data, 0, 200);
		write(window);
		EXPECT_TRUE(eventually([&] {
			nvi_loop_progress(loop, 1);
			nvi_loop_progress(loop, 0);
			return nvi_loop_state(loop, 0) == VIP_STATE_ERROR;
		}));
		expect_sent(VIP_STATUS_RDMA_PROT_ERROR);
		EXPECT_EQ(window.data[0], 0);
	}
};

TEST_F(Revoked, ByItsAttributes)
{
	ASSERT_EQ(nvi_agent_open_memory(agent, window.data, window.handle, false), 0);
	EXPECT_EQ(nvi_agent_given(agent), 0u);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	expect_refused();
}

TEST_F(Revoked, AndGrantedAgain)
{
	for (int i = 0; i < 3; i++) {
		ASSERT_EQ(nvi_agent_open_memory(agent, window.data, window.handle, true), 0);
		EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
		write(window);
		EXPECT_TRUE(granted());
		EXPECT_TRUE(direct(window));
	}
}

TEST_F(Revoked, ByFreeing)
{
	VIP_MEM_HANDLE handle = window.handle;
	Window other = alloc();

	free(window);
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_GONE), 1u);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	window = other;
	window.handle = handle;
	expect_refused();
	window = other;
}

TEST_F(Revoked, ByADisconnectOfTheOwner)
{
	nvi_agent_disconnect(agent, 1);
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_TAKE), 1u);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u) << "before the call returned";
	EXPECT_EQ(nvi_agent_given(agent), 0u);
	std::memset(window.data, 0, 200);
	write(window);
	EXPECT_EQ(window.data[0], 0);
}

TEST_F(Revoked, ByADisconnectOfTheWriter)
{
	nvi_agent_disconnect(agent, 0);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	EXPECT_TRUE(eventually([&] { return nvi_agent_given(agent) == 0; }));
}

TEST_F(Revoked, ByTheLossOfTheConnection)
{
	nvi_agent_lost(agent, 0);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	nvi_agent_lost(agent, 1);
	EXPECT_EQ(nvi_agent_given(agent), 0u);
	ASSERT_EQ(nvi_agent_open_memory(agent, window.data, window.handle, false), 0);
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_TAKE), 0u) << "nobody has it";
}

class TooSlow : public Grant {
protected:
	void SetUp() override
	{
		open(VIP_SERVICE_RELIABLE_DELIVERY, "emu", 20);
		warm(window);
		nvi_agent_swallow(agent, 1u << W_GRANT_TAKE);
		nvi_agent_thread(agent);
	}
};

TEST_F(TooSlow, IsCutOff)
{
	ASSERT_EQ(nvi_agent_open_memory(agent, window.data, window.handle, false), 0);
	EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_ERROR);
	EXPECT_EQ(nvi_agent_given(agent), 0u);
	EXPECT_TRUE(eventually([&] { return nvi_agent_closed(agent) == 1; }));
}

TEST_F(TooSlow, IsCutOffWhenTheMemoryIsFreed)
{
	free(window);
	EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_ERROR);
	EXPECT_EQ(nvi_agent_given(agent), 0u);
	EXPECT_TRUE(eventually([&] { return nvi_agent_closed(agent) == 1; }));
}

TEST_F(TooSlow, DoesNotKeepADisconnectWaiting)
{
	nvi_agent_disconnect(agent, 1);
	EXPECT_EQ(nvi_loop_state(loop, 1), VIP_STATE_IDLE);
	EXPECT_EQ(nvi_agent_given(agent), 0u);
}

// While rights are being changed the answer is "not now", and the next write asks again.
TEST_F(Revoked, NotNow)
{
	std::thread changer;

	nvi_agent_swallow(agent, 1u << W_GRANT_GONE);
	changer = std::thread(
		[&] { nvi_agent_open_memory(agent, window.data, window.handle, true); });
	EXPECT_TRUE(eventually([&] { return nvi_agent_held(agent, 0) == 0; }));
	write(window);
	EXPECT_TRUE(eventually([&] { return nvi_agent_sent(agent, W_GRANT_TAKE) == 2; }));
	EXPECT_TRUE(eventually([&] { return nvi_agent_sent(agent, W_GRANT_GONE) == 2; }));
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_GIVE), 1u);
	deliver_grant(1, W_GRANT_GONE, window.handle);
	changer.join();
	nvi_agent_swallow(agent, 0);
	EXPECT_TRUE(eventually([&] {
		nvi_loop_progress(loop, 1);
		nvi_loop_progress(loop, 0);
		return status() != 0;
	}));
	write(window);
	EXPECT_TRUE(eventually([&] { return nvi_agent_held(agent, 0) == 1; }));
}

// A writer in a loop, and an owner that closes its memory, checks it, and opens it again.
TEST_F(Grant, NothingChangesWhileTheMemoryIsClosed)
{
	std::atomic<bool> stop{ false };
	uint64_t direct_writes = 0;
	std::thread writer;
	/* Posts one more while a write waits for a slot. */
	auto direct_count = [&] {
		VIPX_COUNTERS c = counters(0);

		return c.RdmaWrites - c.SlotsSent;
	};

	open(VIP_SERVICE_UNRELIABLE);
	nvi_agent_thread(agent);
	writer = std::thread([&] {
		while (!stop) {
			write(window, 0, 512);
			while (!stop && status() == 0)
				nvi_loop_progress(loop, 0);
		}
	});
	for (int round = 0; round < 10; round++) {
		EXPECT_TRUE(eventually([&] {
			nvi_loop_progress(loop, 1);
			return direct_count() > direct_writes + 2;
		}));
		EXPECT_EQ(nvi_agent_open_memory(agent, window.data, window.handle, false), 0);
		EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
		direct_writes = direct_count();
		std::memset(window.data, 0, 512);
		for (int i = 0; i < 200; i++)
			nvi_loop_progress(loop, 1);
		for (int i = 0; i < 512; i++)
			EXPECT_EQ(window.data[i], 0) << round;
		/* A write may have been refused before: another one asks again, though not the next. */
		EXPECT_EQ(nvi_agent_open_memory(agent, window.data, window.handle, true), 0);
	}
	stop = true;
	writer.join();
}

// ---- messages that should not come

TEST_F(Grant, OneNobodyAskedForIsGivenBack)
{
	int fds;

	open(VIP_SERVICE_RELIABLE_DELIVERY);
	fds = open_fds();
	deliver_grant(0, W_GRANT_GIVE, window.handle, nvi_agent_fd(agent, window.data),
		      reinterpret_cast<uint64_t>(window.data), kWindow);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	nvi_agent_step(agent);
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_GONE), 1u);
	EXPECT_EQ(open_fds(), fds);
}

TEST_F(Grant, TheSecondAnswerIsGivenBack)
{
	int fds;

	open(VIP_SERVICE_RELIABLE_DELIVERY);
	warm(window);
	fds = open_fds();
	for (int i = 0; i < 3; i++)
		deliver_grant(0, W_GRANT_GIVE, window.handle, nvi_agent_fd(agent, window.data),
			      reinterpret_cast<uint64_t>(window.data), kWindow);
	EXPECT_EQ(nvi_agent_held(agent, 0), 1u);
	deliver_grant(0, W_GRANT_DENY, window.handle);
	EXPECT_EQ(open_fds(), fds);
	EXPECT_TRUE(direct(window));
}

TEST_F(Grant, OneThatCannotBeMappedIsGivenBack)
{
	struct {
		uint64_t base, length;
	} const bad[] = { { 4096, kWindow + 4096 }, { 4096, 0 },
			  { 4096, UINT64_MAX },	    { UINT64_MAX, kWindow },
			  { 0, UINT64_C(1) << 62 }, { 1, 1u << 31 } };
	int fds;

	open(VIP_SERVICE_RELIABLE_DELIVERY);
	nvi_agent_swallow(agent, 1u << W_GRANT_ASK);
	fds = open_fds();
	for (const auto &b : bad) {
		uint32_t gone = nvi_agent_sent(agent, W_GRANT_GONE);
		uint32_t asked = nvi_agent_sent(agent, W_GRANT_ASK);

		for (int i = 0; nvi_agent_sent(agent, W_GRANT_ASK) == asked; i++) {
			ASSERT_LT(i, 5000);
			write(window);
			settle();
			expect_sent();
		}
		deliver_grant(0, W_GRANT_GIVE, window.handle, nvi_agent_fd(agent, window.data),
			      b.base, b.length);
		EXPECT_EQ(nvi_agent_held(agent, 0), 0u) << b.length;
		nvi_agent_step(agent);
		EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_GONE), gone + 1);
		deliver_grant(0, W_GRANT_TAKE, window.handle);
		nvi_agent_step(agent);
	}
	EXPECT_EQ(open_fds(), fds);
}

TEST_F(Grant, OneWithoutASliceIsGivenBack)
{
	open(VIP_SERVICE_RELIABLE_DELIVERY);
	nvi_agent_no_slices(agent, true);
	write(window);
	settle();
	expect_sent();
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_GIVE), 1u);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	EXPECT_EQ(nvi_agent_given(agent), 0u);
	EXPECT_FALSE(direct(window));
}

TEST_F(Grant, AFloodOfQuestionsIsAnsweredAndNoMore)
{
	int fds;

	open(VIP_SERVICE_RELIABLE_DELIVERY);
	fds = open_fds();
	for (int i = 0; i < 2000; i++) {
		deliver_grant(1, W_GRANT_ASK, window.handle);
		nvi_agent_step(agent);
	}
	/* End 0 did not ask for them: it gives each back at once. */
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	EXPECT_EQ(nvi_agent_given(agent), 0u);
	nvi_agent_swallow(agent, 1u << W_GRANT_GIVE);
	for (int i = 0; i < 2000; i++) {
		deliver_grant(1, W_GRANT_ASK, window.handle);
		nvi_agent_step(agent);
	}
	EXPECT_EQ(nvi_agent_given(agent), 1u);
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_GIVE), 2001u);
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_DENY), 1999u);
	EXPECT_EQ(open_fds(), fds);
}

TEST_F(Grant, NonsenseIsIgnored)
{
	uint8_t bytes[W_TELL_MAX] = {};

	open(VIP_SERVICE_RELIABLE_DELIVERY);
	warm(window);
	for (uint32_t len = 0; len <= sizeof(bytes); len++)
		nvi_agent_deliver(agent, 0, bytes, len, nvi_agent_fd(agent, window.data));
	for (uint32_t kind : { 0u, 6u, 7u, 0x80000001u })
		deliver_grant(1, kind, window.handle);
	deliver_grant(0, W_GRANT_GONE, window.handle);
	deliver_grant(1, W_GRANT_GONE, 12345);
	deliver_grant(1, W_GRANT_GIVE, window.handle);
	deliver_grant(1, W_GRANT_DENY, window.handle);
	EXPECT_EQ(nvi_agent_given(agent), 1u);
	EXPECT_TRUE(direct(window));
}

TEST_F(Grant, AQuestionThatWasLostIsAskedAgain)
{
	open(VIP_SERVICE_RELIABLE_DELIVERY);
	nvi_agent_swallow(agent, 1u << W_GRANT_ASK);
	EXPECT_FALSE(direct(window));
	nvi_agent_swallow(agent, 0);
	for (int i = 0; i < 3000 && nvi_agent_held(agent, 0) == 0; i++)
		EXPECT_FALSE(direct(window));
	EXPECT_TRUE(direct(window));
	EXPECT_EQ(nvi_agent_sent(agent, W_GRANT_ASK), 2u);
}

// ---- many regions, many connections

TEST_F(Grant, MoreRegionsThanGrants)
{
	std::vector<Window> many;

	open(VIP_SERVICE_RELIABLE_RECEPTION);
	for (int i = 0; i < 40; i++)
		many.push_back(alloc());
	for (int round = 0; round < 5; round++)
		for (const Window &w : many)
			direct(w, static_cast<size_t>(round) * 128, 100);
	settle();
	EXPECT_LE(nvi_agent_held(agent, 0), 16u);
	EXPECT_EQ(nvi_agent_given(agent), nvi_agent_held(agent, 0));
	/* A mapping is not made and dropped for each write. */
	EXPECT_LT(nvi_agent_sent(agent, W_GRANT_ASK), 60u);
	/* A region that is used much still gets its grant. */
	for (int i = 0; i < 2000 && !direct(many[0]); i++)
		;
	EXPECT_TRUE(direct(many[0]));
}

TEST_F(Grant, OrdinaryMemoryIsNotAskedForAgainAndAgain)
{
	std::vector<uint8_t> plain(kWindow);
	std::vector<VIP_MEM_HANDLE> handles;

	open(VIP_SERVICE_RELIABLE_RECEPTION);
	for (int i = 0; i < 40; i++)
		handles.push_back(nvi_loop_register(loop, plain.data(), kWindow));
	warm(window);
	for (int round = 0; round < 25; round++)
		for (VIP_MEM_HANDLE h : handles)
			EXPECT_FALSE(direct({ plain.data(), h }));
	EXPECT_LT(nvi_agent_sent(agent, W_GRANT_ASK), 40u);
	EXPECT_TRUE(direct(window)) << "a grant is not given up for a refusal";
	for (VIP_MEM_HANDLE h : handles)
		nvi_loop_deregister(loop, plain.data(), h);
}

TEST_F(Grant, AnotherConnectionIsGrantedAnew)
{
	int fds = 0;

	open(VIP_SERVICE_RELIABLE_DELIVERY);
	nvi_agent_thread(agent);
	for (int i = 0; i < 4; i++) {
		write(window);
		EXPECT_TRUE(granted());
		EXPECT_TRUE(direct(window));
		ASSERT_EQ(nvi_agent_reconnect(agent), 0);
		EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
		EXPECT_EQ(nvi_agent_given(agent), 0u);
		if (i == 0)
			fds = open_fds();
	}
	EXPECT_EQ(open_fds(), fds);
}

// ---- the link

// Writes that are not known to have arrived are not reported as arrived.
TEST_F(Grant, AStoreThatTheLinkSwallowed)
{
	uint32_t bits = 0;

	open(VIP_SERVICE_RELIABLE_RECEPTION, "emu+fault", kLong, "down_after=200,down_ms=0");
	warm(window);
	std::memset(window.data, 0, kWindow);
	for (int i = 0; i < 100 && bits == 0; i++) {
		std::memset(window.data, 0, 1000);
		write(window, 0, 1000);
		nvi_loop_progress(loop, 0);
		bits = status() & VIP_STATUS_ERROR_MASK;
		if (bits == 0) {
			ASSERT_TRUE(landed(window, 0, 1000)) << i;
		}
	}
	EXPECT_EQ(bits,
		  static_cast<uint32_t>(VIP_STATUS_TRANSPORT_ERROR | VIP_STATUS_PARTIAL_ERROR));
	EXPECT_EQ(nvi_loop_state(loop, 0), VIP_STATE_ERROR);
	EXPECT_EQ(nvi_agent_held(agent, 0), 0u);
	// Nothing is polled any longer: a thread that waits sleeps.
	nvi_loop_arm(loop);
	EXPECT_EQ(nvi_loop_polled(loop), 0u);
}

// ---- a peer that ends, and a program without a callback for that

class Quiet : public Grant {
protected:
	void SetUp() override
	{
		open(VIP_SERVICE_RELIABLE_DELIVERY);
		kept = dup(2);
		file = memfd_create("stderr", MFD_CLOEXEC);
		dup2(file, 2);
	}

	void TearDown() override
	{
		dup2(kept, 2);
		close(kept);
		close(file);
		Grant::TearDown();
	}

	int lines(const char *what) const
	{
		char room[4096];
		ssize_t n = pread(file, room, sizeof(room) - 1, 0);
		int count = 0;

		room[n > 0 ? n : 0] = 0;
		for (const char *at = room; (at = std::strstr(at, what)) != nullptr; at++)
			count++;
		return count;
	}

	// End 0 learns that its peer has disconnected; after that slots are still there to be read.
	void expect_written(int times)
	{
		nvi_agent_lost(agent, 0);
		nvi_loop_raise(loop);
		EXPECT_TRUE(eventually([&] { return lines("the agent") == 1; }));
		EXPECT_EQ(lines("connection is lost"), times);
	}

	int kept = -1, file = -1;
};

TEST_F(Quiet, AnOrderlyEnd)
{
	send();
	nvi_loop_progress(loop, 1);
	nvi_agent_disconnect(agent, 1);
	expect_written(0);
}

// The peer had taken the message and closed; the question came after its last look at its slots.
TEST_F(Quiet, WhenOnlyAQuestionForCreditWasNotTaken)
{
	uint64_t len = 0;
	auto *control = reinterpret_cast<w_control *>(nvi_loop_inbound(loop, 0, &len));

	nvi_agent_disconnect(agent, 1);
	send();
	EXPECT_EQ(nvi_loop_drained(loop, 0), 0);
	__atomic_store_n(&control->credit, 1, __ATOMIC_RELEASE);
	expect_written(0);
}

TEST_F(Quiet, NotWhenAMessageWasNotTakenBeforeTheQuestion)
{
	nvi_agent_disconnect(agent, 1);
	send();
	EXPECT_EQ(nvi_loop_drained(loop, 0), 0);
	expect_written(1);
}

TEST_F(Quiet, NotWhenAMessageWasNotTaken)
{
	nvi_agent_disconnect(agent, 1);
	send();
	EXPECT_EQ(status(), static_cast<uint32_t>(VIP_STATUS_DONE))
		<< "at this level it is done when it is out";
	expect_written(1);
}

} // namespace
