/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A neighbour's agent played by the test: host 1 of a fabric of two, or of a ring, at the
 * cable of host 0.  It writes the set-up words and the control slice by code of its own,
 * so that it can get them wrong.
 */
#ifndef NEIGHBOUR_H
#define NEIGHBOUR_H

#include "agent_fixture.h"

extern "C" {
#include "port.h"
#include "port_emu.h"
}

namespace agent_test {

class Neighbour {
public:
	explicit Neighbour(const Fabric &f) : hosts_(f.hosts())
	{
		uint32_t right = hosts_ == 2 ? 1 : 2; /* of host 0 */

		port_emu_cfg cfg = {};
		sockaddr_un un;
		socklen_t len = w_cable_addr(&un, geteuid(), f.name().c_str(), 0, right);
		int cable = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		EXPECT_EQ(port_emu_host_create(&host_), 0);
		cfg.index = 1;
		snprintf(cfg.name, sizeof(cfg.name), "left");
		EXPECT_EQ(port_emu_create(host_, &cfg, &port), 0);
		EXPECT_EQ(connect(cable, reinterpret_cast<sockaddr *>(&un), len), 0);
		EXPECT_EQ(port_emu_plug(port, cable), 0);
		EXPECT_EQ(port_link_enable(port), 0);
		EXPECT_TRUE(eventually([&] {
			port_service(port);
			return port_link_state(port, nullptr) == PORT_LINK_UP;
		}));
		EXPECT_EQ(port_slice_alloc(port, kBytes, &slice_), 0);
		EXPECT_EQ(port_map(port, slice_.fd, slice_.len, PORT_INBOUND, &in), 0);
	}

	~Neighbour()
	{
		port_unmap(port, &out);
		port_unmap(port, &in);
		close(slice_.fd);
		port_close(port);
		port_emu_host_destroy(host_);
	}

	static constexpr uint32_t kDbBits = 16; /* of each port of an emulated fabric */

	/* Writes the words of the set-up. */
	void announce(uint32_t version = W_CTL_VERSION, uint32_t host = 1, uint32_t hosts = 0,
		      uint32_t ack = 0, uint32_t db_bits = kDbBits)
	{
		uint32_t w[8] = { 0,
				  version << 16 | host,
				  kNonce,
				  slice_.id,
				  kBytes,
				  ack,
				  db_bits << 24 | 1,
				  hosts != 0 ? hosts : hosts_ };
		uint32_t h = 2166136261u;

		for (int i = 1; i < 8; i++) {
			if (i != 5)
				h = (h ^ w[i]) * 16777619u;
		}
		w[0] = 0x5644u << 16 | ((h >> 16 ^ h) & 0xffff);
		for (unsigned i = 8; i-- > 0;)
			port_peer_spad_write(port, i, w[i]);
		port_peer_db_ring(port, 1);
	}

	/* Makes a complete and correct set-up. */
	void join(uint32_t db_bits = kDbBits)
	{
		int fd = -1;

		announce(W_CTL_VERSION, 1, 0, 0, db_bits);
		ASSERT_TRUE(eventually([&] {
			port_service(port);
			return port_spad_read(port, 5) == kNonce;
		}));
		ASSERT_TRUE(eventually([&] {
			return port_peer_slice_open(port, port_spad_read(port, 3),
						    port_spad_read(port, 4), &fd) == 0;
		}));
		ASSERT_EQ(port_map(port, fd, kBytes, PORT_OUTBOUND, &out), 0);
		close(fd);
		announce(W_CTL_VERSION, 1, 0, port_spad_read(port, 2), db_bits);
	}

	/* The n-th record of the agent's control slice. */
	uint8_t *record(uint32_t n)
	{
		return static_cast<uint8_t *>(out.base) + 4096 + n % 64 * 512;
	}

	void publish(uint32_t n)
	{
		auto *seq = reinterpret_cast<std::atomic<uint32_t> *>(record(n) + 508);

		seq->store(w_seq(n), std::memory_order_release);
		port_peer_db_ring(port, 1);
	}

	/* Sends `bytes` as the next record, with `len` as its stated length. */
	void send(const void *bytes, size_t size, uint32_t len)
	{
		memcpy(record(next), bytes, size);
		memcpy(record(next) + 504, &len, sizeof(len));
		publish(next++);
	}

	template <typename T> void send(T &m, w_ctl_type type)
	{
		w_ctl_init(&m, type, sizeof(m));
		m.src_host = 1;
		m.path.hops = m.path.at = m.path.port[0] = 1;
		send(&m, sizeof(m), sizeof(m));
	}

	/* Sends the record by a path of the caller's. */
	template <typename T> void send_by(T &m, w_ctl_type type, const w_path &path)
	{
		w_ctl_init(&m, type, sizeof(m));
		m.path = path;
		send(&m, sizeof(m), sizeof(m));
	}

	/* Has the agent consumed all but `left` records? */
	bool consumed(uint32_t left = 0)
	{
		auto *done = static_cast<std::atomic<uint32_t> *>(in.base);

		return eventually([&] {
			port_service(port);
			return next - done->load() <= left || !up();
		});
	}

	bool up() { return port_link_state(port, nullptr) == PORT_LINK_UP; }

	/* Reads what has come so far; returns how many records. */
	uint32_t drain(const std::function<void(const w_cm &)> &look = nullptr)
	{
		uint32_t first = seen;
		w_cm cm;

		while (has_record()) {
			memcpy(&cm, static_cast<uint8_t *>(in.base) + 4096 + seen % 64 * 512,
			       sizeof(cm));
			seen++;
			if (look)
				look(cm);
		}
		credit(seen);
		return seen - first;
	}

	/* A slice that the agent may open; mapped inbound here. */
	port_slice offer(size_t len)
	{
		port_slice slice = {};

		EXPECT_EQ(port_slice_alloc(port, len, &slice), 0);
		close(slice.fd);
		slice.fd = -1;
		return slice;
	}

	/* The next record from the agent except heartbeats and link-state updates; false when none comes. */
	bool recv(w_cm *out_cm)
	{
		do {
			if (!recv_any(out_cm))
				return false;
		} while ((out_cm->hdr.type == W_CM_HEARTBEAT && out_cm->status == 1) ||
			 out_cm->hdr.type == W_CM_LINKS);
		return true;
	}

	bool has_record()
	{
		uint8_t *r = static_cast<uint8_t *>(in.base) + 4096 + seen % 64 * 512;
		auto *seq = reinterpret_cast<std::atomic<uint32_t> *>(r + 508);

		return seq->load(std::memory_order_acquire) == w_seq(seen);
	}

	bool recv_any(w_cm *out_cm)
	{
		uint8_t *r = static_cast<uint8_t *>(in.base) + 4096 + seen % 64 * 512;

		if (!eventually([&] { return has_record(); }))
			return false;
		memcpy(out_cm, r, sizeof(*out_cm));
		seen++;
		credit(seen);
		return true;
	}

	void credit(uint32_t n)
	{
		static_cast<std::atomic<uint32_t> *>(out.base)->store(n);
		port_peer_db_ring(port, 1);
	}

	/* Did the agent take the link down? */
	bool cut()
	{
		return eventually([&] {
			port_service(port);
			return port_link_state(port, nullptr) != PORT_LINK_UP;
		});
	}

	static constexpr uint32_t kBytes = 4096 + 64 * 512;
	static constexpr uint32_t kNonce = 0x600df00d;

	struct port *port = nullptr;
	struct port_map in = {}, out = {};
	uint32_t next = 0, seen = 0;

private:
	const unsigned hosts_;
	port_emu_host *host_ = nullptr;
	port_slice slice_ = {};
};

} // namespace agent_test

#endif
