// SPDX-License-Identifier: BSD-2-Clause
// The validator of control messages: those it takes, those it refuses; addresses and socket calls.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "lingering.h"
#include "probes.h"

extern "C" {
#include "u_close.h"
#include "w_addr.h"
#include "w_cm.h"
#include "w_ctl.h"
#include "w_slot.h"
#include "w_tool.h"
}

namespace {

union message {
	w_ctl_hdr hdr;
	w_hello hello;
	w_welcome welcome;
	w_port port;
	w_connect connect;
	w_arrived arrived;
	w_accept accept;
	w_linked linked;
	w_refused refused;
	w_lost_msg lost;
	w_conn conn;
	w_alloc alloc;
	w_tell tell;
	w_name name;
	w_route route;
	w_list list;
	w_listed listed;
	w_admin admin;
	w_cm cm;
	w_cm_tell cm_tell;
	w_cm_links cm_links;
	uint8_t bytes[W_CTL_MAX];
};

w_geometry good_geometry()
{
	w_geometry g = {};

	g.slots = 8;
	g.payload_bytes = 4096;
	g.slice_len = w_slice_bytes(8, 4096);
	return g;
}

struct Kind {
	w_ctl_type type;
	uint32_t len;
};

const Kind kinds[] = {
	{ W_HELLO, sizeof(w_hello) },	      { W_LISTEN, sizeof(w_connect) },
	{ W_UNLISTEN, sizeof(w_token) },      { W_CONNECT, sizeof(w_connect) },
	{ W_PEER, sizeof(w_connect) },	      { W_CANCEL, sizeof(w_token) },
	{ W_ACCEPT, sizeof(w_accept) },	      { W_REJECT, sizeof(w_conn) },
	{ W_CONFIRM, sizeof(w_conn) },	      { W_CLOSE, sizeof(w_conn) },
	{ W_ALLOC, sizeof(w_alloc) },	      { W_FREE, sizeof(w_alloc) },
	{ W_TELL, sizeof(w_tell) },	      { W_NAME, sizeof(w_name) },
	{ W_ADDR_NAME, sizeof(w_name) },      { W_ROUTE, sizeof(w_route) },
	{ W_LIST, sizeof(w_list) },	      { W_ADMIN, sizeof(w_admin) },
	{ W_WELCOME, sizeof(w_welcome) },     { W_PORT, sizeof(w_port) },
	{ W_UNLISTENED, sizeof(w_token) },    { W_ARRIVED, sizeof(w_arrived) },
	{ W_LINKED, sizeof(w_linked) },	      { W_REFUSED, sizeof(w_refused) },
	{ W_LOST, sizeof(w_lost_msg) },	      { W_ALLOCATED, sizeof(w_alloc) },
	{ W_TOLD, sizeof(w_tell) },	      { W_NAMED, sizeof(w_name) },
	{ W_ROUTED, sizeof(w_route) },	      { W_LISTED, sizeof(w_listed) },
	{ W_DONE, sizeof(w_refused) },	      { W_CM_REQ, sizeof(w_cm) },
	{ W_CM_REFUSE, sizeof(w_cm) },	      { W_CM_ACCEPT, sizeof(w_cm) },
	{ W_CM_CONFIRM, sizeof(w_cm) },	      { W_CM_CANCEL, sizeof(w_cm) },
	{ W_CM_CLOSE, sizeof(w_cm) },	      { W_CM_PEER, sizeof(w_cm) },
	{ W_CM_PEER_CANCEL, sizeof(w_cm) },   { W_CM_TELL, sizeof(w_cm_tell) },
	{ W_SUSPENDED, sizeof(w_suspended) }, { W_PORT_AGAIN, sizeof(w_conn) },
	{ W_SUSPEND, sizeof(w_conn) },	      { W_RESUMED, sizeof(w_linked) },
	{ W_CM_HEARTBEAT, sizeof(w_cm) },     { W_CM_LINKS, sizeof(w_cm_links) },
	{ W_CM_RESUME, sizeof(w_cm) },	      { W_CM_QUERY, sizeof(w_cm) },
	{ W_CM_UNKNOWN, sizeof(w_cm) },
};

// A message of the type with the least content that makes it valid.
message good(const Kind &k)
{
	message m;

	memset(&m, 0, sizeof(m));
	switch (k.type) {
	case W_HELLO:
		m.hello.kind = W_KIND_NIC;
		break;
	case W_LIST:
		m.list.what = W_LIST_HOSTS;
		break;
	case W_ADMIN:
		m.admin.verb = W_ADMIN_STOP;
		break;
	case W_WELCOME:
		m.welcome.host_count = 1;
		m.welcome.slots = 8;
		m.welcome.payload_bytes = 4096;
		break;
	case W_ARRIVED:
		m.arrived.conn = 1;
		break;
	case W_LINKED:
	case W_RESUMED:
		m.linked.conn = 1;
		m.linked.inbound = m.linked.outbound = good_geometry();
		break;
	case W_LOST:
		m.lost.reason = W_LOST_CLOSED;
		break;
	case W_CM_TELL:
		m.cm_tell.dst_conn = 1;
		break;
	case W_CM_REQ:
	case W_CM_REFUSE:
	case W_CM_ACCEPT:
	case W_CM_CONFIRM:
	case W_CM_CANCEL:
	case W_CM_CLOSE:
	case W_CM_PEER:
	case W_CM_PEER_CANCEL:
	case W_CM_RESUME:
	case W_CM_QUERY:
	case W_CM_UNKNOWN:
		m.cm.src_conn = m.cm.dst_conn = 1;
		m.cm.status = W_LOST_CLOSED;
		m.cm.geometry = good_geometry();
		break;
	default:
		break;
	}
	w_ctl_init(&m, k.type, k.len);
	return m;
}

Kind kind(w_ctl_type type)
{
	for (const Kind &k : kinds) {
		if (k.type == type)
			return k;
	}
	return {};
}

TEST(Ctl, TakesEveryTypeWhole)
{
	for (const Kind &k : kinds) {
		message m = good(k);
		EXPECT_EQ(w_ctl_check(&m, k.len), k.type);
		EXPECT_LE(k.len, W_CTL_MAX);
	}
}

TEST(Ctl, RefusesEveryOtherLength)
{
	for (const Kind &k : kinds) {
		for (uint32_t len = 0; len <= W_CTL_MAX + 8; len++) {
			message m = good(k);
			std::vector<uint8_t> exact(m.bytes,
						   m.bytes + (len < W_CTL_MAX ? len : W_CTL_MAX));
			exact.resize(len);
			if (len != k.len) {
				EXPECT_EQ(w_ctl_check(exact.data(), len), -EPROTO)
					<< k.type << " " << len;
			}
		}
		message m = good(k);
		m.hdr.len++;
		EXPECT_EQ(w_ctl_check(&m, k.len), -EPROTO);
	}
}

TEST(Ctl, RefusesUnknownTypes)
{
	for (unsigned type = 0; type < 65536; type++) {
		bool known = kind(static_cast<w_ctl_type>(type)).len != 0;
		for (const Kind &k : { kinds[0], kinds[1], kinds[31] }) {
			message m = good(k);
			m.hdr.type = static_cast<uint16_t>(type);
			if (!known) {
				EXPECT_EQ(w_ctl_check(&m, k.len), -EPROTO) << type;
			}
		}
	}
}

TEST(Ctl, RefusesOtherHeaders)
{
	for (const Kind &k : kinds) {
		message m = good(k);
		m.hdr.magic ^= 1;
		EXPECT_EQ(w_ctl_check(&m, k.len), -EPROTO);
		m = good(k);
		m.hdr.reserved = 1;
		EXPECT_EQ(w_ctl_check(&m, k.len), -EPROTO);
		m = good(k);
		m.hdr.version++;
		EXPECT_EQ(w_ctl_check(&m, k.len), -EPROTONOSUPPORT);
	}
}

struct Bad {
	const char *what;
	w_ctl_type type;
	std::function<void(message &)> spoil;
};

template <size_t N> void fill(char (&text)[N])
{
	memset(text, 'x', N);
}

const Bad bads[] = {
	{ "kind 0", W_HELLO, [](message &m) { m.hello.kind = 0; } },
	{ "kind 3", W_HELLO, [](message &m) { m.hello.kind = 3; } },
	{ "program", W_HELLO, [](message &m) { fill(m.hello.program); } },
	{ "local disc", W_LISTEN, [](message &m) { m.connect.local.disc_len = 65; } },
	{ "remote disc", W_CONNECT, [](message &m) { m.connect.remote.disc_len = 255; } },
	{ "flags", W_PEER, [](message &m) { m.connect.attrs.flags = 4; } },
	{ "accept flags", W_ACCEPT, [](message &m) { m.accept.attrs.flags = 0x80000000; } },
	{ "alloc status", W_ALLOC, [](message &m) { m.alloc.status = W_STATUS_MAX; } },
	{ "allocated status", W_ALLOCATED, [](message &m) { m.alloc.status = ~0u; } },
	{ "tell body", W_TELL, [](message &m) { m.tell.body_len = W_TELL_MAX + 1; } },
	{ "told body", W_TOLD, [](message &m) { m.tell.body_len = ~0u; } },
	{ "name", W_NAME, [](message &m) { fill(m.name.name); } },
	{ "named status", W_NAMED, [](message &m) { m.name.status = W_STATUS_MAX; } },
	{ "reverse name", W_ADDR_NAME, [](message &m) { fill(m.name.name); } },
	{ "reachable", W_ROUTED, [](message &m) { m.route.reachable = 2; } },
	{ "path", W_ROUTED, [](message &m) { m.route.path = 4; } },
	{ "route host", W_ROUTE, [](message &m) { fill(m.route.host); } },
	{ "route port", W_ROUTED, [](message &m) { fill(m.route.port_name); } },
	{ "route reason", W_ROUTED, [](message &m) { fill(m.route.reason); } },
	{ "list 0", W_LIST, [](message &m) { m.list.what = 0; } },
	{ "list 8", W_LIST, [](message &m) { m.list.what = W_LIST_WHAT_MAX; } },
	{ "verb 0", W_ADMIN, [](message &m) { m.admin.verb = 0; } },
	{ "verb 7", W_ADMIN, [](message &m) { m.admin.verb = W_ADMIN_LEAVE + 1; } },
	{ "admin name", W_ADMIN, [](message &m) { fill(m.admin.name); } },
	{ "host", W_WELCOME, [](message &m) { m.welcome.host_id = 1; } },
	{ "notify", W_WELCOME, [](message &m) { m.welcome.db_bit = 32; } },
	{ "ports", W_WELCOME, [](message &m) { m.welcome.port_count = 9; } },
	{ "slots", W_WELCOME, [](message &m) { m.welcome.slots = 9; } },
	{ "ring", W_WELCOME, [](message &m) { m.welcome.payload_bytes = 0; } },
	{ "host name", W_WELCOME, [](message &m) { fill(m.welcome.host_name); } },
	{ "fabric", W_WELCOME, [](message &m) { fill(m.welcome.fabric); } },
	{ "port index", W_PORT, [](message &m) { m.port.index = 8; } },
	{ "port link", W_PORT, [](message &m) { m.port.link_up = 2; } },
	{ "port view", W_PORT, [](message &m) { fill(m.port.view); } },
	{ "arrived conn", W_ARRIVED, [](message &m) { m.arrived.conn = 0; } },
	{ "arrived flags", W_ARRIVED, [](message &m) { m.arrived.attrs.flags = 8; } },
	{ "arrived disc", W_ARRIVED, [](message &m) { m.arrived.remote.disc_len = 65; } },
	{ "linked conn", W_LINKED, [](message &m) { m.linked.conn = 0; } },
	{ "linked flags", W_LINKED, [](message &m) { m.linked.attrs.flags = 8; } },
	{ "linked port", W_LINKED, [](message &m) { m.linked.port = 8; } },
	{ "inbound slots", W_LINKED, [](message &m) { m.linked.inbound.slots = 4; } },
	{ "inbound ring", W_LINKED, [](message &m) { m.linked.inbound.payload_bytes = 4097; } },
	{ "outbound notify", W_LINKED, [](message &m) { m.linked.outbound.db_bit = 32; } },
	{ "outbound fences", W_LINKED, [](message &m) { m.linked.outbound.must_fence = 2; } },
	{ "outbound short", W_LINKED, [](message &m) { m.linked.outbound.slice_len--; } },
	{ "outbound long", W_LINKED, [](message &m) { m.linked.outbound.slice_len += 5 << 20; } },
	{ "refused status", W_REFUSED, [](message &m) { m.refused.status = W_STATUS_MAX; } },
	{ "done text", W_DONE, [](message &m) { fill(m.refused.text); } },
	{ "lost 0", W_LOST, [](message &m) { m.lost.reason = 0; } },
	{ "lost 4", W_LOST, [](message &m) { m.lost.reason = W_LOST_MAX; } },
	{ "listed more", W_LISTED, [](message &m) { m.listed.more = 2; } },
	{ "listed text", W_LISTED, [](message &m) { fill(m.listed.text); } },
	{ "no conn", W_CM_REQ, [](message &m) { m.cm.src_conn = m.cm.dst_conn = 0; } },
	{ "cm flags", W_CM_REQ, [](message &m) { m.cm.attrs.flags = 4; } },
	{ "cm local", W_CM_REQ, [](message &m) { m.cm.local.disc_len = 65; } },
	{ "cm remote", W_CM_PEER, [](message &m) { m.cm.remote.disc_len = 65; } },
	{ "refuse status", W_CM_REFUSE, [](message &m) { m.cm.status = W_STATUS_MAX; } },
	{ "cancel status", W_CM_CANCEL, [](message &m) { m.cm.status = W_STATUS_MAX; } },
	{ "close 0", W_CM_CLOSE, [](message &m) { m.cm.status = 0; } },
	{ "close 4", W_CM_CLOSE, [](message &m) { m.cm.status = W_LOST_MAX; } },
	{ "accept dst", W_CM_ACCEPT, [](message &m) { m.cm.dst_conn = 0; } },
	{ "accept slots", W_CM_ACCEPT, [](message &m) { m.cm.geometry.slots = 8192; } },
	{ "accept ring", W_CM_ACCEPT, [](message &m) { m.cm.geometry.payload_bytes = 1u << 31; } },
	{ "confirm notify", W_CM_CONFIRM, [](message &m) { m.cm.geometry.db_bit = ~0u; } },
	{ "confirm len", W_CM_CONFIRM, [](message &m) { m.cm.geometry.slice_len = ~0ull; } },
	{ "confirm zero", W_CM_CONFIRM, [](message &m) { m.cm.geometry.slice_len = 0; } },
	{ "tell dst", W_CM_TELL, [](message &m) { m.cm_tell.dst_conn = 0; } },
	{ "tell len", W_CM_TELL, [](message &m) { m.cm_tell.body_len = W_TELL_MAX + 1; } },
	{ "beat", W_CM_HEARTBEAT, [](message &m) { m.cm.status = 2; } },
	{ "path too long", W_CM_REQ, [](message &m) { m.cm.path.hops = W_HOPS_MAX + 1; } },
	{ "path overrun", W_CM_REQ, [](message &m) { m.cm.path.at = 1; } },
	{ "path of a tell", W_CM_TELL, [](message &m) { m.cm_tell.path.at = 1; } },
	{ "resume of no end", W_CM_RESUME, [](message &m) { m.cm.src_conn = 0; } },
	{ "resume of no peer", W_CM_RESUME, [](message &m) { m.cm.dst_conn = 0; } },
	{ "resume 4", W_CM_RESUME, [](message &m) { m.cm.status = W_LOST_MAX; } },
	{ "query of no end", W_CM_QUERY, [](message &m) { m.cm.src_conn = 0; } },
	{ "query of no peer", W_CM_QUERY, [](message &m) { m.cm.dst_conn = 0; } },
	{ "unknown end", W_CM_UNKNOWN, [](message &m) { m.cm.src_conn = 0; } },
	{ "unknown peer", W_CM_UNKNOWN, [](message &m) { m.cm.dst_conn = 0; } },
	{ "port again", W_PORT_AGAIN, [](message &m) { m.conn.conn = W_PORTS_MAX; } },
	{ "links", W_CM_LINKS, [](message &m) { m.cm_links.up = 1u << W_PORTS_MAX; } },
};

TEST(Ctl, RefusesEachFieldOutOfBounds)
{
	for (const Bad &b : bads) {
		Kind k = kind(b.type);
		message m = good(k);
		b.spoil(m);
		EXPECT_EQ(w_ctl_check(&m, k.len), -EPROTO) << b.what;
	}
}

TEST(Ctl, RandomBytesNeverLeaveTheBounds)
{
	std::mt19937 rng(1);

	for (int i = 0; i < 200000; i++) {
		const Kind &k = kinds[rng() % (sizeof(kinds) / sizeof(kinds[0]))];
		message m = good(k);
		for (unsigned n = rng() % 8; n > 0; n--)
			m.bytes[16 + rng() % (k.len - 15) - 1] = static_cast<uint8_t>(rng());
		std::vector<uint8_t> exact(m.bytes, m.bytes + k.len);
		int type = w_ctl_check(exact.data(), k.len);
		if (type == W_NAME) {
			EXPECT_LT(strnlen(m.name.name, W_NAME_MAX), W_NAME_MAX);
		}
		if (type == W_TELL) {
			EXPECT_LE(m.tell.body_len, W_TELL_MAX);
		}
	}
}

TEST(Ctl, EveryStatusHasAText)
{
	for (int i = 0; i < W_STATUS_MAX; i++)
		EXPECT_GT(strlen(w_status_text(static_cast<w_status>(i))), 3u);
	EXPECT_STREQ(w_status_text(static_cast<w_status>(999)), "unknown status");
}

// ---- socket calls ----

class Socket : public ::testing::Test {
protected:
	void SetUp() override
	{
		ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	}
	void TearDown() override
	{
		close(pair[0]);
		close(pair[1]);
	}

	int pair[2];
};

TEST_F(Socket, MessageAndDescriptorsArriveTogether)
{
	message in = good(kind(W_LINKED)), out;
	int sent[W_CTL_FDS], got[W_CTL_FDS];
	unsigned n = 0;

	for (int &fd : sent)
		fd = memfd_create("sent", MFD_CLOEXEC);

	ASSERT_EQ(w_ctl_send(pair[0], &in, sent, W_CTL_FDS), 0);
	ASSERT_EQ(w_ctl_recv(pair[1], &out, sizeof(out), got, &n),
		  static_cast<int>(sizeof(w_linked)));
	EXPECT_EQ(memcmp(&in, &out, sizeof(w_linked)), 0);
	ASSERT_EQ(n, W_CTL_FDS);
	for (int fd : got) {
		EXPECT_NE(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
		close(fd);
	}
	for (int fd : sent)
		close(fd);
}

/* Only memory is passed about: other descriptors are not even closed here. */
TEST_F(Socket, OtherThanMemoryIsRefusedAndKeepsNobodyWaiting)
{
	message in = good(kind(W_LINKED)), out;
	int fds[W_CTL_FDS];
	unsigned n = 0;

	for (int round = 0; round < 2; round++) {
		int memory = memfd_create("surplus", MFD_CLOEXEC);
		Lingering linger;
		ASSERT_TRUE(linger.ok());
		ASSERT_EQ(linger.pass(pair[0], &in, sizeof(w_linked),
				      std::vector<int>(round == 0 ? 0 : 200, memory)),
			  0);
		close(memory);
		EXPECT_EQ(w_ctl_recv(pair[1], &out, sizeof(out), fds, &n), -EPROTO);
		EXPECT_EQ(n, 0u);
	}
}

/* If no descriptors are expected the message stays in the socket. */
TEST_F(Socket, BareMessagesComeWithoutDescriptors)
{
	if (!probe_refused_fds_are_closed())
		GTEST_SKIP() << "here a check takes descriptors that it has no room for";
	message in = good(kind(W_CANCEL)), out;
	Lingering linger;

	ASSERT_TRUE(linger.ok());
	EXPECT_EQ(w_ctl_send(pair[0], &in, nullptr, 0), 0);
	ASSERT_EQ(linger.pass(pair[0], &in, sizeof(w_token)), 0);
	EXPECT_EQ(w_ctl_recv_bare(pair[1], &out, sizeof(out), true),
		  static_cast<int>(sizeof(w_token)));
	EXPECT_EQ(memcmp(&in, &out, sizeof(w_token)), 0);
	EXPECT_EQ(w_ctl_recv_bare(pair[1], &out, sizeof(out), true), -EBADMSG);
	u_hang_up(dup(pair[1]));
	EXPECT_EQ(recv(pair[0], &out, sizeof(out), 0), 0) << "it was not hung up";
	u_hang_up(pair[1]);
	pair[1] = -1;
}

TEST_F(Socket, HangUpIsZero)
{
	message m;
	int fds[W_CTL_FDS];
	unsigned n;

	shutdown(pair[0], SHUT_RDWR);
	EXPECT_EQ(w_ctl_recv(pair[1], &m, sizeof(m), fds, &n), 0);
	m = good(kind(W_CANCEL));
	EXPECT_EQ(w_ctl_send(pair[0], &m, nullptr, 0), -EPIPE);
}

/* Descriptors of this process whose file has a name that begins with `name`. */
static int open_descriptors(const std::string &name)
{
	int n = 0;

	for (const auto &entry : std::filesystem::directory_iterator("/proc/self/fd")) {
		std::error_code gone;

		n += std::filesystem::read_symlink(entry.path(), gone).string().rfind(name, 0) == 0;
	}
	return n;
}

TEST_F(Socket, SurplusIsRefusedAndClosed)
{
	message m = good(kind(W_CANCEL));
	char control[CMSG_SPACE(6 * sizeof(int))] = {};
	iovec iov = { &m, sizeof(w_token) };
	msghdr mh = {};
	int fds[W_CTL_FDS];
	unsigned n = 0;

	mh.msg_iov = &iov;
	mh.msg_iovlen = 1;
	mh.msg_control = control;
	mh.msg_controllen = sizeof(control);
	cmsghdr *h = CMSG_FIRSTHDR(&mh);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(6 * sizeof(int));
	int memory = memfd_create("surplus", MFD_CLOEXEC);
	for (size_t i = 0; i < 6; i++)
		memcpy(CMSG_DATA(h) + i * sizeof(int), &memory, sizeof(memory));
	ASSERT_GT(sendmsg(pair[0], &mh, 0), 0);
	close(memory);
	EXPECT_EQ(w_ctl_recv(pair[1], &m, sizeof(m), fds, &n), -EPROTO);
	EXPECT_EQ(n, 0u);
	EXPECT_EQ(open_descriptors("/memfd:surplus"), 0) << "they were left open";
	EXPECT_EQ(w_ctl_send(pair[0], &m, fds, W_CTL_FDS + 1), -EINVAL);
}

TEST_F(Socket, LongerThanTheBufferIsRefused)
{
	message m;
	std::vector<uint8_t> big(W_CTL_MAX + 1);
	int fds[W_CTL_FDS];
	unsigned n;

	ASSERT_GT(send(pair[0], big.data(), big.size(), 0), 0);
	EXPECT_EQ(w_ctl_recv(pair[1], &m, sizeof(m), fds, &n), -EPROTO);
}

TEST_F(Socket, FullIsAgain)
{
	message m = good(kind(W_CANCEL));
	int rc;

	fcntl(pair[0], F_SETFL, O_NONBLOCK);
	do {
		rc = w_ctl_send(pair[0], &m, nullptr, 0);
	} while (rc == 0);
	EXPECT_EQ(rc, -EAGAIN);
}

// ---- addresses ----

TEST(Addr, FabricNames)
{
	uid_t owner = 12345;
	char name[64] = "unchanged";

	EXPECT_EQ(w_fabric_parse("ring-1.x_Y", &owner, name), 0);
	EXPECT_EQ(owner, geteuid());
	EXPECT_STREQ(name, "ring-1.x_Y");
	EXPECT_EQ(w_fabric_parse("42:ring", &owner, name), 0);
	EXPECT_EQ(owner, 42u);
	EXPECT_EQ(w_fabric_parse("root:ring", &owner, name), 0);
	EXPECT_EQ(owner, 0u);
	for (const char *bad :
	     { "", ":", "a:", ":b", "a/b", "a b", "a:b:c", "4x:r", "99999999999:r" }) {
		snprintf(name, sizeof(name), "unchanged");
		EXPECT_EQ(w_fabric_parse(bad, &owner, name), -EINVAL) << bad;
		EXPECT_STREQ(name, "unchanged");
	}
	EXPECT_EQ(w_fabric_parse("nobody-here-9:r", &owner, name), -ENOENT);
	EXPECT_STREQ(name, "unchanged");
	EXPECT_EQ(w_fabric_parse(std::string(63, 'a').c_str(), &owner, name), 0);
	EXPECT_EQ(w_fabric_parse(std::string(64, 'a').c_str(), &owner, name), -EINVAL);
}

TEST(Addr, AddressesAreAbstractAndDiffer)
{
	sockaddr_un a, b;
	std::string longest(63, 'f');
	socklen_t la = w_agent_addr(&a, UINT32_MAX - 1, longest.c_str(), 63);
	socklen_t lb = w_cable_addr(&b, UINT32_MAX - 1, longest.c_str(), 63, 7);

	EXPECT_EQ(a.sun_path[0], 0);
	EXPECT_LE(la, sizeof(a));
	EXPECT_LE(lb, sizeof(b));
	EXPECT_EQ(std::string(a.sun_path + 1, la - 3), "viaduct/4294967294/" + longest + "/host63");
	EXPECT_EQ(std::string(b.sun_path + 1, lb - 3),
		  "viaduct/4294967294/" + longest + "/cable63.7");
}

// A process that sees the address of one host cannot bind that of another first.
TEST(Addr, WithASecretNoneFollowsFromAnother)
{
	std::string secret(W_SECRET_DIGITS, '7'), fabric = "osh-" + secret;
	std::set<std::string> seen;
	sockaddr_un un;

	EXPECT_TRUE(w_name_ok(fabric.c_str()));
	EXPECT_TRUE(w_name_secret(fabric.c_str()));
	for (std::string plain :
	     { "osh-" + secret.substr(1), "osh" + secret, "osh-X" + secret.substr(1), secret })
		EXPECT_FALSE(w_name_secret(plain.c_str())) << plain;
	auto note = [&](socklen_t len) {
		std::string path(un.sun_path + 1, len - sizeof(un.sun_family) - 1);

		EXPECT_EQ(path.size(), strlen("viaduct/1000/") + 16);
		EXPECT_EQ(path.rfind("viaduct/1000/", 0), 0u);
		EXPECT_EQ(path.find(secret.substr(0, 4)), std::string::npos);
		EXPECT_EQ(path.find("host"), std::string::npos);
		EXPECT_TRUE(seen.insert(path).second) << "twice: " << path;
	};
	for (unsigned host = 0; host < 64; host++) {
		note(w_agent_addr(&un, 1000, fabric.c_str(), host));
		for (unsigned port = 1; port < 8; port++)
			note(w_cable_addr(&un, 1000, fabric.c_str(), host, port));
	}
	fabric.back() = '8';
	note(w_agent_addr(&un, 1000, fabric.c_str(), 0));
}

TEST(Addr, CredentialsOfTheOtherEnd)
{
	int pair[2];

	ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	EXPECT_EQ(w_agent_cred_check(pair[0], geteuid()), 0);
	if (geteuid() != 0) {
		EXPECT_EQ(w_agent_cred_check(pair[0], geteuid() + 1), -EPERM);
	}
	close(pair[0]);
	close(pair[1]);
	EXPECT_EQ(w_agent_cred_check(pair[0], geteuid()), -EPERM);
}

} // namespace
