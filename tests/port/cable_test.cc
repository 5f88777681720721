/* SPDX-License-Identifier: BSD-2-Clause */
/* The cable: replugging, hang-up, and a far side that breaks every rule. */
#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <random>

#include "open_fds.h"
#include "probes.h"
#include "rig.h"

extern "C" {
#include "port_emu_priv.h"
}

static const Variant kPair = { "pair", "emu", false };

TEST(Cable, HangUpTakesTheLinkDownAndANewCableBringsItUp)
{
	Rig rig(kPair);
	uint32_t old_generation[2];
	uint32_t generation;

	for (int round = 0; round < 4; round++) {
		for (int end = 0; end < 2; end++)
			port_link_state(rig.agent[end], &old_generation[end]);
		port_emu_unplug(rig.agent[round & 1]);
		EXPECT_FALSE(port_emu_plugged(rig.agent[round & 1]));
		ASSERT_TRUE(rig.settle_link(PORT_LINK_DOWN));
		EXPECT_FALSE(port_emu_plugged(rig.agent[!(round & 1)]));
		rig.plug();
		ASSERT_TRUE(rig.settle_link(PORT_LINK_UP));
		for (int end = 0; end < 2; end++) {
			port_link_state(rig.agent[end], &generation);
			EXPECT_NE(generation, old_generation[end]);
		}
		port_peer_db_ring(rig.agent[0], 0x8);
		EXPECT_EQ(port_db_read(rig.agent[1]), 0x8u);
		port_db_clear(rig.agent[1], 0x8);
	}
}

TEST(Cable, PluggingOverAnOldCableReplacesIt)
{
	Rig rig(kPair);
	int before = open_fds();

	for (int i = 0; i < 10; i++) {
		rig.plug();
		ASSERT_TRUE(rig.settle_link(PORT_LINK_UP));
	}
	EXPECT_EQ(open_fds(), before);
}

TEST(Cable, ViewsOfAnOldCableAreDown)
{
	Rig rig(kPair);
	struct port *old_view = rig.attach(0);
	struct port *new_view;

	EXPECT_EQ(port_link_state(old_view, nullptr), PORT_LINK_UP);
	rig.plug();
	ASSERT_TRUE(rig.settle_link(PORT_LINK_UP));
	new_view = rig.attach(0);
	EXPECT_EQ(port_link_state(old_view, nullptr), PORT_LINK_DOWN);
	EXPECT_EQ(port_link_state(new_view, nullptr), PORT_LINK_UP);
	port_peer_db_ring(old_view, 0x1);
	EXPECT_EQ(port_db_read(rig.agent[1]), 0u);
	port_peer_db_ring(new_view, 0x2);
	EXPECT_EQ(port_db_read(rig.agent[1]), 0x2u);
}

TEST(Cable, ViewsWithoutACableAreDown)
{
	Rig rig(kPair);
	struct port *view;

	port_emu_unplug(rig.agent[0]);
	ASSERT_TRUE(rig.settle_link(PORT_LINK_DOWN));
	view = rig.attach(0);
	EXPECT_EQ(port_link_state(view, nullptr), PORT_LINK_DOWN);
	port_peer_db_ring(view, 0x1);
	EXPECT_EQ(port_peer_spad_read(rig.agent[0], 0), UINT32_MAX);
	EXPECT_EQ(port_peer_spad_write(rig.agent[0], 0, 1), -ENOTCONN);
}

TEST(Cable, SlicesNeedACableAndOffersEndWithIt)
{
	Rig rig(kPair);
	struct port_slice s;
	struct port_slice big;
	int fd;
	int before = open_fds();

	ASSERT_EQ(port_slice_alloc(rig.agent[1], 1 << 19, &s), 0);
	EXPECT_EQ(port_peer_slice_open(rig.agent[0], s.id + 1, 4096, &fd), -ENOENT);
	rig.plug();
	ASSERT_TRUE(rig.settle_link(PORT_LINK_UP));
	EXPECT_EQ(port_peer_slice_open(rig.agent[0], s.id, 4096, &fd), -ENOENT);
	EXPECT_EQ(port_slice_alloc(rig.agent[1], 1 << 20, &big), -ENOSPC) << "still allocated";
	port_slice_free(rig.agent[1], s.id);
	close(s.fd);
	EXPECT_EQ(open_fds(), before);
	port_emu_unplug(rig.agent[1]);
	EXPECT_EQ(port_slice_alloc(rig.agent[1], 4096, &s), -ENOTCONN);
	EXPECT_EQ(open_fds(), before - 2) << "cable and the peer's registers";
}

TEST(Cable, UnopenedOffersAreBounded)
{
	Rig rig(kPair, { 16, 8, UINT64_C(1) << 30 });
	std::vector<struct port_slice> slices;
	struct port_slice s;
	int err = 0;
	int fd;

	/* Nobody reads the cable, so it fills first; reading makes room up to the bound. */
	while (slices.size() < 2 * EMU_OFFERS_MAX) {
		err = port_slice_alloc(rig.agent[1], 4096, &s);
		if (err != 0 && slices.size() < EMU_OFFERS_MAX) {
			ASSERT_EQ(err, -ENOBUFS);
			ASSERT_GE(port_service(rig.agent[0]), 0);
			continue;
		}
		if (err != 0)
			break;
		close(s.fd);
		slices.push_back(s);
	}
	EXPECT_EQ(err, -ENOBUFS);
	EXPECT_EQ(slices.size(), EMU_OFFERS_MAX);
	ASSERT_EQ(port_peer_slice_open(rig.agent[0], slices[5].id, 4096, &fd), 0);
	close(fd);
	ASSERT_GE(port_service(rig.agent[1]), 0);
	ASSERT_EQ(port_slice_alloc(rig.agent[1], 4096, &s), 0) << "one was opened";
	close(s.fd);
	port_slice_free(rig.agent[1], slices[6].id);
	ASSERT_EQ(port_slice_alloc(rig.agent[1], 4096, &s), 0) << "one was freed";
	close(s.fd);
	EXPECT_EQ(port_slice_alloc(rig.agent[1], 4096, &s), -ENOBUFS);
	EXPECT_EQ(port_link_state(rig.agent[0], nullptr), PORT_LINK_UP);
}

TEST(Cable, FarSideThatDoesNotReadIsUnpluggedAtLast)
{
	Rig rig(kPair);

	for (int i = 0; i < 20000 && port_emu_plugged(rig.agent[0]); i++) {
		port_link_disable(rig.agent[0]);
		ASSERT_EQ(port_link_enable(rig.agent[0]), 0);
	}
	EXPECT_FALSE(port_emu_plugged(rig.agent[0]));
	EXPECT_EQ(port_link_state(rig.agent[0], nullptr), PORT_LINK_DOWN);
}

TEST(Cable, BacklogIsSentInOrderWhenThereIsRoom)
{
	Rig rig(kPair);

	for (int i = 0; i < 1500; i++) {
		port_link_disable(rig.agent[0]);
		ASSERT_EQ(port_link_enable(rig.agent[0]), 0);
	}
	port_link_disable(rig.agent[0]);
	ASSERT_TRUE(port_emu_plugged(rig.agent[0]));
	ASSERT_TRUE(rig.settle([&] {
		struct pollfd pfd[2] = { { port_event_fd(rig.agent[0]), POLLIN, 0 },
					 { port_event_fd(rig.agent[1]), POLLIN, 0 } };

		return poll(pfd, 2, 0) == 0;
	}));
	EXPECT_EQ(port_link_state(rig.agent[1], nullptr), PORT_LINK_DOWN);
	ASSERT_EQ(port_link_enable(rig.agent[0]), 0);
	EXPECT_TRUE(rig.settle_link(PORT_LINK_UP));
}

TEST(Cable, OnlySeqpacketSocketsArePlugged)
{
	Rig rig(kPair);
	int before;
	int pair[2];

	port_emu_unplug(rig.agent[0]);
	before = open_fds();
	ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	EXPECT_EQ(port_emu_plug(rig.agent[0], pair[0]), -EPROTOTYPE);
	close(pair[1]);
	ASSERT_EQ(pipe2(pair, O_CLOEXEC), 0);
	EXPECT_EQ(port_emu_plug(rig.agent[0], pair[0]), -ENOTSOCK);
	close(pair[1]);
	EXPECT_FALSE(port_emu_plugged(rig.agent[0]));
	EXPECT_EQ(open_fds(), before);
}

TEST(Cable, SelfHasNoCable)
{
	Rig rig({ "self", "emu", false });
	int pair[2];

	ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	EXPECT_EQ(port_emu_plug(rig.agent[0], pair[0]), -EOPNOTSUPP);
	EXPECT_FALSE(port_emu_plugged(rig.agent[0]));
	port_emu_unplug(rig.agent[0]);
	close(pair[1]);
}

TEST(Cable, ImpossiblePortsAreRefused)
{
	struct port_emu_host *host;
	struct port_emu_cfg good = {};
	struct port_emu_cfg cfg;
	struct port *p = nullptr;

	ASSERT_EQ(port_emu_host_create(&host), 0);
	strcpy(good.name, "left");
	for (int i = 0; i < 6; i++) {
		cfg = good;
		if (i == 0)
			cfg.name[0] = '\0';
		else if (i == 1)
			cfg.index = PORT_PER_HOST;
		else if (i == 2)
			cfg.db_bits = PORT_DB_MAX + 1;
		else if (i == 3)
			cfg.spads = PORT_SPAD_MAX + 1;
		else if (i == 4)
			cfg.name[1] = ' ';
		else
			memset(cfg.name, 'x', sizeof(cfg.name));
		EXPECT_EQ(port_emu_create(host, &cfg, &p), -EINVAL) << i;
		EXPECT_EQ(port_emu_self_create(host, &cfg, &p), -EINVAL) << i;
	}
	EXPECT_EQ(p, nullptr);
	ASSERT_EQ(port_emu_create(host, &good, &p), 0);
	EXPECT_EQ(p->limits.db_bits, 16u);
	EXPECT_EQ(p->limits.spads, 8u);
	EXPECT_EQ(p->limits.window_bytes, UINT64_C(4) << 30);
	port_close(p);
	port_emu_host_destroy(host);
}

/* One good port, plugged into a socket that the test speaks on. */
class Hostile : public testing::Test {
protected:
	void SetUp() override
	{
		struct port_emu_cfg cfg = {};

		strcpy(cfg.name, "right");
		cfg.index = 1;
		ASSERT_EQ(port_emu_host_create(&victim), 0);
		ASSERT_EQ(port_emu_host_create(&attacker), 0);
		ASSERT_EQ(port_emu_create(victim, &cfg, &port), 0);
		ASSERT_EQ(port_link_enable(port), 0);
		regs = attacker->regs_fd;
		doorbells = attacker->doorbells_fd;
		probe_refused_fds_are_closed(); /* the descriptors that this leaves open are there before */
		before = open_fds();
	}

	/* Whatever was sent: no descriptor stays when the cable is gone. */
	void TearDown() override
	{
		unplug();
		EXPECT_EQ(open_fds(), before);
		EXPECT_EQ(port_link_state(port, nullptr), PORT_LINK_DOWN);
		port_close(port);
		port_emu_host_destroy(victim);
		port_emu_host_destroy(attacker);
	}

	void plug()
	{
		int pair[2];

		unplug();
		ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
		ASSERT_EQ(port_emu_plug(port, pair[0]), 0);
		sock = pair[1];
	}

	void unplug()
	{
		port_emu_unplug(port);
		if (sock >= 0)
			close(sock);
		sock = -1;
	}

	void send_raw(const void *data, size_t len, const std::vector<int> &fds)
	{
		std::vector<char> control(CMSG_SPACE(sizeof(int) * (fds.size() + 1)));
		struct iovec iov = { const_cast<void *>(data), len };
		struct msghdr mh = {};

		mh.msg_iov = &iov;
		mh.msg_iovlen = 1;
		if (!fds.empty()) {
			mh.msg_control = control.data();
			mh.msg_controllen = CMSG_SPACE(sizeof(int) * fds.size());
			struct cmsghdr *c = CMSG_FIRSTHDR(&mh);
			c->cmsg_level = SOL_SOCKET;
			c->cmsg_type = SCM_RIGHTS;
			c->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
			memcpy(CMSG_DATA(c), fds.data(), sizeof(int) * fds.size());
		}
		(void)!sendmsg(sock, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
	}

	void send_msg(const struct emu_msg &msg, const std::vector<int> &fds = {})
	{
		send_raw(&msg, sizeof(msg), fds);
	}

	struct emu_msg hello()
	{
		struct emu_msg m = emu_msg(EMU_HELLO);

		m.enabled = 1;
		m.len = 1 << 20;
		m.index = 3;
		m.db_bits = 16;
		m.spads = 8;
		return m;
	}

	/* Connects a new cable whose far side sends its doorbells, and then this. */
	void greet(const struct emu_msg &msg, const std::vector<int> &fds = {})
	{
		plug();
		send_msg(emu_msg(EMU_DOORBELLS), { doorbells });
		send_msg(msg, fds);
	}

	/* Connects a cable whose far side sent a correct hello. */
	void connect()
	{
		greet(hello(), { regs });
		port_service(port);
		ASSERT_EQ(port_link_state(port, nullptr), PORT_LINK_UP);
	}

	/* Expects that the last message made the port drop its cable. */
	void expect_unplugged(const char *what)
	{
		port_service(port);
		EXPECT_FALSE(port_emu_plugged(port)) << what;
		EXPECT_EQ(port_link_state(port, nullptr), PORT_LINK_DOWN) << what;
	}

	int memory(size_t len, int seals)
	{
		int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

		EXPECT_EQ(ftruncate(fd, static_cast<off_t>(len)), 0);
		EXPECT_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
		return fd;
	}

	struct port_emu_host *victim = nullptr;
	struct port_emu_host *attacker = nullptr;
	struct port *port = nullptr;
	int sock = -1;
	int regs = -1, doorbells = -1;
	int before = 0;
};

TEST_F(Hostile, BadHellosAreRefused)
{
	struct emu_msg m;
	int small = memory(100, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	int soft = memory(4096, 0);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	for (int fd : { small, soft, null }) {
		plug();
		send_msg(emu_msg(EMU_DOORBELLS), { fd });
		expect_unplugged("doorbells");
		greet(hello(), { fd });
		expect_unplugged("registers");
		close(fd);
	}
	plug();
	send_msg(emu_msg(EMU_DOORBELLS));
	expect_unplugged("no doorbells");
	greet(hello());
	expect_unplugged("no registers");
	plug();
	send_msg(hello(), { regs });
	expect_unplugged("before the doorbells");
	greet(emu_msg(EMU_DOORBELLS), { doorbells });
	expect_unplugged("doorbells twice");
	for (int i = 0; i < 7; i++) {
		m = hello();
		m.magic += i == 0;
		m.version += i == 1;
		m.index = i == 2 ? PORT_PER_HOST : m.index;
		m.db_bits = i == 3 ? 0 : i == 4 ? 33 : m.db_bits;
		m.spads = i == 5 ? 0 : i == 6 ? 65 : m.spads;
		greet(m, { regs });
		expect_unplugged("field");
	}
	connect();
	send_msg(hello(), { regs });
	expect_unplugged("second hello");
}

TEST_F(Hostile, MessagesBeforeHelloAreRefused)
{
	for (auto type : { EMU_LINK, EMU_OFFER, EMU_FREE, EMU_OPENED }) {
		plug();
		send_msg(emu_msg(type));
		expect_unplugged("before the doorbells");
		greet(emu_msg(type));
		expect_unplugged("before hello");
	}
}

TEST_F(Hostile, BadOffersAreRefused)
{
	int good = memory(8192, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	int soft = memory(8192, F_SEAL_GROW);
	int pipes[2];
	struct emu_msg offer = emu_msg(EMU_OFFER);
	struct emu_msg m;
	int fd = -1;

	ASSERT_EQ(pipe2(pipes, O_CLOEXEC), 0);
	offer.id = 7;
	offer.len = 8192;
	for (int bad : { soft, pipes[0], pipes[1], sock, regs }) {
		connect();
		send_msg(offer, { bad < 0 ? sock : bad });
		EXPECT_EQ(port_peer_slice_open(port, 7, 4096, &fd), -ENOENT);
		expect_unplugged("memory");
	}
	for (int i = 0; i < 5; i++) {
		connect();
		m = offer;
		m.id = i == 0 ? 0 : m.id;
		m.len = i == 1 ? 0 : i == 2 ? 8193 : i == 3 ? UINT64_MAX : m.len;
		send_msg(m, i == 4 ? std::vector<int>{} : std::vector<int>{ good });
		expect_unplugged("field");
	}
	connect();
	send_msg(offer, { good });
	send_msg(offer, { good });
	expect_unplugged("id twice");
	connect();
	send_msg(offer, { good, good });
	expect_unplugged("two descriptors");
	connect();
	send_msg(emu_msg(EMU_LINK), { good });
	expect_unplugged("descriptor with a message that has none");
	connect();
	send_msg(offer, { good });
	EXPECT_EQ(port_peer_slice_open(port, 7, 8193, &fd), -ERANGE);
	ASSERT_EQ(port_peer_slice_open(port, 7, 8192, &fd), 0);
	for (int f : { good, soft, pipes[0], pipes[1], fd })
		close(f);
}

TEST_F(Hostile, DescriptorFloodsAreClosed)
{
	if (!probe_refused_fds_are_closed())
		GTEST_SKIP() << "descriptors stay open here that did not fit a receiver's buffer";
	int good = memory(4096, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	struct emu_msg offer = emu_msg(EMU_OFFER);

	connect();
	offer.len = 4096;
	send_msg(offer, std::vector<int>(200, good));
	expect_unplugged("200 descriptors");
	connect();
	for (uint32_t i = 1; i <= EMU_OFFERS_MAX + 50 && port_emu_plugged(port); i++) {
		offer.id = i;
		send_msg(offer, { good });
		port_service(port);
	}
	EXPECT_FALSE(port_emu_plugged(port)) << "too many offers";
	plug();
	send_raw("", 0, { good });
	expect_unplugged("descriptor alone");
	close(good);
}

TEST_F(Hostile, WrongLengthsAreRefused)
{
	char big[4096] = {};
	struct emu_msg m = hello();

	for (size_t len = 0; len < sizeof(m); len++) {
		plug();
		send_raw(&m, len, { regs });
		expect_unplugged("short");
	}
	memcpy(big, &m, sizeof(m));
	for (size_t len : { sizeof(m) + 1, sizeof(big) }) {
		plug();
		send_raw(big, len, { regs });
		expect_unplugged("long");
	}
}

TEST_F(Hostile, UnknownIdsAreNoOffence)
{
	struct emu_msg m;

	connect();
	for (auto type : { EMU_FREE, EMU_OPENED }) {
		m = emu_msg(type);
		m.id = 99;
		send_msg(m);
	}
	port_service(port);
	EXPECT_TRUE(port_emu_plugged(port));
}

TEST_F(Hostile, GarbageNeverCrashes)
{
	std::mt19937 random(1);
	int good = memory(4096, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL);
	struct emu_msg m;
	char noise[100];
	int fd;

	for (int i = 0; i < 3000; i++) {
		if (!port_emu_plugged(port))
			connect();
		if (i % 3 == 0) {
			for (char &c : noise)
				c = static_cast<char>(random());
			send_raw(noise, random() % sizeof(noise), {});
		} else {
			m = emu_msg(static_cast<enum emu_msg_type>(random() % 8));
			m.id = random() % 5;
			m.len = random() % 6000;
			m.enabled = random() % 3;
			m.index = random() % 10;
			m.db_bits = random() % 40;
			m.spads = random() % 80;
			send_msg(m, std::vector<int>(random() % 3, random() % 2 ? good : regs));
		}
		if (random() % 2 == 0)
			port_service(port);
		else if (port_peer_slice_open(port, random() % 5, random() % 6000, &fd) == 0)
			close(fd);
		port_peer_db_ring(port, static_cast<uint32_t>(random()));
	}
	close(good);
}

/* A neighbour's agent that scribbles over the registers can ring, and send any message, but no more. */
TEST_F(Hostile, RegistersHoldNothingDangerous)
{
	std::mt19937 random(2);
	struct emu_regs *page;

	connect();
	ASSERT_EQ(emu_regs_map(victim->regs_fd, &page), 0);
	for (int i = 0; i < 2000; i++) {
		reinterpret_cast<uint32_t *>(page)[random() % 1024] =
			static_cast<uint32_t>(random());
		port_db_clear(port, port_db_read(port));
		port_spad_read(port, i % 8);
		EXPECT_EQ(port_link_state(port, nullptr), PORT_LINK_UP)
			<< "the agent trusts its own word";
		EXPECT_NE(port_irq_wait(port->irq, port_irq_ticket(port->irq), 1, 0), -EINVAL);
	}
	emu_page_unmap(page);
}
