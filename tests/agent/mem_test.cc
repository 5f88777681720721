// SPDX-License-Identifier: BSD-2-Clause
// Window memory of processes, and messages of processes to each other about it.
#include <sys/stat.h>

#include "agent_fixture.h"
#include "standstill.h"

using namespace agent_test;

namespace {

class Mem : public FabricTest, public ::testing::WithParamInterface<unsigned> {
protected:
	void SetUp() override
	{
		up(GetParam());
		c = std::make_unique<Client>(*fabric, 0);
		s = std::make_unique<Client>(*fabric, GetParam() - 1);
	}

	void TearDown() override
	{
		c.reset();
		s.reset();
		FabricTest::TearDown();
	}

	static Msg alloc(Client &from, uint64_t length)
	{
		w_alloc m = {};

		m.token = 77;
		m.length = length;
		from.send(m, W_ALLOC);
		return from.recv();
	}

	static void send_tell(Client &from, uint64_t conn, const std::string &text,
			      uint32_t slice = 0)
	{
		w_tell m = {};

		m.conn = conn;
		m.slice_id = slice;
		m.body_len = static_cast<uint32_t>(text.size());
		memcpy(m.body, text.data(), text.size());
		from.send(m, W_TELL);
	}

	static std::string body(const Msg &m)
	{
		const w_tell &t = m.as<w_tell>();

		EXPECT_EQ(m.type, W_TOLD);
		return std::string(reinterpret_cast<const char *>(t.body), t.body_len);
	}

	std::unique_ptr<Client> c, s;
};

TEST_P(Mem, TextGoesBothWaysInOrder)
{
	Pair p = join(*c, *s);

	for (int i = 0; i < 300; i++)
		send_tell(*c, p.client_conn, std::to_string(i));
	for (int i = 0; i < 300; i++) {
		Msg m = s->recv();
		ASSERT_EQ(body(m), std::to_string(i));
		EXPECT_EQ(m.as<w_tell>().conn, p.server_conn);
	}
	send_tell(*s, p.server_conn, std::string(W_TELL_MAX, 'z'));
	EXPECT_EQ(body(c->recv()), std::string(W_TELL_MAX, 'z'));
	send_tell(*s, p.server_conn, "");
	EXPECT_EQ(body(c->recv()), "");
}

TEST_P(Mem, MemoryIsOpenedAtThePeer)
{
	Pair p = join(*c, *s);
	Msg got = alloc(*c, 100000);

	ASSERT_EQ(got.type, W_ALLOCATED);
	ASSERT_EQ(got.as<w_alloc>().status, static_cast<uint32_t>(W_SUCCESS));
	ASSERT_EQ(got.fds.size(), 1u);
	size_t len = got.as<w_alloc>().length;
	EXPECT_GE(len, 100000u);
	char *mine = static_cast<char *>(
		mmap(nullptr, len, PROT_READ | PROT_WRITE, MAP_SHARED, got.fds[0], 0));
	ASSERT_NE(mine, MAP_FAILED);
	// It may be opened more than once: by another process, or by this one after it forgot the memory.
	for (int i = 0; i < 3; i++) {
		send_tell(*c, p.client_conn, "here", got.as<w_alloc>().slice_id);
		Msg told = s->recv();
		ASSERT_EQ(body(told), "here");
		ASSERT_EQ(told.fds.size(), 1u);
		EXPECT_NE(told.as<w_tell>().slice_id, 0u);
		char *theirs = static_cast<char *>(
			mmap(nullptr, len, PROT_READ | PROT_WRITE, MAP_SHARED, told.fds[0], 0));
		ASSERT_NE(theirs, MAP_FAILED);
		theirs[len - 1] = static_cast<char>('a' + i);
		EXPECT_EQ(mine[len - 1], 'a' + i);
		munmap(theirs, len);
	}
	munmap(mine, len);
	w_alloc m = {};
	m.slice_id = got.as<w_alloc>().slice_id;
	c->send(m, W_FREE);
	c->send(m, W_FREE);
	send_tell(*c, p.client_conn, "gone", m.slice_id);
	send_tell(*c, p.client_conn, "after");
	EXPECT_EQ(body(s->recv()), "after");
}

TEST_P(Mem, MemoryOfAnotherProcessCannotBeNamed)
{
	Pair p = join(*c, *s);
	Client other(*fabric, 0);
	Msg got = alloc(other, 4096);

	send_tell(*c, p.client_conn, "stolen", got.as<w_alloc>().slice_id);
	send_tell(*c, p.client_conn, "after");
	EXPECT_EQ(body(s->recv()), "after");
}

TEST_P(Mem, NothingIsToldOverAConnThatIsNotOnes)
{
	Pair p = join(*c, *s);
	Client other(*fabric, 0);

	send_tell(other, p.client_conn, "forged");
	send_tell(other, p.server_conn, "forged");
	other.sync();
	send_tell(*c, p.client_conn, "true");
	EXPECT_EQ(body(s->recv()), "true");
}

// If it is sent twice over one connection it is one offer, over two connections it is two.
TEST_P(Mem, MemoryIsOfferedAsOftenAsItIsTold)
{
	Pair p = join(*c, *s), q = join(*c, *s);
	Msg got = alloc(*c, 4096);

	for (unsigned i = 0; i < 5000; i++) {
		send_tell(*c, i % 2 ? p.client_conn : q.client_conn, "here",
			  got.as<w_alloc>().slice_id);
		Msg told = s->recv();
		ASSERT_EQ(body(told), "here");
		ASSERT_EQ(told.fds.size(), 1u) << i;
		EXPECT_EQ(told.as<w_tell>().conn, i % 2 ? p.server_conn : q.server_conn);
	}
}

// Slices that the peer did not open before it left delay no others.
TEST_P(Mem, OffersEndWithTheConnection)
{
	Msg got = alloc(*c, 4096);

	for (unsigned i = 0; i < 60; i++) {
		Pair p = join(*c, *s);
		w_conn m = {};

		for (unsigned k = 0; k < 30; k++)
			send_tell(*c, p.client_conn, "here", got.as<w_alloc>().slice_id);
		m.conn = p.server_conn;
		s->send(m, W_CLOSE);
		Msg lost = c->recv();
		ASSERT_EQ(lost.type, W_LOST);
		m.conn = p.client_conn;
		c->send(m, W_CLOSE);
		// Nothing is sent over a closed connection.
		send_tell(*c, p.client_conn, "late", got.as<w_alloc>().slice_id);
		c->sync();
		// The message may have been sent before the other end closed.
		s->token(W_UNLISTEN, ~0ull);
		for (Msg told = s->recv(); told.type != W_UNLISTENED; told = s->recv())
			ASSERT_EQ(told.type, W_TOLD);
	}
	Pair p = join(*c, *s);
	send_tell(*c, p.client_conn, "here", got.as<w_alloc>().slice_id);
	Msg told = s->recv();
	EXPECT_EQ(body(told), "here");
	EXPECT_EQ(told.fds.size(), 1u);
}

// A process that waits after it is not delayed for memory that no longer comes.
TEST_P(Mem, MemoryFreedBeforeItIsOpenedHoldsNobodyUp)
{
	Pair p = join(*c, *s);
	Standstill::Record record;
	Standstill still(record);
	auto before = std::chrono::steady_clock::now();

	for (int i = 0; i < 4; i++) {
		Msg got = alloc(*c, 4096);
		w_alloc m = {};

		m.slice_id = got.as<w_alloc>().slice_id;
		send_tell(*c, p.client_conn, "here", m.slice_id);
		c->send(m, W_FREE);
		send_tell(*c, p.client_conn, "after");
		EXPECT_EQ(body(s->recv()), "here");
		EXPECT_EQ(body(s->recv()), "after");
	}
	auto took = std::chrono::steady_clock::now() - before;
	EXPECT_LT(took - std::chrono::nanoseconds(record.ns()), std::chrono::seconds(2));
}

INSTANTIATE_TEST_SUITE_P(Hosts, Mem, ::testing::Values(1u, 2u));

class MemLimits : public FabricTest {};

TEST_F(MemLimits, WindowIsExhausted)
{
	up(1);
	Client c(*fabric, 0);
	w_alloc m = {};

	/* As much of the window of 16 MiB as one process may have. */
	m.length = 14 << 20;
	c.send(m, W_ALLOC);
	Msg first = c.recv();
	ASSERT_EQ(first.as<w_alloc>().status, static_cast<uint32_t>(W_SUCCESS));
	m.length = 1;
	c.send(m, W_ALLOC);
	Msg second = c.recv();
	EXPECT_EQ(second.as<w_alloc>().status, static_cast<uint32_t>(W_NO_RESOURCE));
	EXPECT_TRUE(second.fds.empty());
	m.slice_id = first.as<w_alloc>().slice_id;
	c.send(m, W_FREE);
	m.slice_id = 0;
	m.length = 0;
	c.send(m, W_ALLOC);
	EXPECT_EQ(c.recv().as<w_alloc>().status, static_cast<uint32_t>(W_NO_RESOURCE));
	m.length = ~0ull;
	c.send(m, W_ALLOC);
	EXPECT_EQ(c.recv().as<w_alloc>().status, static_cast<uint32_t>(W_NO_RESOURCE));
	m.length = 14 << 20;
	c.send(m, W_ALLOC);
	EXPECT_EQ(c.recv().as<w_alloc>().status, static_cast<uint32_t>(W_SUCCESS));
}

} // namespace
