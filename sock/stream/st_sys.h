/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * st_sys.h - locks, time, and the kernel's calls
 *
 * The calls go to the kernel directly: the C library's names may be hooked.  They give -errno and leave errno alone.
 */
#ifndef ST_SYS_H
#define ST_SYS_H

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define ST_COLD __attribute__((cold, noinline))
#define st_likely(x) __builtin_expect(!!(x), 1)
#define st_unlikely(x) __builtin_expect(!!(x), 0)

/*
 * A lock with one holder.  A signal handler that has interrupted the holder finds that out instead of waiting: see
 * st_lock().
 *
 * To give it back takes no locked instruction.  The holder stores to `word`, then loads `waiters`; a thread that is to
 * sleep adds itself to `waiters`, passes a membarrier, which stands in for the holder's fence, then looks at `word`
 * again.  tests/model/sock_lock.pml is the model.
 */
struct st_lock {
	_Atomic uint64_t word;	  /* 0: free; else st_lock_self() of the holder */
	_Atomic uint32_t waiters; /* threads that sleep, or are about to */
};

/* Takes the lock, which this thread does not have, and sleeps until it can. */
void st_lock_slow(struct st_lock *lock);
/* Wakes one thread that waits for the lock, which is free already. */
void st_unlock_slow(struct st_lock *lock);

/* Odd, so that its lower half, which the kernel compares, is not 0. */
static inline uint64_t st_lock_self(void)
{
	return (uint64_t)pthread_self() | 1;
}

/* True: this thread holds it, perhaps in the code that this signal handler has interrupted. */
static inline bool st_lock_is_mine(struct st_lock *lock)
{
	return atomic_load_explicit(&lock->word, memory_order_relaxed) == st_lock_self();
}

/* Returns -EDEADLK: the thread that this handler has interrupted holds the lock. */
int st_lock_held_error(void);

/* False: another thread, or the one that this handler has interrupted, holds it. */
static inline bool st_trylock(struct st_lock *lock)
{
	uint64_t none = 0;

	return atomic_compare_exchange_strong_explicit(&lock->word, &none, st_lock_self(),
						       memory_order_acquire, memory_order_relaxed);
}

/* Waits for the lock: 0; -EDEADLK at once where this thread has it, as in a handler that has interrupted the holder. */
static inline int st_lock(struct st_lock *lock)
{
	if (st_unlikely(!st_trylock(lock))) {
		if (st_lock_is_mine(lock))
			return st_lock_held_error();
		st_lock_slow(lock);
	}
	return 0;
}

static inline void st_unlock(struct st_lock *lock)
{
	atomic_store_explicit(&lock->word, 0, memory_order_release);
	atomic_signal_fence(memory_order_seq_cst);
	if (st_unlikely(atomic_load_explicit(&lock->waiters, memory_order_relaxed) != 0))
		st_unlock_slow(lock);
}

/* The time of CLOCK_MONOTONIC. */
uint64_t st_now_ns(void);
/* A number from the kernel's generator; never fails. */
uint64_t st_random64(void);

/* Like sendmsg() and recvmsg() of bytes alone, but these never wait, raise no SIGPIPE, and return -errno, not -1. */
ssize_t st_sys_send(int fd, const struct iovec *iov, int count, int flags);
ssize_t st_sys_recv(int fd, const struct iovec *iov, int count, int flags);
int st_sys_shutdown(int fd, int how);
int st_sys_close(int fd);
/* A copy with a number from `least` on where one is left, and any other where not; closed by exec. */
int st_sys_dup(int fd, int least);
int st_sys_ioctl_int(int fd, unsigned long what, int *value);
int st_sys_error(int fd); /* SO_ERROR, taken off: positive, or 0, also if it cannot be had */
/* Makes the kernel reset the connection now; `fd` stays open.  Returns 0 or -errno. */
int st_sys_reset(int fd);
int st_sys_get_linger(int fd, struct linger *linger);
int st_sys_set_linger(int fd, const struct linger *linger);
int st_sys_linger_reset(int fd); /* SO_LINGER {1, 0}: the last close resets the connection */
/*
 * The bytes that all processes have given to the socket and taken from it since it was connected: 0; -EAGAIN: they are
 * changing; -ENOTCONN: closed; or -errno, such as -EOPNOTSUPP: the kernel does not count them.  Its own end, once
 * shutdown() or close() has sent it, counts as a byte given.
 */
int st_sys_moved(int fd, bool connector, uint64_t *given, uint64_t *taken);
bool st_sys_peer_ended(int fd); /* the kernel has the peer's FIN, or a reset */
int st_sys_room(int fd);	/* free bytes of the send buffer, about; 0 also after an error */
/* As ppoll() without a mask, but -errno, not -1. */
int st_sys_poll(struct pollfd *fds, unsigned count, const struct timespec *timeout);
int st_sys_processors(void); /* how many this thread may run on; 0: unknown */
/* Reads a file's beginning, `room` - 1 bytes at most, as text: its length, or -errno. */
int st_sys_read_line(const char *path, char *out, int room);
/* A new eventfd or set of epoll, whose number is from `least` on where one is left. */
int st_sys_eventfd(int least);
int st_sys_epoll(int least);
int st_sys_epoll_add(int set, int fd); /* for EPOLLIN */
/* As st_sys_epoll_add(), for one event, until it is called again; st_sys_epoll_take() gives `data`. */
int st_sys_epoll_want(int set, int fd, void *data);
int st_sys_epoll_drop(int set, int fd);
/*
 * Gives the `data` of readable descriptors, without waiting, of at most `max` and of at most 16: the count, or -errno.
 */
int st_sys_epoll_take(int set, void **data, int max);
/* Makes the eventfd readable; st_sys_clear() ends that. */
void st_sys_signal(int eventfd);
void st_sys_clear(int eventfd);

#endif
