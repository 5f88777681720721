// SPDX-License-Identifier: BSD-2-Clause
/*
 * calls signals | plain-signals | early | urgent | control | plain-control | aio | clone | closes | children | uring |
 * liburing
 * Both ends of a connection are in one process.
 *
 * For sock_test.py.  Any difference from the kernel's sockets ends the program with a line.
 */
#include <aio.h>
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static int one, other;

static void make_pair(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t n = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	CHECK(bind(listener, (struct sockaddr *)&a, n) == 0 && listen(listener, 1) == 0);
	CHECK(getsockname(listener, (struct sockaddr *)&a, &n) == 0);
	one = socket(AF_INET, SOCK_STREAM, 0);
	CHECK(connect(one, (struct sockaddr *)&a, n) == 0);
	other = accept(listener, NULL, NULL);
	CHECK(other >= 0);
	close(listener);
}

static void exchange(int times)
{
	char byte = 'x';
	int i;

	for (i = 0; i < times; i++) {
		CHECK(send(one, &byte, 1, 0) == 1 && recv(other, &byte, 1, 0) == 1);
		CHECK(send(other, &byte, 1, 0) == 1 && recv(one, &byte, 1, 0) == 1);
	}
}

/* The bytes that the kernel's TCP has sent for a socket. */
static unsigned long long sent_by_kernel(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t n = sizeof(info);

	CHECK(syscall(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, &info, &n) == 0);
	return info.tcpi_bytes_sent;
}

/* Exchanges bytes until VIs carry those of both directions. */
static void exchange_until_promoted(void)
{
	unsigned long long before;

	do {
		before = sent_by_kernel(one) + sent_by_kernel(other);
		exchange(10);
	} while (sent_by_kernel(one) + sent_by_kernel(other) != before);
}

/* ---- signals ---- */

static atomic_int ran[NSIG];
static atomic_int done;
static pthread_t main_thread;

static void plain(int number)
{
	atomic_fetch_add(&ran[number], 1);
}

static void with_info(int number, siginfo_t *info, void *context)
{
	if (info->si_signo == number && context)
		atomic_fetch_add(&ran[number], 1);
}

static void install(int number, int flags)
{
	struct sigaction a = { .sa_flags = flags }, now;

	if (flags & SA_SIGINFO)
		a.sa_sigaction = with_info;
	else
		a.sa_handler = plain;
	CHECK(sigaction(number, &a, NULL) == 0 && sigaction(number, NULL, &now) == 0);
	CHECK(now.sa_handler == a.sa_handler);
	CHECK((now.sa_flags & (SA_SIGINFO | SA_RESTART)) == (flags & (SA_SIGINFO | SA_RESTART)));
}

/* Signals the main thread until it has returned. */
static void *interrupt(void *arg)
{
	while (!atomic_load(&done))
		pthread_kill(main_thread, *(int *)arg);
	return NULL;
}

/* Signals the main thread a hundred times, then lets its call return with a byte. */
static void *disturb(void *arg)
{
	int number = *(int *)arg, i, before;

	for (i = 0; i < 100; i++) {
		before = atomic_load(&ran[number]);
		pthread_kill(main_thread, number);
		while (atomic_load(&ran[number]) == before)
			sched_yield();
	}
	CHECK(send(one, "x", 1, 0) == 1);
	return NULL;
}

static void receive(int number, bool restarts)
{
	pthread_t t;
	char byte;
	ssize_t n;

	atomic_store(&done, 0);
	CHECK(pthread_create(&t, NULL, restarts ? disturb : interrupt, &number) == 0);
	n = recv(other, &byte, 1, 0);
	if (restarts)
		CHECK(n == 1);
	else
		CHECK(n == -1 && errno == EINTR);
	atomic_store(&done, 1);
	CHECK(pthread_join(t, NULL) == 0);
	CHECK(atomic_load(&ran[number]) > 0);
}

/* siginterrupt() is tested because old programs call it. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
static void interrupts_again(int number)
{
	CHECK(siginterrupt(number, 1) == 0);
}
#pragma GCC diagnostic pop

/* For a fault, as runtimes do, where no library sees it. */
static void install_unseen(void)
{
	struct {
		void (*handler)(int);
		unsigned long flags;
		void (*restorer)(void);
		unsigned long mask;
	} a = { .handler = plain };

	CHECK(syscall(SYS_rt_sigaction, SIGSEGV, &a, NULL, sizeof(a.mask)) == 0);
}

static void signals(void)
{
	main_thread = pthread_self();
	install_unseen();
	install(SIGUSR1, 0);
	install(SIGUSR2, SA_RESTART);
	install(SIGWINCH, SA_SIGINFO);
	install(SIGURG, SA_SIGINFO | SA_RESTART);
	receive(SIGUSR2, true);
	receive(SIGUSR1, false);
	receive(SIGURG, true);
	receive(SIGWINCH, false);
	/* Handlers set by signal() have SA_RESTART, unless siginterrupt() says otherwise. */
	CHECK(signal(SIGUSR1, plain) == plain);
	receive(SIGUSR1, true);
	interrupts_again(SIGUSR1);
	CHECK(signal(SIGUSR1, plain) == plain);
	receive(SIGUSR1, false);
	receive(SIGUSR2, true);
	CHECK(signal(SIGUSR1, SIG_DFL) == plain && signal(SIGUSR1, SIG_DFL) == SIG_DFL);
}

/* ---- io_uring ---- */

/* Makes a ring by the system call, or by liburing, which is preloaded. */
static int make_ring(bool by_library)
{
	struct io_uring_params params = { 0 };
	int (*init)(unsigned int, void *, unsigned int);
	char *ring;

	if (!by_library)
		return syscall(SYS_io_uring_setup, 4, &params) >= 0 ? 0 : -errno;
	*(void **)&init = dlsym(RTLD_DEFAULT, "io_uring_queue_init");
	ring = calloc(1, 4096);
	CHECK(init && ring);
	return init(4, ring, 0);
}

/* After the ring was made the bytes must go through the kernel's sockets, where io_uring would find them. */
static void uring(bool by_library)
{
	char byte = 0;
	int rc;

	exchange_until_promoted();
	rc = make_ring(by_library);
	printf("%s\n", rc >= 0 ? "made" : strerror(-rc));
	CHECK(send(one, "k", 1, 0) == 1);
	if (rc >= 0)
		CHECK(syscall(SYS_read, other, &byte, 1) == 1 && byte == 'k');
	else
		CHECK(recv(other, &byte, 1, 0) == 1 && byte == 'k');
	close(one);
	close(other);
	make_pair();
	exchange(10);
}

/*
 * Exchanges bytes until both directions are on TCP: when one end has asked for that, the other
 * follows as soon as it polls.
 */
static void exchange_until_on_tcp(void)
{
	unsigned long long by_one, by_other;

	do {
		by_one = sent_by_kernel(one);
		by_other = sent_by_kernel(other);
		exchange(1);
	} while (sent_by_kernel(one) == by_one || sent_by_kernel(other) == by_other);
}

static void urgent(void)
{
	char byte;

	exchange_until_promoted();
	CHECK(send(one, "u", 1, MSG_OOB) == 1);
	while (recv(other, &byte, 1, MSG_OOB) != 1)
		CHECK(errno == EINVAL || errno == EAGAIN);
	exchange_until_on_tcp();
	close(other);
	close(one);
}

/*
 * The kernel refuses the second message for its control data, and takes the third for its own.  All bytes arrive in
 * the order in which they were sent.
 */
static void control_data(void)
{
	union {
		struct cmsghdr hdr;
		char room[CMSG_SPACE(sizeof(int))];
	} unknown = { .hdr = { .cmsg_len = CMSG_LEN(sizeof(int)),
			       .cmsg_level = SOL_SOCKET,
			       .cmsg_type = 0x7777 } },
	  known = { .hdr = { .cmsg_len = CMSG_LEN(sizeof(int)),
			     .cmsg_level = SOL_SOCKET,
			     .cmsg_type = SCM_RIGHTS } };
	char text[] = "abcdef";
	struct iovec bytes[3] = { { text, 1 }, { text + 1, 2 }, { text + 3, 3 } };
	struct mmsghdr m[3] = { 0 };
	char got[7] = "";
	int i;

	for (i = 0; i < 3; i++) {
		m[i].msg_hdr.msg_iov = &bytes[i];
		m[i].msg_hdr.msg_iovlen = 1;
	}
	m[1].msg_hdr.msg_control = &unknown;
	m[1].msg_hdr.msg_controllen = sizeof(unknown);
	m[2].msg_hdr.msg_control = &known;
	m[2].msg_hdr.msg_controllen = sizeof(known);
	CHECK(sendmmsg(one, m, 3, 0) == 1 && m[0].msg_len == 1);
	CHECK(sendmmsg(one, m + 1, 2, 0) == -1 && errno == EINVAL);
	m[1].msg_hdr.msg_controllen = 0;
	CHECK(sendmmsg(one, m + 1, 2, 0) == 2 && m[1].msg_len == 2 && m[2].msg_len == 3);
	CHECK(recv(other, got, 6, MSG_WAITALL) == 6 && strcmp(got, text) == 0);
	exchange(10);
}

/* Starts a child whose program does not exist, while bytes are on their way to the parent's VI. */
static void child_without_program(bool by_vfork)
{
	int status, child;
	char bytes[4];

	CHECK(send(one, "ab", 2, MSG_MORE) == 2);
	child = by_vfork ? vfork() : fork();
	if (child == 0) {
		execl("/no-such-program", "no-such-program", NULL);
		_exit(127);
	}
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 127);
	CHECK(send(one, "c", 1, 0) == 1);
	CHECK(recv(other, bytes, 3, MSG_WAITALL) == 3 && memcmp(bytes, "abc", 3) == 0);
	exchange(10);
	CHECK(recv(other, bytes, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
	CHECK(recv(one, bytes, 1, MSG_DONTWAIT) == -1 && errno == EAGAIN);
}

static void children(void)
{
	exchange_until_promoted();
	child_without_program(true);
	child_without_program(false);
}

/* ---- POSIX AIO ---- */

static void aio(void)
{
	char bytes[3];
	struct aiocb c = { .aio_fildes = other, .aio_buf = bytes, .aio_nbytes = sizeof(bytes) };
	const struct aiocb *list[] = { &c };
	struct timespec limit = { 30, 0 };

	exchange_until_promoted();
	CHECK(aio_read(&c) == 0 && send(one, "abc", 3, 0) == 3);
	CHECK(aio_suspend(list, 1, &limit) == 0 && aio_return(&c) == 3 &&
	      memcmp(bytes, "abc", 3) == 0);
	exchange_until_on_tcp();
}

/* ---- clone() ---- */

static int answer(void *bytes)
{
	CHECK(recv(other, bytes, 3, MSG_WAITALL) == 3 && send(other, bytes, 3, 0) == 3);
	_exit(0);
}

static void cloned(void)
{
	static _Alignas(16) char stack[1 << 18];
	char bytes[3];
	int child, status;

	exchange_until_promoted();
	child = clone(answer, stack + sizeof(stack), SIGCHLD, bytes);
	CHECK(child > 0 && send(one, "abc", 3, 0) == 3);
	CHECK(recv(one, bytes, 3, MSG_WAITALL) == 3 && memcmp(bytes, "abc", 3) == 0);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

/* ---- closefrom() ---- */

/*
 * closefrom() leaves the descriptors of the library and of the fabric open: the connection goes on,
 * and later ones are promoted.
 */
static void closes_all(void)
{
	struct rlimit files;
	int last, fd, among, end = 500, library = 1000;

	/* If few descriptors are allowed, those of the library begin in the middle of the range. */
	CHECK(getrlimit(RLIMIT_NOFILE, &files) == 0);
	if (files.rlim_cur / 2 < (rlim_t)end)
		end = (int)(files.rlim_cur / 2);
	if (files.rlim_cur / 2 < (rlim_t)library)
		library = (int)(files.rlim_cur / 2);
	exchange_until_promoted();
	fd = open("/dev/null", O_RDONLY);
	among = fcntl(fd, F_DUPFD, library + 100); /* the program's, among those of the library */
	CHECK(fd >= 0 && among > library);
	last = one > other ? one : other;
	CHECK(close_range((unsigned int)last + 1, ~0u, 0) == 0);
	exchange(100);
	for (fd = last + 1; fd < end; fd++)
		CHECK(syscall(SYS_fcntl, fd, F_GETFD) == -1 && errno == EBADF);
	CHECK(syscall(SYS_fcntl, among, F_GETFD) == -1 && errno == EBADF);
	make_pair();
	exchange_until_promoted();
}

/* ---- signals soon after a call began, and cancellation ---- */

static void start(int number, long ns, timer_t *timer)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = number };
	struct itimerspec at = { .it_value = { .tv_nsec = ns } };

	CHECK(timer_create(CLOCK_MONOTONIC, &event, timer) == 0);
	CHECK(timer_settime(*timer, 0, &at, NULL) == 0);
}

static ssize_t wait_for_nothing(int by, int set)
{
	struct pollfd p = { .fd = other, .events = POLLIN };
	struct epoll_event e;
	char byte;

	if (by == 0)
		return recv(other, &byte, 1, 0);
	return by == 1 ? poll(&p, 1, -1) : epoll_wait(set, &e, 1, -1);
}

static void bad_times(int set)
{
	static const struct timespec times[] = { { 0, 1000000000 }, { -1, 0 }, { 0, -1 } };
	struct epoll_event e;
	size_t i;

	for (i = 0; i < sizeof(times) / sizeof(times[0]); i++)
		CHECK(epoll_pwait2(set, &e, 1, &times[i], NULL) == -1 && errno == EINVAL);
}

/*
 * Signals that come while the call may still poll and not sleep.  A signal that comes before the
 * call does not end it; the second one does.
 */
static void early_signals(void)
{
	struct epoll_event e = { .events = EPOLLIN };
	int i, late[3] = { 0 }, set = epoll_create1(0);
	timer_t first, second;

	CHECK(epoll_ctl(set, EPOLL_CTL_ADD, other, &e) == 0);
	bad_times(set);

	install(SIGALRM, 0);
	install(SIGUSR1, 0);
	for (i = 0; i < 90; i++) {
		int before = atomic_load(&ran[SIGUSR1]);

		start(SIGALRM, 30000, &first);
		start(SIGUSR1, 300000000, &second);
		CHECK(wait_for_nothing(i % 3, set) == -1 && errno == EINTR);
		late[i % 3] += atomic_load(&ran[SIGUSR1]) != before;
		timer_delete(first);
		timer_delete(second);
	}
	CHECK(late[0] < 25 && late[1] < 25 && late[2] < 25);
	close(set);
}

static void *receives(void *arg)
{
	char byte;

	recv(other, &byte, 1, 0);
	return arg;
}

static void cancelled(void)
{
	pthread_t t;
	void *result;

	CHECK(pthread_create(&t, NULL, receives, NULL) == 0);
	CHECK(pthread_cancel(t) == 0 && pthread_join(t, &result) == 0);
	CHECK(result == PTHREAD_CANCELED);
	exchange(10);
}

int main(int argc, char **argv)
{
	const char *what = argc == 2 ? argv[1] : "";

	make_pair();
	if (strcmp(what, "signals") == 0) {
		exchange_until_promoted();
		signals();
	} else if (strcmp(what, "plain-signals") == 0) {
		signals();
	} else if (strcmp(what, "early") == 0) {
		exchange_until_promoted();
		early_signals();
		cancelled();
	} else if (strcmp(what, "urgent") == 0) {
		urgent();
	} else if (strcmp(what, "control") == 0) {
		exchange_until_promoted();
		control_data();
	} else if (strcmp(what, "plain-control") == 0) {
		control_data();
	} else if (strcmp(what, "aio") == 0) {
		aio();
	} else if (strcmp(what, "clone") == 0) {
		cloned();
	} else if (strcmp(what, "closes") == 0) {
		closes_all();
	} else if (strcmp(what, "children") == 0) {
		children();
	} else if (strcmp(what, "uring") == 0 || strcmp(what, "liburing") == 0) {
		uring(what[0] == 'l');
	} else {
		return 2;
	}
	printf("ok\n");
	return 0;
}
