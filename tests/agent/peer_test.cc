// SPDX-License-Identifier: BSD-2-Clause
// Peer to peer: both orders, crossings, mismatches, withdrawals.
#include "agent_fixture.h"

using namespace agent_test;

namespace {

// Parameter: hosts of the fabric; `low` is on host 0, `high` on the last.
class Peer : public FabricTest, public ::testing::WithParamInterface<unsigned> {
protected:
	void SetUp() override
	{
		up(GetParam());
		low = std::make_unique<Client>(*fabric, 0);
		high = std::make_unique<Client>(*fabric, GetParam() - 1);
		a = address(0, "a");
		b = address(GetParam() - 1, "b");
	}

	void TearDown() override
	{
		low.reset();
		high.reset();
		FabricTest::TearDown();
	}

	void request_from_low(uint64_t token, const w_vi_attrs &attrs = attributes())
	{
		low->connection(W_PEER, token, a, b, attrs);
	}

	void request_from_high(uint64_t token, const w_vi_attrs &attrs = attributes())
	{
		high->connection(W_PEER, token, b, a, attrs);
	}

	// The end that does not decide is linked first and confirms.
	void both_linked(uint64_t low_token, uint64_t high_token)
	{
		Msg m = high->recv();
		ASSERT_EQ(m.type, W_LINKED);
		EXPECT_EQ(m.as<w_linked>().token, high_token);
		high->conn(W_CONFIRM, m.as<w_linked>().conn);
		m = low->recv();
		ASSERT_EQ(m.type, W_LINKED);
		EXPECT_EQ(m.as<w_linked>().token, low_token);
	}

	static void refused(const Msg &m, uint64_t token, w_status status)
	{
		ASSERT_EQ(m.type, W_REFUSED);
		EXPECT_EQ(m.as<w_refused>().token, token);
		EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(status));
	}

	w_addr a, b;
	std::unique_ptr<Client> low, high;
};

TEST_P(Peer, LowerFirst)
{
	request_from_low(1);
	low->sync();
	request_from_high(2);
	both_linked(1, 2);
}

TEST_P(Peer, HigherFirst)
{
	request_from_high(2);
	EXPECT_EQ(high->recv(20).type, -1);
	request_from_low(1);
	both_linked(1, 2);
}

TEST_P(Peer, CrossingManyTimes)
{
	for (uint64_t i = 0; i < 100; i++) {
		request_from_low(2 * i);
		request_from_high(2 * i + 1);
		both_linked(2 * i, 2 * i + 1);
	}
}

TEST_P(Peer, ManyWithTheSameAddressesPairOff)
{
	constexpr int kPairs = 20;
	int linked = 0;

	for (uint64_t i = 0; i < kPairs; i++)
		i % 2 ? request_from_low(i) : request_from_high(i);
	for (uint64_t i = 0; i < kPairs; i++)
		i % 2 ? request_from_high(100 + i) : request_from_low(100 + i);
	for (int i = 0; i < kPairs; i++) {
		Msg m = high->recv();
		ASSERT_EQ(m.type, W_LINKED);
		high->conn(W_CONFIRM, m.as<w_linked>().conn);
	}
	for (int i = 0; i < kPairs; i++)
		linked += low->recv().type == W_LINKED;
	EXPECT_EQ(linked, kPairs);
}

TEST_P(Peer, MismatchRefusesBoth)
{
	request_from_low(1, attributes(2, 100, 0));
	request_from_high(2, attributes(2, 200, 0));
	refused(low->recv(), 1, W_BAD_MTU);
	refused(high->recv(), 2, W_BAD_MTU);
	request_from_low(3, attributes(1, 100, 0));
	request_from_high(4, attributes(2, 100, 0));
	refused(low->recv(), 3, W_BAD_RELIABILITY);
	refused(high->recv(), 4, W_BAD_RELIABILITY);
	request_from_low(5, attributes(1, 100, 3));
	request_from_high(6, attributes(1, 100, 4));
	refused(low->recv(), 5, W_BAD_QOS);
	refused(high->recv(), 6, W_BAD_QOS);
}

TEST_P(Peer, DoesNotMeetAWaiter)
{
	low->listen(1, a);
	low->sync();
	request_from_high(2);
	EXPECT_EQ(low->recv(20).type, -1);
	low->connection(W_CONNECT, 3, a, b);
	refused(low->recv(), 3, W_NO_MATCH);
}

TEST_P(Peer, AddressesMustCross)
{
	low->connection(W_PEER, 1, a, address(GetParam() - 1, "other"));
	request_from_high(2);
	EXPECT_EQ(high->recv(20).type, -1);
	request_from_low(3);
	both_linked(3, 2);
}

TEST_P(Peer, EitherCancels)
{
	request_from_low(1);
	low->token(W_CANCEL, 1);
	refused(low->recv(), 1, W_TIMED_OUT);
	request_from_high(2);
	high->token(W_CANCEL, 2);
	refused(high->recv(), 2, W_TIMED_OUT);
	request_from_low(3);
	low->sync();
	EXPECT_EQ(low->recv(20).type, -1) << "met a request that was withdrawn";
	request_from_high(4);
	both_linked(3, 4);
}

TEST_P(Peer, ClosedBeforeConfirmingLeavesTheOtherWaiting)
{
	request_from_low(1);
	request_from_high(2);
	Msg m = high->recv();
	ASSERT_EQ(m.type, W_LINKED);
	high->token(W_CANCEL, 2);
	high->conn(W_CLOSE, m.as<w_linked>().conn);
	request_from_high(3);
	both_linked(1, 3);
}

// No process withdrew it: the process has no descriptors or memory for the slice that it was handed.
TEST_P(Peer, EndThatCannotMapEndsBoth)
{
	request_from_low(1);
	request_from_high(2);
	Msg m = high->recv();
	ASSERT_EQ(m.type, W_LINKED);
	high->conn(W_CLOSE, m.as<w_linked>().conn);
	refused(low->recv(), 1, W_NO_RESOURCE);
	request_from_low(3);
	request_from_high(4);
	both_linked(3, 4);
	request_from_low(5);
	request_from_high(6);
	both_linked(5, 6);
}

TEST_P(Peer, DeathBeforeConfirmingLeavesTheOtherWaiting)
{
	request_from_low(1);
	request_from_high(2);
	ASSERT_EQ(high->recv().type, W_LINKED);
	high = std::make_unique<Client>(*fabric, GetParam() - 1);
	request_from_high(3);
	both_linked(1, 3);
}

TEST_P(Peer, DeciderCancelsBeforeTheOtherConfirms)
{
	request_from_low(1);
	request_from_high(2);
	Msg m = high->recv();
	ASSERT_EQ(m.type, W_LINKED);
	low->token(W_CANCEL, 1);
	refused(low->recv(), 1, W_TIMED_OUT);
	Msg gone = high->recv();
	ASSERT_EQ(gone.type, W_LOST);
	EXPECT_EQ(gone.as<w_lost_msg>().conn, m.as<w_linked>().conn);
	high->conn(W_CLOSE, m.as<w_linked>().conn);
}

TEST_P(Peer, DiesWaiting)
{
	request_from_low(1);
	request_from_high(9);
	low = std::make_unique<Client>(*fabric, 0);
	Client spare(*fabric, 0);
	spare.sync();
}

TEST_P(Peer, LocalAddressOfAnotherHost)
{
	low->connection(W_PEER, 1, address(63, "a"), b);
	refused(low->recv(), 1, W_BAD_REQUEST);
}

INSTANTIATE_TEST_SUITE_P(Hosts, Peer, ::testing::Values(1u, 2u, 3u));

class SelfPeer : public FabricTest {};

// Both ends are at the same address: the one that came first decides.
TEST_F(SelfPeer, EqualAddresses)
{
	up(1);
	Client one(*fabric, 0), two(*fabric, 0);
	w_addr at = address(0, "same");

	one.connection(W_PEER, 1, at, at);
	one.sync();
	two.connection(W_PEER, 2, at, at);
	Msg m = two.recv();
	ASSERT_EQ(m.type, W_LINKED);
	two.conn(W_CONFIRM, m.as<w_linked>().conn);
	EXPECT_EQ(one.recv().type, W_LINKED);
	one.connection(W_PEER, 3, at, at);
	one.connection(W_PEER, 4, at, at);
	m = one.recv();
	ASSERT_EQ(m.type, W_LINKED);
	EXPECT_EQ(m.as<w_linked>().token, 4u);
	one.conn(W_CONFIRM, m.as<w_linked>().conn);
	m = one.recv();
	ASSERT_EQ(m.type, W_LINKED);
	EXPECT_EQ(m.as<w_linked>().token, 3u);
}

TEST_F(SelfPeer, LinkDownRefusesBoth)
{
	up(2);
	Client low(*fabric, 0), high(*fabric, 1);

	low.connection(W_PEER, 1, address(0, "a"), address(1, "b"));
	high.connection(W_PEER, 2, address(1, "y"), address(0, "x"));
	low.sync();
	high.sync();
	fabric->stop(1);
	Msg m = low.recv();
	ASSERT_EQ(m.type, W_REFUSED);
	EXPECT_EQ(m.as<w_refused>().status, static_cast<uint32_t>(W_NOT_REACHABLE));
	EXPECT_EQ(high.recv().type, 0);
	high.hang_up();
	fabric->start(1);
	wait_links(*fabric);
}

} // namespace
