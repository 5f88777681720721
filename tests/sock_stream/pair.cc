/* SPDX-License-Identifier: BSD-2-Clause */
#include "pair.h"

#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <gtest/gtest.h>

using namespace clu;

Library::Library(const std::string &device, uint32_t ring_bytes, uint32_t give_up_ms)
{
	static std::string name;
	st_config config = {};
	config.size = sizeof(config);

	name = device;
	config.device = name.c_str();
	config.ring_bytes = ring_bytes;
	config.give_up_ms = give_up_ms;
	NEED(st_init(&config) == 0);
}

Library::~Library()
{
	st_fini(5000);
}

static timespec deadline()
{
	timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += kSeconds;
	return t;
}

End::End(int fd_, st_role role)
{
	st_origin origin = {};
	origin.size = sizeof(origin);
	socklen_t len = sizeof(origin.local);

	fd = fd_;
	origin.role = role;
	NEED(getsockname(fd, reinterpret_cast<sockaddr *>(&origin.local), &len) == 0);
	len = sizeof(origin.remote);
	NEED(getpeername(fd, reinterpret_cast<sockaddr *>(&origin.remote), &len) == 0);
	NEED(st_create(fd, &origin, &s) == 0);
}

End &End::operator=(End &&other) noexcept
{
	std::swap(fd, other.fd);
	std::swap(s, other.s);
	return *this;
}

End::~End()
{
	close();
	if (s)
		st_put(s);
}

void End::promote(const std::string &host, st_wait *w)
{
	NEED(st_promote(s, host.c_str(), w, 0) == 0);
}

void End::close(st_close_how how)
{
	if (fd < 0)
		return;
	st_close(s, how);
	::close(fd);
	fd = -1;
}

ssize_t End::send(const void *bytes, size_t n, int flags)
{
	iovec iov = { const_cast<void *>(bytes), n };

	return st_send(s, &iov, 1, flags);
}

ssize_t End::recv(void *bytes, size_t n, int flags)
{
	iovec iov = { bytes, n };

	return st_recv(s, &iov, 1, flags);
}

ssize_t End::send_wait(const void *bytes, size_t n)
{
	timespec until = deadline();

	for (;;) {
		ssize_t rc = send(bytes, n);
		if (rc != -EAGAIN)
			return rc;
		int events = st_sleep(s, ST_OUT, &until);
		if (events < 0 && events != -EINTR)
			return events == -EAGAIN ? -ETIME : events;
	}
}

ssize_t End::recv_wait(void *bytes, size_t n, int flags)
{
	timespec until = deadline();

	for (;;) {
		ssize_t rc = recv(bytes, n, flags);
		if (rc != -EAGAIN)
			return rc;
		int events = st_sleep(s, ST_IN, &until);
		if (events < 0 && events != -EINTR)
			return events == -EAGAIN ? -ETIME : events;
	}
}

void End::send_all(const void *bytes, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t rc = send_wait(static_cast<const char *>(bytes) + done, n - done);
		if (rc <= 0)
			fail(__FILE__, __LINE__, text("send: %zd of %zu bytes left", rc, n - done));
		done += static_cast<size_t>(rc);
	}
}

void End::recv_all(void *bytes, size_t n)
{
	for (size_t done = 0; done < n;) {
		ssize_t rc = recv_wait(static_cast<char *>(bytes) + done, n - done);
		if (rc <= 0)
			fail(__FILE__, __LINE__,
			     text("receive: %zd of %zu bytes left", rc, n - done));
		done += static_cast<size_t>(rc);
	}
}

static int listen_here(uint16_t *port)
{
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	sockaddr_in at = {};
	socklen_t len = sizeof(at);

	at.sin_family = AF_INET;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	NEED(listener >= 0);
	NEED(bind(listener, reinterpret_cast<sockaddr *>(&at), len) == 0 &&
	     listen(listener, 1) == 0);
	NEED(getsockname(listener, reinterpret_cast<sockaddr *>(&at), &len) == 0);
	*port = ntohs(at.sin_port);
	return listener;
}

static int without_delay(int fd)
{
	int one = 1;

	NEED(fd >= 0);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static int connect_to(uint16_t port)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	sockaddr_in at = {};

	at.sin_family = AF_INET;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at.sin_port = htons(port);
	NEED(fd >= 0);
	NEED(connect(fd, reinterpret_cast<sockaddr *>(&at), sizeof(at)) == 0);
	return without_delay(fd);
}

static int accept_one(int listener)
{
	int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);

	::close(listener);
	return without_delay(fd);
}

Pair::Pair()
{
	uint16_t port;
	int listener = listen_here(&port), fd = connect_to(port);

	a = End(fd, ST_CONNECTOR);
	b = End(accept_one(listener), ST_ACCEPTOR);
}

End meet(st_role role, size_t where)
{
	uint16_t port;

	if (role == ST_ACCEPTOR) {
		int listener = listen_here(&port);

		cell(where) = port;
		return End(accept_one(listener), role);
	}
	NEED(until([&] { return cell(where) != 0; }));
	return End(connect_to(static_cast<uint16_t>(cell(where))), role);
}

void Pair::promote(const std::string &host_of_a, const std::string &host_of_b)
{
	a.promote(host_of_b);
	b.promote(host_of_a);
}

void Pair::promoted(const std::string &host)
{
	promote(host, host);
	NEED(until([&] { return a.fast() && b.fast(); }));
}

static uint64_t word_of(uint64_t i, uint64_t seed)
{
	uint64_t x = (i + seed * 977 + 1) * 0x9e3779b97f4a7c15u;

	return x ^ x >> 29;
}

void fill(uint8_t *to, size_t n, uint64_t at, uint64_t seed)
{
	for (size_t i = 0; i < n;) {
		uint64_t word = word_of((at + i) / 8, seed), from = (at + i) % 8;
		size_t some = 8 - from < n - i ? 8 - from : n - i;

		memcpy(to + i, reinterpret_cast<char *>(&word) + from, some);
		i += some;
	}
}

size_t differs(const uint8_t *from, size_t n, uint64_t at, uint64_t seed)
{
	std::vector<uint8_t> right(n);

	fill(right.data(), n, at, seed);
	if (memcmp(right.data(), from, n) == 0)
		return n;
	for (size_t i = 0; i < n; i++)
		if (from[i] != right[i])
			return i;
	return n;
}

void send_stream(End &end, uint64_t at, uint64_t n, uint64_t seed, size_t most)
{
	Random random(seed + 100);
	std::vector<uint8_t> piece(most);

	for (uint64_t done = 0; done < n;) {
		size_t some = 1 + random.below(most);
		some = some < n - done ? some : n - done;
		fill(piece.data(), some, at + done, seed);
		end.send_all(piece.data(), some);
		done += some;
	}
}

void recv_stream(End &end, uint64_t at, uint64_t n, uint64_t seed, size_t most)
{
	Random random(seed + 200);
	std::vector<uint8_t> piece(most);

	for (uint64_t done = 0; done < n;) {
		size_t some = 1 + random.below(most);
		some = some < n - done ? some : n - done;
		ssize_t rc = end.recv_wait(piece.data(), some);
		if (rc <= 0)
			fail(__FILE__, __LINE__,
			     text("receive: %zd at byte %llu", rc,
				  static_cast<unsigned long long>(at + done)));
		size_t bad = differs(piece.data(), rc, at + done, seed);
		if (bad != static_cast<size_t>(rc))
			fail(__FILE__, __LINE__,
			     text("byte %llu differs",
				  static_cast<unsigned long long>(at + done + bad)));
		done += rc;
	}
}

Thread::Thread(const std::function<void()> &what)
    : thread([this, what] {
	      try {
		      what();
	      } catch (const std::exception &e) {
		      error = e.what();
	      }
      })
{
}

void Thread::join()
{
	if (!thread.joinable())
		return;
	thread.join();
	EXPECT_EQ(error, "");
}

struct st_stats stats()
{
	struct st_stats all = {};

	all.size = sizeof(all);

	st_stats(&all);
	return all;
}
