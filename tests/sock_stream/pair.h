/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams over TCP connections of this machine, for tests. */
#ifndef PAIR_H
#define PAIR_H

#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <sys/socket.h>

extern "C" {
#include "st_stream.h"
}

#include "clu.h"

/* The library between st_init() and st_fini(). */
class Library {
public:
	explicit Library(const std::string &device, uint32_t ring_bytes = 0,
			 uint32_t give_up_ms = 0);
	~Library();
	Library(const Library &) = delete;
};

/* One end of a stream. */
class End {
public:
	End() = default;
	End(int fd, st_role role);
	End(End &&other) noexcept { *this = std::move(other); }
	End &operator=(End &&other) noexcept;
	~End();
	operator st_stream *() const { return s; }
	void promote(const std::string &host, st_wait *w = nullptr);
	void close(st_close_how how = ST_CLOSE_ORDERLY);
	/* Returns -EAGAIN and the like unchanged. */
	ssize_t send(const void *bytes, size_t n, int flags = 0);
	ssize_t recv(void *bytes, size_t n, int flags = 0);
	/* Send or receive all of it; wait by st_sleep(); fail at the deadline. */
	void send_all(const void *bytes, size_t n);
	void recv_all(void *bytes, size_t n);
	/* Waits until recv() does not return -EAGAIN; returns its result. */
	ssize_t recv_wait(void *bytes, size_t n, int flags = 0);
	ssize_t send_wait(const void *bytes, size_t n);
	bool fast() const { return st_on_vi(s) == (ST_IN | ST_OUT); }
	int fd = -1;
	st_stream *s = nullptr;
};

/* Two ends of a connection of 127.0.0.1. */
struct Pair {
	Pair();
	void promote(const std::string &host_of_a, const std::string &host_of_b);
	/* Promotes, and waits until both ends send and receive over the VI. */
	void promoted(const std::string &host);
	End a, b;
};

/*
 * An end of a connection between two processes of a test, each of which calls this: the acceptor
 * listens, and publishes its port in a cell of the board.
 */
End meet(st_role role, size_t where);

/* Fills in bytes of stream `seed` from byte `at` on; byte i is part of a word that follows from i / 8. */
void fill(uint8_t *to, size_t n, uint64_t at, uint64_t seed = 0);
/* The index of the first byte that differs, or n. */
size_t differs(const uint8_t *from, size_t n, uint64_t at, uint64_t seed = 0);

/*
 * Sends `n` bytes of stream `seed` from byte `at` on, in pieces of random lengths; the other
 * function receives and compares them.
 */
void send_stream(End &end, uint64_t at, uint64_t n, uint64_t seed, size_t most);
void recv_stream(End &end, uint64_t at, uint64_t n, uint64_t seed, size_t most);

/* A thread whose failures fail the test. */
class Thread {
public:
	explicit Thread(const std::function<void()> &what);
	~Thread() { join(); }
	void join();

private:
	std::string error;
	std::thread thread;
};

struct st_stats stats();

#endif
