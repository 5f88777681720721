/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * st_stream.h - the byte stream of a TCP connection, over TCP or over a VI
 *
 * A stream is a connected TCP socket whose bytes may move to a VI (promotion) and back (demotion), each direction by
 * itself and between any two bytes.  The caller sends and receives through it from the moment the socket is
 * connected; the stream calls the kernel as long as a direction is on TCP.  docs/sockets.md has the protocol.
 *
 * libvistream.so has these functions; libvisock.so, which vi_run preloads, and the SelectorProvider of the Java
 * binding are built on them.  Link with -lvistream, as vistream.pc says.  A structure that may grow begins with its
 * size, which the caller sets.
 *
 * No call sleeps but st_sleep(), st_linger() and st_fini().  Errors are negative errno values, errno itself is not
 * touched.  SIGPIPE is the caller's: the stream never raises it.
 *
 * Duties of the caller
 *
 *   socket connected, or accepted     st_create(); once a peer host is known and an exchange has shown that the
 *                                     connection lives long enough: st_promote()
 *   all sends and receives            st_send(), st_recv(), never the kernel's on that descriptor
 *   shutdown, close                   st_shutdown(); st_close() before the descriptor's last close
 *   poll, select, epoll, blocking     st_ready(), and for a sleep the order of «Sleeping» below
 *   fork                              st_fork_child() in the child
 *   before exec, SCM_RIGHTS, MSG_OOB, setsockopt(TCP_ULP ...), fdopen
 *                                     st_demote(), then sleep until st_on_tcp(), and st_settle()
 *
 * Threads.  All calls are thread-safe as long as the caller holds a reference (st_get(), st_put()).  A direction
 * has one lock, which a call holds while it copies and never while it sleeps; so calls of two threads that send
 * take turns by the piece.  A caller that wants whole calls not to be mixed has a lock of its own around them.
 * A signal handler that interrupts a call of its own thread on the same direction gets -EDEADLK from it.
 *
 * Sleeping.  A thread must find what arrives on either path, and not miss a move from one to the other.
 *
 *   fd = st_sleep_begin(s, w)         registers the thread.  From here on every change of path of the stream s (any
 *                                     stream if NULL), and every entry of wait object w (any) that another thread
 *                                     takes, makes fd readable
 *   st_arm(s, events)                 for each stream: > 0: these events are there, do not sleep.  0: the other end
 *                                     will ring
 *   st_wait_arm(w)                    for each wait object: 1: something came, look again (st_arm()).  0: armed
 *   poll()                            on fd, st_wait_fd(w) of each wait object, and for each stream its descriptor
 *                                     with the events st_kernel_events() gives
 *   st_wait_take(w, ...)              after the poll, if a wait object's descriptor was readable
 *   st_sleep_end()
 *
 * It is enough to register once for several streams with NULL, NULL. A caller with many streams need not arm those
 * again that are still armed: st_changes() tells which.
 *
 * Each function is described by a comment of the form that vipl.h explains, and has a manual page.
 */
#ifndef ST_STREAM_H
#define ST_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>

#include "st_names.h"

#ifdef __cplusplus
extern "C" {
#endif
#ifdef __GNUC__
#pragma GCC visibility push(default)
#endif

struct st_stream;
struct st_wait;

/* ---- the process --------------------------------------------------------------------------------------------- */

/* Version of header and library: additions raise it; a change that would break programs gets another library. */
#define ST_VERSION 3

/**
 * st_version - the version of the library
 *
 * A program that was compiled with a larger ST_VERSION than this uses calls that the library
 * lacks.
 *
 * Ownership: none.
 *
 * Return: ST_VERSION of the library.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
uint32_t st_version(void);

#define ST_POLLERS_MOST 64

struct pollfd; /* of poll.h */

struct st_config {
	uint64_t size;	     /* sizeof(struct st_config) */
	const char *device;  /* name for VipOpenNic(); NULL: "nic0" */
	uint32_t ring_bytes; /* of a direction: a power of two from 4 KiB to 16 MiB; 0: 1 MiB */
	uint32_t give_up_ms; /* an attempt without a peer ends after this; 0: 2000 */
	uint32_t spin_us;    /* st_sleep() looks for this long before it arms; 0: not at all */
	uint32_t pollers; /* threads that look at watched streams; 0: none, at most ST_POLLERS_MOST */
	int low_fd; /* descriptors of ours are at least this; 0: 1000, or what the limit allows */
	/* The NIC is open now; by the helper thread.  May be NULL. */
	void (*opened)(void *nic);
	/* One line about a thing that a user should know, without newline; may be NULL.  Called with no lock held. */
	void (*log)(const char *line);
	/*
	 * In place of ppoll() where st_sleep() sleeps: events, or a negative errno.  The first entry is the thread's
	 * own, and ends the sleep when it is written to, so that a signal handler can.  No lock is held, and the
	 * call may be left for good after st_sleep_end().  May be NULL.  A structure without it is accepted.
	 */
	int (*sleep)(struct pollfd *v, unsigned n, const struct timespec *left);
};

/**
 * st_init - set the configuration of later calls
 * @config: in, settings; `size` has to be set, every other field may be 0
 *
 * The NIC is not opened before the first st_promote(). A program that is content with the
 * defaults need not call it.
 *
 * Ownership: the structure is copied; the string `device` has to stay until st_fini().
 *
 * Return:
 *  - 0: set
 *  - -EINVAL: a value out of its range, or a size of another version: set `size` to sizeof(struct
 *    st_config)
 *  - -EALREADY: called before, as in each process under vi_run, whose sockets are served already:
 *    leave this process's sockets alone
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: before all other calls that it is to affect.
 *
 * Since: 1.4
 */
int st_init(const struct st_config *config);

/**
 * st_fini - end all that the library does in this process
 * @wait_ms: in, milliseconds that closed streams may take to deliver what was sent
 *
 * Closes the NIC and ends the library's threads. Streams that are not closed then are reset. Call
 * nothing afterwards but st_init().
 *
 * Ownership: streams and wait objects stay the caller's, to be given back by st_put() and
 * st_wait_destroy(); their descriptors are no longer watched.
 *
 * Return: nothing.
 *
 * Context: sleeps, at most that long and as long as closing a NIC takes. Not thread-safe: no other call
 * may be under way.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
void st_fini(uint32_t wait_ms);

/**
 * st_deliver - wait until the end of the process loses nothing
 * @wait_ms: in, milliseconds, of all streams together
 *
 * To be called before _exit(). Waits until what st_send() has taken is in the memory of the other
 * end or with the kernel, and the other end knows that nobody reads where it might write to the
 * socket, which would reset the connection. Bytes that are in neither by then are lost with the
 * process, and the other end gets ECONNRESET after the bytes that have arrived.
 *
 * In a signal handler that has interrupted a call of this file it does nothing.
 *
 * Ownership: streams stay the caller's, but memory of those that exist is not given back: the
 * process has to end.
 *
 * Return: nothing.
 *
 * Context: sleeps, at most that long. Thread-safe. Allowed in signal handlers.
 *
 * Ordering: none.
 *
 * Since: 1.4, ST_VERSION 2
 */
void st_deliver(uint32_t wait_ms);

/**
 * st_fork_child - make the library usable in the child of fork()
 *
 * No stream of the parent has a VI any more. One that was on TCP in both directions works on as a
 * TCP socket and can be promoted again; any other is foreign: its calls give -ENOTCONN. The NIC is
 * opened again by the child's first st_promote(). Wait objects stay valid, and have new
 * descriptors: ask st_wait_fd() again. Wakers and watches are no longer valid. libvisock.so does
 * this for programs under vi_run.
 *
 * Ownership: streams and wait objects of the parent are the child's as well, each with the
 * references that the parent had.
 *
 * Return: nothing.
 *
 * Context: for the only thread of the child, at once, and with no lock of the caller held that
 * calls of the library need.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
void st_fork_child(void);

/* Every field but the size only grows. */
struct st_stats {
	uint64_t size; /* sizeof(struct st_stats), set by the caller: no more is written */
	uint64_t vi_bytes_sent, vi_bytes_received;   /* payload over VIs */
	uint64_t tcp_bytes_sent, tcp_bytes_received; /* payload of streams over TCP */
	uint64_t promotions;			     /* directions that send over a VI */
	uint64_t attempts, given_up;		     /* of VIs */
	uint64_t demotions[16];			     /* directions, by ST_WHY_ */
	uint64_t wakes_sent, wakes_received, arms;
	uint64_t resets; /* connections ended because a VI was lost with bytes under way */
	uint64_t polled,
		poller_wakes; /* watched streams for which a poller had news; sleepers that it woke */
	uint64_t looks;	      /* of the helper thread at a stream; none where nothing happens */
	/*
	 * Since ST_VERSION 3, where rules put pollers on the cores of the threads that call: watches given; those of
	 * them to a poller that is held on the core of the thread.
	 */
	uint64_t given, given_one_core;
};

/**
 * st_stats - what the library has done in this process
 * @stats: out, counters; `size` is in: no more than that is written
 *
 * Fields that this library does not have yet stay as they are.
 *
 * Ownership: the structure is the caller's.
 *
 * Return: nothing.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: each counter is exact for calls that have returned; several are not read at one moment.
 *
 * Since: 1.4
 */
void st_stats(struct st_stats *stats);

/* Why a direction is back on TCP, or never left it. */
enum st_why {
	ST_WHY_NONE = 0,
	ST_WHY_ASKED,	/* st_demote() here */
	ST_WHY_PEER,	/* the other end demoted, or asked to */
	ST_WHY_NO_NIC,	/* no NIC can be opened */
	ST_WHY_NO_HOST, /* the name is not that of a host of the fabric, or there is no path to it */
	ST_WHY_NO_PEER, /* no answer: the peer does not know the protocol, or addresses are translated */
	ST_WHY_NO_MEMORY, /* no window memory or no VI is left */
	ST_WHY_VERSION,	  /* another version, or a malformed greeting */
	ST_WHY_TOKEN,	  /* the VI's other end is not that of the TCP connection */
	ST_WHY_LOST,	  /* the VI was lost with nothing under way */
	ST_WHY_CLOSED,	  /* the connection was closed or shut down before */
	ST_WHY_FORK,	  /* in a child of fork(), or another process has used the socket */
	ST_WHY_COUNT
};

/**
 * st_why_text - a reason in words
 * @why: in, a reason; an unknown one gives "unknown"
 *
 * For people; the words may change.
 *
 * Ownership: the string is the library's and stays.
 *
 * Return: the text, never NULL.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
const char *st_why_text(enum st_why why);

/* ---- streams ------------------------------------------------------------------------------------------------- */

enum st_role { ST_CONNECTOR = 1, ST_ACCEPTOR = 2 };

struct st_origin {
	uint64_t size; /* sizeof(struct st_origin) */
	enum st_role role;
	/* Both of one family, IPv4 or IPv6; a mapped IPv4 address is the same as the IPv4 address. */
	struct sockaddr_storage local, remote;
	/* Payload bytes that the kernel's socket has sent and received since it was connected, by whomever. */
	uint64_t sent, received;
};

/**
 * st_create - make a stream of a connected TCP socket
 * @fd: in, the socket
 * @origin: in, its role, addresses and byte counts; `size` has to be set
 * @stream: out, the stream, with one reference, on TCP
 *
 * File status flags of the descriptor do not matter: the stream never blocks in the kernel.
 *
 * Ownership: the descriptor stays the caller's, and has to live until st_close() has returned;
 * only the stream may send and receive there. The reference is given back by st_put(). `origin`
 * is copied.
 *
 * Return:
 *  - 0: made
 *  - -EINVAL: a bad descriptor, role or size
 *  - -ENOMEM: out of memory
 *  - -EDEADLK: a signal handler interrupted a call of its own thread that changes the list of all streams
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
int st_create(int fd, const struct st_origin *origin, struct st_stream **stream);

/**
 * st_get - take a reference to a stream
 * @s: in, a stream to which the caller has a reference, or which it keeps alive otherwise
 *
 * Ownership: each reference is given back by st_put().
 *
 * Return: nothing.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
void st_get(struct st_stream *s);

/**
 * st_put - give a reference back
 * @s: in, a stream
 *
 * The last reference may be given back only after st_close(). In a signal handler that interrupted a call of its own
 * thread which reads or changes the lists of all streams and wait objects, a later st_put() gives it back.
 *
 * Ownership: the caller must not use the stream again unless it has another reference.
 *
 * Return: nothing.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: what the caller did with the stream happens before its memory is freed.
 *
 * Since: 1.4
 */
void st_put(struct st_stream *s);

/**
 * st_set_fd - tell that the descriptor has another number
 * @s: in, a stream
 * @fd: in, the number that later kernel calls use, after dup2()
 *
 * Ownership: as of st_create(), for the new number; the old one is free when the call returns.
 *
 * Return: nothing.
 *
 * Context: waits for calls on the stream that are under way. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
void st_set_fd(struct st_stream *s, int fd);

/**
 * st_promote - move the bytes of a stream to a VI
 * @s: in, a stream
 * @host: in, name of the peer's host in the fabric
 * @w: in, the wait object that gets the stream's entries, or NULL for one of its own; a stream keeps
 *	the one of its first attempt
 * @ring_bytes: in, size of the ring of each direction, as in struct st_config; 0 is the default
 *
 * Begins an attempt: a thread of the library opens the NIC, finds the peer and switches both
 * directions, each between two bytes. The other end has to do the same. Bytes flow over TCP until
 * then, and for good if the attempt ends without success: st_why() tells the reason.
 *
 * Ownership: the name is copied. `w` has to outlive the stream.
 *
 * Return:
 *  - 0: begun
 *  - -EALREADY: begun before: wait for its end, or st_demote() first
 *  - -EHOSTUNREACH: this name was found not to be that of a host: stay with TCP
 *  - -EINVAL: a ring size out of its range, or a name that is too long
 *  - -ENOTCONN: closed or shut down
 *  - -EOPNOTSUPP: connected to itself, or neither IPv4 nor IPv6: stay with TCP
 *  - -EPERM: the stream of a parent process
 *  - -EAGAIN, -ENOMEM, -EMFILE, -ENFILE: the thread or its descriptor cannot be made: try again
 *    when some are free
 *  - -EDEADLK: a signal handler interrupted a call of its own thread on this direction: let that
 *    call return first
 *
 * Context: does not wait for the attempt. Thread-safe.
 *
 * Ordering: bytes keep their order over every change of path.
 *
 * Since: 1.4
 */
int st_promote(struct st_stream *s, const char *host, struct st_wait *w, uint32_t ring_bytes);

/**
 * st_send - send without blocking
 * @s: in, a stream
 * @iov: in, the bytes
 * @count: in, elements of `iov`
 * @flags: in, MSG_MORE, MSG_OOB (on TCP only), or 0; others are ignored, as MSG_DONTWAIT and
 *	MSG_NOSIGNAL hold anyway
 *
 * With MSG_MORE the bytes may be held back until more come, st_flush() is called, or 200 ms have
 * passed. SIGPIPE is never raised.
 *
 * Ownership: the memory is the caller's again when the call returns.
 *
 * Return:
 *  - above 0: bytes taken, fewer than asked for where room ends
 *  - -EAGAIN: no room, or the direction is between two paths: sleep for ST_OUT
 *  - -EPIPE: shut down for sending: close
 *  - -ECONNRESET: the connection was lost, told once: close. Other errors of the kernel likewise
 *  - -EFAULT: memory that cannot be read, on TCP
 *  - -EBADF: closed, see st_close()
 *  - -ENOTCONN: the stream of a parent process, see st_fork_child(): close the descriptor
 *  - -EDEADLK: a signal handler interrupted a call of its own thread on this direction: let that
 *    call return first
 *
 * Context: does not block. Thread-safe. Threads that send take turns by the piece.
 *
 * Ordering: bytes arrive in the order in which they were taken.
 *
 * Since: 1.4
 */
ssize_t st_send(struct st_stream *s, const struct iovec *iov, int count, int flags);

/**
 * st_recv - receive without blocking
 * @s: in, a stream
 * @iov: in, where the bytes go
 * @count: in, elements of `iov`
 * @flags: in, MSG_PEEK, MSG_TRUNC (throw the bytes away), or 0; others are ignored
 *
 * The caller has to implement MSG_WAITALL, timeouts and SO_RCVLOWAT itself.
 *
 * Ownership: the memory is the caller's again when the call returns.
 *
 * Return:
 *  - above 0: bytes received
 *  - 0: the end of the stream, or no byte was asked for
 *  - -EAGAIN: no data, or the direction is between two paths: sleep for ST_IN
 *  - -ECONNRESET: the connection was lost, told once: close. Other errors of the kernel likewise
 *  - -EFAULT: memory that cannot be written, on TCP
 *  - -EBADF: closed, see st_close()
 *  - -ENOTCONN: the stream of a parent process, see st_fork_child(): close the descriptor
 *  - -EDEADLK: a signal handler interrupted a call of its own thread on this direction: let that
 *    call return first
 *
 * Context: does not block. Thread-safe. Threads that receive take turns by the piece.
 *
 * Ordering: bytes come in the order in which the other end sent them, over every change of path.
 *
 * Since: 1.4
 */
ssize_t st_recv(struct st_stream *s, const struct iovec *iov, int count, int flags);

/**
 * st_flush - send what MSG_MORE held back
 * @s: in, a stream
 *
 * To be called where a program sets TCP_NODELAY or clears TCP_CORK.
 *
 * Ownership: the stream stays the caller's, who holds a reference.
 *
 * Return:
 *  - 0: nothing is held back
 *  - -EAGAIN: no room yet; it goes by itself when there is
 *  - -ECONNRESET: as of st_send()
 *  - -EBADF: closed, see st_close()
 *  - -ENOTCONN: the stream of a parent process, see st_fork_child(): close the descriptor
 *  - -EDEADLK: a signal handler interrupted a call of its own thread on this direction: let that
 *    call return first
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: before what is sent later.
 *
 * Since: 1.4
 */
int st_flush(struct st_stream *s);

/**
 * st_take_error - take the error that the connection has
 * @s: in, a stream
 *
 * Gives the value that SO_ERROR would give: the stream's own error or, where it has none, that of the kernel's socket.
 * A call takes one of them; the next call gives 0, unless another error came.
 *
 * Ownership: the stream stays the caller's, who holds a reference.
 *
 * Return: 0, or a positive errno value.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
int st_take_error(struct st_stream *s);

/**
 * st_readable_bytes - bytes that st_recv() can take now
 * @s: in, a stream
 *
 * As FIONREAD.
 *
 * Ownership: the stream stays the caller's, who holds a reference.
 *
 * Return:
 *  - 0 or above: bytes
 *  - -EBADF: closed, or the stream of a parent process
 *  - -EDEADLK: a signal handler interrupted a call of its own thread on this direction: let that
 *    call return first
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
int64_t st_readable_bytes(struct st_stream *s);

/**
 * st_unsent_bytes - bytes that the other end has not received yet
 * @s: in, a stream
 *
 * As SIOCOUTQ: bytes that have arrived there do not count, read or not. While bytes are on their way over a VI, those
 * that arrived but were not read may count, too.
 *
 * Ownership: the stream stays the caller's, who holds a reference.
 *
 * Return:
 *  - 0 or above: bytes
 *  - -EBADF: closed, or the stream of a parent process
 *  - -EDEADLK: a signal handler interrupted a call of its own thread on this direction: let that
 *    call return first
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
int64_t st_unsent_bytes(struct st_stream *s);

/**
 * st_writable_bytes - bytes that the next st_send() can take at most
 * @s: in, a stream
 *
 * On TCP this is an estimate of the kernel's.
 *
 * Ownership: the stream stays the caller's, who holds a reference.
 *
 * Return:
 *  - 0 or above: bytes
 *  - -EBADF: closed, or the stream of a parent process
 *  - -EDEADLK: a signal handler interrupted a call of its own thread on this direction: let that
 *    call return first
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
int64_t st_writable_bytes(struct st_stream *s);

/**
 * st_shutdown - end one direction, or both
 * @s: in, a stream
 * @how: in, SHUT_RD, SHUT_WR or SHUT_RDWR
 *
 * As shutdown(): the other end finds the end of the stream after all bytes that were sent.
 *
 * Ownership: the stream stays the caller's, who holds a reference.
 *
 * Return:
 *  - 0: ended
 *  - -EINVAL: an unknown `how`
 *  - -ENOTCONN: as of shutdown(), or the stream of a parent process
 *  - -EBADF: closed, see st_close()
 *  - -EDEADLK: a signal handler interrupted a call of its own thread on this direction: let that
 *    call return first
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: after all bytes that were sent before.
 *
 * Since: 1.4
 */
int st_shutdown(struct st_stream *s, int how);

enum st_close_how {
	ST_CLOSE_ORDERLY, /* what was sent arrives; with unread bytes it is ST_CLOSE_ABORT, as in the kernel */
	ST_CLOSE_ABORT /* SO_LINGER {1, 0}: a reset */
};

/**
 * st_close - end a stream
 * @s: in, a stream
 * @how: in, in order, or by a reset
 *
 * Later calls give -EBADF, and sleepers wake. An attempt is withdrawn. The end of the stream goes
 * by the path that the bytes take. Where a reset has to follow, SO_LINGER of the socket is set.
 *
 * A thread of the library delivers what is under way, lets the other end know where that might
 * write to the closed socket, and gives the VI back, after 60 s at the latest; st_fini() waits for
 * that. It does not wait until the other end reads: what is in its ring or with the kernel arrives.
 *
 * Ownership: the caller closes the descriptor right after the call, having set nothing on it, and
 * gives its reference back by st_put().
 *
 * Return: nothing; a second call does nothing.
 *
 * Context: does not wait. Thread-safe.
 *
 * Ordering: after all bytes that were sent before, if in order.
 *
 * Since: 1.4
 */
void st_close(struct st_stream *s, enum st_close_how how);

/**
 * st_linger - wait until the other end has all bytes
 * @s: in, a stream
 * @timeout_ms: in, milliseconds
 *
 * For SO_LINGER with a time, before st_close(), and before an exec that closes the descriptor.
 * On TCP it gives the kernel what was kept back and returns at once: the kernel lingers by itself
 * in close().
 *
 * Ownership: the stream stays the caller's, who holds a reference.
 *
 * Return:
 *  - 0: they are in the memory of the other end, TCP carries them, or the connection was reset
 *  - -EAGAIN: not in that time
 *  - -EBADF: closed, see st_close()
 *  - -ENOTCONN: the stream of a parent process, see st_fork_child(): close the descriptor
 *  - -EDEADLK: a signal handler interrupted a call of its own thread on this direction: let that
 *    call return first
 *
 * Context: sleeps in pieces of 50 ms; threads that send at the same time are held up. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
int st_linger(struct st_stream *s, uint32_t timeout_ms);

/**
 * st_get_linger - the SO_LINGER that the program has set
 * @s: in, a stream
 * @linger: out, its value
 *
 * To be used in the place of getsockopt(): the stream sets the socket's to {1, 0} while the end
 * of the process would lose bytes.
 *
 * Ownership: the structure is the caller's.
 *
 * Return:
 *  - 0: done
 *  - -EBADF and others: as of getsockopt() and setsockopt()
 *  - -EDEADLK: a signal handler interrupted a call of its own thread on this direction: let that
 *    call return first
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4, ST_VERSION 2
 */
int st_get_linger(struct st_stream *s, struct linger *linger);

/**
 * st_set_linger - set SO_LINGER
 * @s: in, a stream
 * @linger: in, its value
 *
 * To be used in the place of setsockopt(), see st_get_linger().
 *
 * Ownership: the structure is copied.
 *
 * Return:
 *  - 0: done
 *  - -EBADF and others: as of getsockopt() and setsockopt()
 *  - -EDEADLK: a signal handler interrupted a call of its own thread on this direction: let that
 *    call return first
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4, ST_VERSION 2
 */
int st_set_linger(struct st_stream *s, const struct linger *linger);

/* ---- readiness ----------------------------------------------------------------------------------------------- */

/* Events, as those of poll(); ST_HUP is both directions ended. */
enum { ST_IN = 0x001, ST_OUT = 0x004, ST_ERR = 0x008, ST_HUP = 0x010, ST_RDHUP = 0x2000 };

/* The layout is fixed, as the structure is filled again and again: an addition gets a function of its own. */
struct st_ready {
	unsigned events; /* those that the stream knows of by itself */
	/* Those for which the kernel's socket has to be asked, too, as that direction is on TCP; by poll(). */
	unsigned kernel;
	/* Grow with each arrival and each return of room that a look found: an edge is there when one has changed. */
	uint64_t in_edges, out_edges;
};

/**
 * st_ready - the events of a stream now
 * @s: in, a stream
 * @ready: out, events that the stream knows of, those that the kernel has to be asked for, and
 *	counters of edges
 *
 * Looks, and does not arm. Each 32nd look that finds nothing moves packets. A stream that is
 * closed or belongs to a parent process has all events.
 *
 * Ownership: the structure is the caller's.
 *
 * Return: nothing; inside a call on the same stream that a signal interrupted, no event.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
void st_ready(struct st_stream *s, struct st_ready *ready);

/**
 * st_kernel_events - what a sleeper has to ask the kernel's socket for
 * @s: in, a stream
 * @events: in, ST_IN, ST_OUT, ST_RDHUP in which the sleeper is interested
 *
 * Ownership: the stream stays the caller's, who holds a reference.
 *
 * Return: those of `events` whose direction is on TCP; 0: do not watch the descriptor, as poll()
 * tells of hang-ups unasked.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: a thread that changes a path afterwards wakes the sleeper.
 *
 * Since: 1.4
 */
unsigned st_kernel_events(struct st_stream *s, unsigned events);

/**
 * st_arm - have the other end ring for events, unless they are there
 * @s: in, a stream
 * @events: in, ST_IN, ST_OUT, ST_RDHUP; ST_ERR and ST_HUP are always included
 *
 * Part of a sleep, see «Sleeping». An arm that was not rung for stays armed and costs nothing
 * again.
 *
 * Ownership: the stream stays the caller's, who holds a reference.
 *
 * Return: the events found, those of the kernel not included: do not sleep; or 0: armed.
 *
 * Context: does not sleep; may yield the processor while the other end answers. Thread-safe.
 *
 * Ordering: what the other end sends after this call has returned 0 makes the wait object's
 * descriptor readable.
 *
 * Since: 1.4
 */
unsigned st_arm(struct st_stream *s, unsigned events);

/**
 * st_give_way - give the processor to others between two looks
 *
 * For a caller that looks again and again before it sleeps. Where the process has one processor
 * the other end may need it. Otherwise the call does nothing.
 *
 * Ownership: none.
 *
 * Return: true: go on looking; false: others keep the processor for long, so it is better to
 * sleep.
 *
 * Context: may yield the processor. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4, ST_VERSION 2
 */
bool st_give_way(void);

/**
 * st_sleep - sleep until a stream has an event
 * @s: in, a stream
 * @events: in, ST_IN, ST_OUT, ST_RDHUP; ST_ERR and ST_HUP are always included
 * @until: in, absolute time of CLOCK_MONOTONIC, or NULL for no end
 *
 * All of «Sleeping» for one stream. Looks for `spin_us` first.
 *
 * Ownership: the stream stays the caller's, who holds a reference.
 *
 * Return:
 *  - above 0: events, those of the kernel included; also if the stream was closed before, or is that
 *    of a parent process
 *  - -EAGAIN: none until that time
 *  - -EINTR: a signal
 *  - -EBADF: closed during the sleep
 *  - -EMFILE, -ENFILE: no descriptor for the thread: raise the limit
 *  - -EDEADLK: a signal handler interrupted a call of its own thread on this direction: let that
 *    call return first
 *
 * Context: sleeps. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
int st_sleep(struct st_stream *s, unsigned events, const struct timespec *until);

/* ---- wait objects -------------------------------------------------------------------------------------------- */

/**
 * st_wait_create - make a wait object
 * @w: out, the wait object; not to be used after an error
 *
 * A completion queue and its descriptor. One for each epoll set, and one by itself for each other
 * stream, is a good choice. The descriptor is there before the NIC is open.
 *
 * Ownership: given back by st_wait_destroy().
 *
 * Return:
 *  - 0: made
 *  - -EMFILE, -ENFILE: no descriptor is left: raise the limit
 *  - -ENOMEM: out of memory
 *  - -EDEADLK: a signal handler interrupted a call of its own thread that changes the list of all wait objects
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
int st_wait_create(struct st_wait **w);

/**
 * st_wait_destroy - give a wait object back
 * @w: in, the wait object, or NULL
 *
 * To be called when its streams are closed; it goes with the last of them. In a signal handler as st_put().
 *
 * Ownership: the wait object must not be used afterwards.
 *
 * Return: nothing.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
void st_wait_destroy(struct st_wait *w);

/**
 * st_wait_fd - the descriptor of a wait object
 * @w: in, the wait object
 *
 * For POLLIN and EPOLLIN; it may be in several sets.
 *
 * Ownership: the library's: neither read nor close it.
 *
 * Return: the descriptor; -1 if st_promote() made the wait object and the NIC is not open yet.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
int st_wait_fd(struct st_wait *w);

/**
 * st_wait_of - the wait object of a stream
 * @s: in, a stream
 *
 * Ownership: it lives as long as the stream.
 *
 * Return: the wait object; NULL before the stream has one with a descriptor.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
struct st_wait *st_wait_of(struct st_stream *s);

/**
 * st_wait_arm - arm the descriptor of a wait object
 * @w: in, the wait object
 *
 * Part of a sleep, see «Sleeping». Other sleepers are woken for entries that it takes.
 *
 * Ownership: the wait object stays the caller's.
 *
 * Return:
 *  - 0: armed
 *  - 1: entries came and are taken: look again at each stream by st_arm()
 *  - -EDEADLK: a signal handler interrupted a call of its own thread on `w`: not armed, sleep for short times only
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: entries that come after 0 was returned make the descriptor readable.
 *
 * Since: 1.4
 */
int st_wait_arm(struct st_wait *w);

/**
 * st_wait_take - take entries, and the streams that they concern
 * @w: in, the wait object
 * @streams: out, streams that have news
 * @max: in, room in `streams`
 *
 * A stream is listed once for any number of entries; streams for which there is no room are left
 * for the next call. A stream is listed as well when a send has found no room, and when another
 * thread has taken its entries without this call.
 *
 * Ownership: each stream comes with a reference that the caller gives back by st_put().
 *
 * Return: the number of streams given.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
int st_wait_take(struct st_wait *w, struct st_stream **streams, int max);

/**
 * st_changes - count changes that no wait object tells of
 *
 * For a caller with many streams, which arms only those that it has looked at since they were armed.
 * The count grows when any stream of the process changes its path, gets an error or is closed. Entries
 * of a wait object, and a send that found no room, do not count: st_wait_take() gives their streams.
 * So a stream for which st_arm() has returned 0 stays armed until st_wait_take() gives it or the
 * count has grown.
 *
 * Ownership: none.
 *
 * Return: the count.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: to be called after st_sleep_begin(): a change that it does not count yet makes the
 * thread's descriptor readable.
 *
 * Since: 1.4, ST_VERSION 2
 */
uint64_t st_changes(void);

/**
 * st_sleep_begin - register the thread as one that is about to sleep
 * @s: in, the stream that it sleeps for, or NULL for any
 * @w: in, the wait object, or NULL for any
 *
 * From here on every change of path of the stream, and every entry of the wait object that
 * another thread takes, makes the thread's descriptor readable. The descriptor is made once for
 * each thread. A thread that leaves its sleep by siglongjmp() has a registration left, which
 * costs others one needless write.
 *
 * Ownership: the descriptor is the library's, and is closed when the thread ends.
 *
 * Return:
 *  - 0 or above: the descriptor
 *  - -EMFILE, -ENFILE: no descriptor is left: raise the limit
 *  - -EDEADLK: inside a call that a signal interrupted
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: before st_arm() and st_wait_arm().
 *
 * Since: 1.4
 */
int st_sleep_begin(struct st_stream *s, struct st_wait *w);

/**
 * st_sleep_end - end the thread's registration
 *
 * Nothing happens where there is none.
 *
 * Ownership: none.
 *
 * Return: nothing.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
void st_sleep_end(void);

/**
 * st_sleep_for - say for which set of streams the registered thread sleeps
 * @tag: in, an address that stands for the set, never read
 *
 * For a thread that is registered for any stream.
 *
 * Ownership: none.
 *
 * Return: nothing.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
void st_sleep_for(const void *tag);

/**
 * st_wake - wake threads that sleep for a set of streams
 * @tag: in, as of st_sleep_for(), or NULL for any
 *
 * Wakes other threads that are registered for any stream, and sleep for this set or have not said
 * for which.
 *
 * Ownership: none.
 *
 * Return: nothing.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: what the caller wrote before is seen by those that wake.
 *
 * Since: 1.4
 */
void st_wake(const void *tag);

/**
 * st_set_context - keep a pointer of the caller with a stream
 * @s: in, a stream
 * @context: in, anything, never read by the library
 *
 * Ownership: the pointer is the caller's.
 *
 * Return: nothing.
 *
 * Context: does not block. Not to be called while another thread calls st_context().
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
void st_set_context(struct st_stream *s, void *context);

/**
 * st_context - the pointer kept with a stream
 * @s: in, a stream
 *
 * Ownership: the pointer is the caller's.
 *
 * Return: as set last, or NULL.
 *
 * Context: does not block. Thread-safe, except while another thread calls st_set_context().
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
void *st_context(struct st_stream *s);

/* ---- pollers -------------------------------------------------------------------------------------------------- */

/*
 * Instead of being armed by st_arm(), a stream whose bytes go over a VI both ways can be watched: a poller, a thread of
 * this library, looks at it.  It comes back once: with news, when one of the events is there or its path changes; or
 * armed, when it was idle for long.  Then its peer rings as after st_arm().
 *
 * The streams of a set have one poller.  But where pollers are held on single cores by the rules of VIADUCT_AFFINITY, a
 * stream gets the one on the core of the thread that gives it, if there is one.
 *
 *   st_waker_get()             an eventfd for each set of streams
 *   st_watch_give()           for each stream
 *   st_waker_want()            before a sleep,
 *   st_watch_take()           and after that: > 0: do not sleep
 *   poll()                    on st_waker_fd(), and on all that st_arm() would need
 *   st_waker_clear()           after the sleep, before the looks and st_watch_take()
 *
 * The caller sees to it that st_watch_take() and st_watch_drop() do not run at the same time.  In the child of fork(),
 * and after st_fini(), wakers and watches are no longer valid, and the calls take no notice of them.
 */
struct st_waker;
struct st_watch;

/**
 * st_pollers_on - are there pollers
 *
 * They run when the NIC is open and struct st_config asked for some.
 *
 * Ownership: none.
 *
 * Return: true: streams can be watched.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
bool st_pollers_on(void);

/**
 * st_waker_get - make a waker
 *
 * An eventfd for a set of streams.
 *
 * Ownership: given back by st_waker_put().
 *
 * Return: the waker; NULL: there is no poller, no memory, or no descriptor is left, so use st_arm().
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
struct st_waker *st_waker_get(void);

/**
 * st_waker_put - give a waker back
 * @waker: in, a waker; one that is no longer valid is left alone
 *
 * Ownership: its watches have to be dropped before.
 *
 * Return: nothing.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
void st_waker_put(struct st_waker *waker);

/**
 * st_waker_valid - is a waker of this process and time
 * @waker: in, a waker, or NULL
 *
 * In the child of fork(), and after st_fini(), none is.
 *
 * Ownership: the memory of a waker is never unmapped, so an old pointer may be asked for.
 *
 * Return: true: it can be used.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
bool st_waker_valid(const struct st_waker *waker);

/**
 * st_waker_fd - the descriptor of a waker
 * @waker: in, a valid waker
 *
 * For POLLIN.
 *
 * Ownership: the library's: neither read nor close it.
 *
 * Return: the descriptor.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
int st_waker_fd(const struct st_waker *waker);

/**
 * st_waker_want - ask for the descriptor to become readable with news
 * @waker: in, a valid waker
 *
 * To be called before a sleep, and before the st_watch_take() that decides whether to sleep.
 *
 * Ownership: the waker stays the caller's.
 *
 * Return: nothing.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: news that come after a later st_watch_take() has found none make the descriptor
 * readable.
 *
 * Since: 1.4
 */
void st_waker_want(struct st_waker *waker);

/**
 * st_waker_clear - clear the signal of a waker
 * @waker: in, a valid waker
 *
 * To be called after the sleep, before the looks and st_watch_take().
 *
 * Ownership: the waker stays the caller's.
 *
 * Return: nothing.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
void st_waker_clear(struct st_waker *waker);

/**
 * st_watch_give - have a poller look at a stream
 * @s: in, a stream
 * @events: in, ST_IN, ST_OUT, ST_RDHUP
 * @waker: in, a valid waker, whose descriptor tells of news
 * @owner: in, what st_watch_take() hands back
 *
 * The stream comes back once: with news, when an event is there or its path changes, or armed,
 * when it was idle for long.
 *
 * Ownership: the library keeps a reference to the stream until it has come back.
 *
 * Return: the watch; NULL: it cannot be watched now, as a direction is on TCP, there is no poller
 * or memory, or the waker is no longer valid: use st_arm().
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
struct st_watch *st_watch_give(struct st_stream *s, unsigned events, struct st_waker *waker,
			       void *owner);

/**
 * st_watch_valid - is a watch of this process and time
 * @watch: in, a watch, or NULL
 *
 * Ownership: the memory of a watch is never unmapped, so an old pointer may be asked for.
 *
 * Return: true: it has not come back in a parent process or before st_fini().
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
bool st_watch_valid(const struct st_watch *watch);

/**
 * st_watch_drop - have a watch come back to nobody
 * @watch: in, a watch; one that is no longer valid is left alone
 *
 * Ownership: the watch must not be used afterwards.
 *
 * Return: nothing.
 *
 * Context: does not block. Not while st_watch_take() runs.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
void st_watch_drop(struct st_watch *watch);

/**
 * st_watch_take - take the streams that have come back
 * @back: in, called for each but those that were dropped: `armed` says that its peer rings now, as
 *	after st_arm()
 *
 * Takes those of all wakers; other sleepers that may want the news have to be woken by `back`,
 * with st_wake().
 *
 * Ownership: a watch that has come back must not be used afterwards.
 *
 * Return: how many have news: do not sleep if it is above 0.
 *
 * Context: does not block. The caller sees to it that one thread at a time is here.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
int st_watch_take(void (*back)(void *owner, bool armed));

/* ---- back to TCP --------------------------------------------------------------------------------------------- */

/**
 * st_demote - move a stream back to TCP
 * @s: in, a stream
 * @why: in, the reason to be counted; ST_WHY_NONE is ST_WHY_ASKED
 *
 * Ends an attempt. The direction that sends moves at once or as soon as the ring has room, the
 * other one by asking the other end. The stream stays on TCP until st_promote() is called again.
 * Bytes in the ring of this end can still be received.
 *
 * Ownership: the stream stays the caller's, who holds a reference.
 *
 * Return: nothing.
 *
 * Context: returns at once; sleepers wake when it is done. Thread-safe.
 *
 * Ordering: bytes keep their order.
 *
 * Since: 1.4
 */
void st_demote(struct st_stream *s, enum st_why why);

/**
 * st_on_tcp - is all of a stream with the kernel
 * @s: in, a stream
 *
 * Then, and after st_settle(), the descriptor may be handed on: to another process, or to code
 * that calls the kernel.
 *
 * Ownership: the stream stays the caller's, who holds a reference.
 *
 * Return: true: both directions are on TCP, no attempt is under way, and st_recv() has no byte
 * that is not the kernel's.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
bool st_on_tcp(struct st_stream *s);

/**
 * st_settle - give the kernel what is kept back until the program sends more
 * @s: in, a stream for which st_on_tcp() is true
 *
 * After the loss of a VI the bytes that tell the other end where TCP goes on are kept back until
 * the program sends or a while has passed, and until then SO_LINGER of the socket is {1, 0}, see
 * st_get_linger(). To be called before the descriptor is handed on, since nobody else would
 * send them then.
 *
 * Ownership: the stream stays the caller's, who holds a reference.
 *
 * Return:
 *  - 0: the kernel has them, and SO_LINGER is the program's
 *  - -EAGAIN: not yet, for want of room or because the stream is not on TCP: call again later
 *  - -EBADF: closed, see st_close()
 *  - -ENOTCONN: the stream of a parent process, see st_fork_child()
 *  - -EDEADLK: a signal handler interrupted a call of its own thread on this direction: let that
 *    call return first
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4, ST_VERSION 2
 */
int st_settle(struct st_stream *s);

/**
 * st_on_vi - the directions that are on a VI
 * @s: in, a stream
 *
 * Ownership: the stream stays the caller's, who holds a reference.
 *
 * Return: ST_IN, ST_OUT, both or 0.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: a hint: a path may change at once.
 *
 * Since: 1.4
 */
unsigned st_on_vi(struct st_stream *s);

/**
 * st_why - the last reason to be on TCP
 * @s: in, a stream
 *
 * Ownership: the stream stays the caller's, who holds a reference.
 *
 * Return: the reason; ST_WHY_NONE while it is on a VI, an attempt is under way, or none was asked
 * for.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
enum st_why st_why(struct st_stream *s);

/**
 * st_foreign - is it the stream of a parent process
 * @s: in, a stream
 *
 * See st_fork_child().
 *
 * Ownership: the stream stays the caller's, who holds a reference.
 *
 * Return: true: close the descriptor; all calls for its bytes give -ENOTCONN.
 *
 * Context: does not block. Thread-safe.
 *
 * Ordering: none.
 *
 * Since: 1.4
 */
bool st_foreign(struct st_stream *s);

#ifdef __GNUC__
#pragma GCC visibility pop
#endif
#ifdef __cplusplus
}
#endif

#endif
