/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hostile processes with NICs on three hosts in a ring, together with honest ones.  The hostile ones speak to
 * their agents themselves: they scribble over all pages that they are handed, send messages with
 * names of others, random messages and bytes that are none, flood with connects and do not read the
 * answers, hold what they get, die and come again.  The honest ones have standing connections, whose
 * messages are checked, and make new ones all the time.  What must hold: no honest call fails, and
 * in the end nothing is left.
 *
 * CLUSTER_HOSTILE_SECONDS says for how long.  The longest wait for a message and the longest time
 * to make a connection are printed; in the stress suite neither may be longer than a second, less
 * the time that the machine stood still.
 */
#include "honest.h"

#include <array>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>

#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

extern "C" {
#include "w_addr.h"
#include "w_ctl.h"
#include "w_tool.h"
}

using namespace clu;

constexpr unsigned kHosts = 3, kHostile = 3;
constexpr size_t kDeeds = 512;
enum Deed { SCRIBBLE, NAMES, NOISE, FLOOD, HOLD, TALK, DESCRIPTORS, DEEDS };
static const char *const deed_names[] = { "scribbles", "names of others", "noise",	"floods",
					  "holds",     "connections",	  "descriptors" };

/* ---- the hostile process ------------------------------------------------------------------------- */

class Hostile {
public:
	Hostile(unsigned host, uint64_t stream) : host_(host), random_(stream) {}

	~Hostile() { hang_up(); }

	void act()
	{
		auto deed = static_cast<Deed>(random_.below(DEEDS));

		if (sock_ < 0 && !come())
			return;
		cell(kDeeds + deed)++;
		switch (deed) {
		case SCRIBBLE:
			scribble();
			break;
		case NAMES:
			for (int i = 0; i < 200; i++)
				name_others();
			break;
		case NOISE:
			noise();
			break;
		case FLOOD:
			flood();
			break;
		case HOLD:
			hold();
			break;
		case TALK:
			talk();
			break;
		default:
			descriptors();
		}
		if (random_.below(4) != 0)
			receive_all();
		if (random_.below(16) == 0)
			hang_up();
		if (random_.below(64) == 0)
			_exit(0);
	}

private:
	bool come()
	{
		sockaddr_un un;
		socklen_t len = w_agent_addr(&un, geteuid(), getenv("VIADUCT_FABRIC"), host_);
		w_hello hello = {};

		sock_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (sock_ < 0 || connect(sock_, reinterpret_cast<sockaddr *>(&un), len) != 0) {
			hang_up();
			return false;
		}
		hello.kind = W_KIND_NIC;
		snprintf(hello.program, sizeof(hello.program), "hostile");
		send(hello, W_HELLO);
		until(
			[&] {
				receive_all();
				return sock_ < 0 || !pages_.empty();
			},
			2000);
		return sock_ >= 0;
	}

	void hang_up()
	{
		if (sock_ >= 0)
			close(sock_);
		sock_ = -1;
		for (auto *page : pages_)
			munmap(page, 4096);
		pages_.clear();
	}

	template <typename T> void send(T &m, w_ctl_type type)
	{
		w_ctl_init(&m, type, sizeof(m));
		if (sock_ >= 0)
			w_ctl_try(sock_, &m);
	}

	/*
	 * Maps the memory that the agent passes; remembers the ids that it is told, to use them in messages.
	 */
	void take(int fd)
	{
		void *at = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		if (at != MAP_FAILED && pages_.size() < 64)
			pages_.push_back(static_cast<std::atomic<uint32_t> *>(at));
		else if (at != MAP_FAILED)
			munmap(at, 4096);
		close(fd);
	}

	void receive_all()
	{
		alignas(8) uint8_t buf[W_CTL_MAX];
		int fds[W_CTL_FDS], len;
		unsigned n;

		while (sock_ >= 0) {
			n = 0;
			len = w_ctl_recv(sock_, buf, sizeof(buf), fds, &n);
			for (unsigned i = 0; len > 0 && i < n; i++)
				take(fds[i]);
			if (len == -EAGAIN)
				return;
			if (len <= 0) {
				hang_up();
				return;
			}
			on_message(buf, w_ctl_check(buf, static_cast<uint32_t>(len)));
		}
	}

	void on_message(const void *buf, int type)
	{
		if (type == W_ARRIVED)
			know(static_cast<const w_arrived *>(buf)->conn);
		else if (type == W_LINKED)
			know(static_cast<const w_linked *>(buf)->conn);
		else if (type == W_ALLOCATED)
			slice_ = static_cast<const w_alloc *>(buf)->slice_id;
	}

	void know(uint64_t conn) { conns_[known_++ % conns_.size()] = conn; }

	uint64_t any_conn()
	{
		uint64_t conn = conns_[random_.below(conns_.size())];

		return random_.below(4) ? conn + (random_.below(9) - 4) : random_.next();
	}

	w_addr any_addr()
	{
		w_addr a = {};

		w_host_addr(static_cast<uint16_t>(random_.below(kHosts + 1)), a.host);
		a.host_len = random_.below(16) ? W_HOST_ADDR_LEN : 5;
		a.disc_len = 5;
		memcpy(a.disc, "evil", 5);
		a.disc[4] = static_cast<uint8_t>(random_.below(4));
		return a;
	}

	w_addr own_addr()
	{
		w_addr a = any_addr();

		w_host_addr(static_cast<uint16_t>(host_), a.host);
		a.host_len = W_HOST_ADDR_LEN;
		return a;
	}

	/* Writes over all that is writable of the pages that it was passed. */
	void scribble()
	{
		uint64_t how = random_.below(4);
		int64_t end = now_ns() + static_cast<int64_t>(random_.below(300)) * 1000000;

		do {
			for (auto *page : pages_) {
				for (size_t i = 0; i < 1024; i++)
					page[i].store(
						how == 0   ? 0
						: how == 1 ? ~0u
						: how == 2 ? static_cast<uint32_t>(random_.next())
							   : page[i].load() + 1,
						std::memory_order_relaxed);
			}
		} while (now_ns() < end && !over());
	}

	void connection(w_ctl_type type, const w_addr &local, const w_addr &remote)
	{
		w_connect m = {};

		m.token = random_.below(64);
		m.attrs.reliability = 2;
		m.attrs.max_transfer = 65536;
		m.local = local;
		m.remote = remote;
		send(m, type);
	}

	void name_others()
	{
		static const w_ctl_type of_conn[] = { W_REJECT, W_CONFIRM, W_CLOSE, W_PORT_AGAIN };
		w_conn conn = {};
		w_token token = {};
		w_suspended suspended = {};
		w_tell tell = {};
		w_accept accept = {};
		w_alloc gone = {};
		w_counted counted = {};

		switch (random_.below(8)) {
		case 0:
			conn.conn = random_.below(4) ? any_conn() : random_.below(8);
			send(conn, of_conn[random_.below(conn.conn < 8 ? 4 : 3)]);
			break;
		case 1:
			token.token = random_.below(64);
			send(token, random_.below(2) ? W_CANCEL : W_UNLISTEN);
			break;
		case 2:
			suspended.conn = any_conn();
			suspended.consumed.slots = static_cast<uint32_t>(random_.next());
			send(suspended, W_SUSPENDED);
			break;
		case 3:
			tell.conn = any_conn();
			tell.slice_id = random_.below(2) ? slice_
							 : static_cast<uint32_t>(random_.below(99));
			tell.body_len = static_cast<uint32_t>(random_.below(W_TELL_MAX));
			send(tell, W_TELL);
			break;
		case 4:
			accept.conn = any_conn();
			accept.attrs.reliability = 2;
			accept.attrs.max_transfer = 65536;
			send(accept, W_ACCEPT);
			break;
		case 5:
			gone.slice_id = static_cast<uint32_t>(random_.below(200));
			send(gone, W_FREE);
			break;
		case 6:
			counted.client = static_cast<uint32_t>(random_.below(64));
			counted.token = random_.below(8);
			send(counted, W_COUNTED);
			break;
		default:
			connection(random_.below(2) ? W_CONNECT : W_PEER, any_addr(), any_addr());
		}
	}

	void noise()
	{
		uint8_t bytes[W_CTL_MAX];
		size_t len = 1 + random_.below(sizeof(bytes));

		for (uint8_t &b : bytes)
			b = static_cast<uint8_t>(random_.next());
		if (len >= sizeof(w_ctl_hdr) && random_.below(2))
			w_ctl_init(bytes, static_cast<w_ctl_type>(random_.below(150)),
				   static_cast<uint32_t>(len));
		(void)!::send(sock_, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT);
	}

	/* It does not read the answers while it asks. */
	void flood()
	{
		uint64_t n = random_.below(5000);

		for (uint64_t i = 0; i < n && !over(); i++)
			connection(random_.below(4) ? W_CONNECT : W_PEER, own_addr(), any_addr());
	}

	void hold()
	{
		w_alloc m = {};

		for (int i = 0; i < 32; i++) {
			m.token = random_.below(64);
			m.length = 1u << random_.below(18);
			send(m, W_ALLOC);
			connection(W_LISTEN, own_addr(), w_addr{});
		}
	}

	void talk()
	{
		w_accept accept = {};
		w_conn conn = {};

		connection(W_LISTEN, own_addr(), w_addr{});
		connection(W_CONNECT, own_addr(), any_addr());
		receive_all();
		accept.conn = conn.conn = conns_[known_ % conns_.size()];
		accept.attrs.reliability = 2;
		accept.attrs.max_transfer = 65536;
		for (uint64_t id : conns_) {
			accept.conn = conn.conn = id;
			send(accept, W_ACCEPT);
			send(conn, W_CONFIRM);
		}
	}

	void descriptors()
	{
		w_token m = {};
		int fds[W_CTL_FDS] = { sock_, sock_, sock_, sock_ };

		w_ctl_init(&m, W_CANCEL, sizeof(m));
		for (int i = 0; i < 20 && sock_ >= 0; i++)
			w_ctl_send(sock_, &m, fds, W_CTL_FDS);
	}

	const unsigned host_;
	Random random_;
	int sock_ = -1;
	std::vector<std::atomic<uint32_t> *> pages_;
	std::array<uint64_t, 16> conns_{};
	size_t known_ = 0;
	uint32_t slice_ = 0;
};

/* host stream */
ROLE(hostile)
{
	Hostile h(static_cast<unsigned>(std::stoul(args.at(0))), std::stoull(args.at(1)));

	while (!over())
		h.act();
}

/* ---- the run ------------------------------------------------------------------------------------- */

TEST(HostileProcesses, HarmNobodyElse)
{
	board_clear();
	Fabric f(kHosts);
	Honest good({ kHosts, 3, 2, 0 });
	std::vector<Process> bad(kHostile);
	uint64_t generations = 0;

	good.run(honest_seconds("CLUSTER_HOSTILE_SECONDS"), [&] {
		for (unsigned i = 0; i < kHostile; i++) {
			if (bad[i].pid() < 0 || bad[i].ended())
				bad[i] = role("hostile", { text("%u", i % kHosts),
							   text("%" PRIu64, ++generations) });
		}
	});
	good.end(bad);
	print_deeds("hostile", kDeeds, deed_names, DEEDS);
	expect_nobody(f, kHosts);
	f.stop();
	EXPECT_EQ(f.left_behind(), "");
}
