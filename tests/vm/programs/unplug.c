// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs in a guest with both ports of a link: threads store into the peer's memory and read their own, while ports are
 * removed, the link goes down and up and holders of descriptors are killed.  Usage: unplug PHASE...
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "ports.h"

#define SLICE (16 * PAGE)
#define PORTS 16 /* device numbers to try */

struct use {
	int port[2];
	struct viaduct_slice in[2], out[2];
	volatile uint64_t *mine[2], *yours[2];
	pthread_t thread[2];
	atomic_bool stop;
	atomic_ulong rounds[2];
};

static struct use use;

/* Stores through one port and reads the memory behind the other one, as fast as it can. */
static void *work(void *arg)
{
	uint64_t value = 0, seen = 0;
	int me = (intptr_t)arg;
	size_t i;

	while (!use.stop) {
		value++;
		for (i = 0; i < SLICE / 8; i += 64) {
			use.yours[me][i] = value;
			seen += use.mine[me][i];
		}
		use.rounds[me]++;
	}
	return (void *)(intptr_t)(seen & 1);
}

static bool progress(void)
{
	unsigned long before[2] = { use.rounds[0], use.rounds[1] };
	int64_t end = now_ms() + WAIT_MS;

	while (use.rounds[0] < before[0] + 20 || use.rounds[1] < before[1] + 20) {
		if (now_ms() > end)
			return false;
		sched_yield();
	}
	return true;
}

/* Opens any port: ports that come back while somebody holds the old ones have other numbers. */
static int open_any(void)
{
	char path[32];
	int i, fd;

	for (i = 0; i < PORTS; i++) {
		snprintf(path, sizeof(path), "/dev/viaduct%d", i);
		fd = open(path, O_RDWR | O_CLOEXEC);
		if (fd >= 0)
			return fd;
	}
	return -1;
}

static bool slice(int port, unsigned int dir, unsigned int window, uint64_t off,
		  struct viaduct_slice *out)
{
	if (make_slice(port, dir, window, off, SLICE, out) == 0)
		return true;
	out->fd = -1;
	return false;
}

static bool map_both(void)
{
	bool good = true;
	int i;

	for (i = 0; i < 2; i++) {
		use.mine[i] = use.yours[i] = MAP_FAILED;
		good &= slice(use.port[i], VIADUCT_INBOUND, 0, 0, &use.in[i]);
	}
	for (i = 0; i < 2; i++)
		good &= slice(use.port[i], VIADUCT_OUTBOUND, use.in[!i].window, use.in[!i].offset,
			      &use.out[i]);
	for (i = 0; good && i < 2; i++) {
		use.mine[i] = map_slice(&use.in[i]);
		use.yours[i] = map_slice(&use.out[i]);
		good &= use.mine[i] != MAP_FAILED && use.yours[i] != MAP_FAILED;
	}
	return good;
}

static bool arrives(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		use.yours[i][0] = 4242 + i;
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (use.mine[!i][0] != 4242u + i)
			return false;
	}
	return true;
}

static void unmap_both(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		munmap((void *)use.mine[i], SLICE);
		munmap((void *)use.yours[i], SLICE);
		close(use.in[i].fd);
		close(use.out[i].fd);
	}
}

static uint64_t generations(void)
{
	struct viaduct_info info[2] = { 0 };

	ioctl(use.port[0], VIADUCT_GET_INFO, &info[0]);
	ioctl(use.port[1], VIADUCT_GET_INFO, &info[1]);
	return (uint64_t)info[0].generation << 32 | info[1].generation;
}

/*
 * Maps a slice that is alive.  An adapter may report late that its link was down while the ports
 * were closed; then the link begins a new generation, and slices of the generation before are dead.
 */
static bool map_live(void)
{
	uint64_t before;

	do {
		before = generations();
		if (map_both() && arrives() && both_up(use.port[0], use.port[1]))
			return true;
		unmap_both();
	} while (both_up(use.port[0], use.port[1]) && generations() != before);
	return false;
}

static bool start(void)
{
	int i;

	use.port[0] = open_any();
	use.port[1] = open_any();
	if (use.port[0] < 0 || use.port[1] < 0 || !both_up(use.port[0], use.port[1]) || !map_live())
		return false;
	use.stop = false;
	for (i = 0; i < 2; i++)
		pthread_create(&use.thread[i], NULL, work, (void *)(intptr_t)i);
	return progress();
}

static void stop(void)
{
	int i;

	use.stop = true;
	for (i = 0; i < 2; i++)
		pthread_join(use.thread[i], NULL);
	unmap_both();
	for (i = 0; i < 2; i++)
		close(use.port[i]);
}

static bool hangs_up(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	int64_t end = now_ms() + WAIT_MS;
	struct viaduct_info info;

	while (now_ms() < end && poll(&p, 1, WAIT_MS) == 1) {
		if (p.revents & POLLHUP)
			return true;
		ioctl(fd, VIADUCT_GET_INFO, &info);
	}
	return false;
}

/* The script removes ports, all or the second one, and brings them back. */
static void gone(const char *how, bool all)
{
	struct pollfd p;
	char text[64];
	int left;

	printf("note %s\n", how);
	if (!CHECK(start(), "threads store and read"))
		return;
	ask(how);
	if (all) {
		CHECK(hangs_up(use.port[0]) && hangs_up(use.port[1]), "both ports hang up");
	} else {
		p = (struct pollfd){ .fd = use.port[0] };
		left = poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
		CHECK(hangs_up(use.port[left ? 0 : 1]) &&
			      wait_link(use.port[left ? 1 : 0], VIADUCT_LINK_DOWN),
		      "one port hangs up, and the link of the other is down");
	}
	CHECK(progress(), "the threads go on, and nothing has happened to them");
	snprintf(text, sizeof(text), "back %s", how);
	ask(text);
	CHECK(progress(), "also when the ports are back");
	stop();
	CHECK(start(), "which can be used");
	stop();
}

static void flaps(void)
{
	bool good = start();
	int i;

	for (i = 0; i < 30 && good; i++) {
		ask("cut");
		good &= wait_link(use.port[0], VIADUCT_LINK_DOWN) && progress();
		ask("restore");
		good &= wait_link(use.port[0], VIADUCT_LINK_UP) && progress();
	}
	CHECK(good, "the link is lost 30 times while threads store and read");
	stop();
}

/* Makes one of the calls in the middle of which the process is killed. */
static void call(int port, unsigned int *state)
{
	struct viaduct_slice s;
	struct viaduct_spad spad = { .index = 1, .flags = VIADUCT_SPAD_WRITE, .value = 5 };
	int fd;

	*state = *state * 1103515245 + 12345;
	switch (*state >> 16 & 7) {
	case 0:
		link_set(port, 1);
		break;
	case 1:
		fd = make_client(port, 7);
		ring_bits(fd, 7);
		break;
	case 2:
		ioctl(port, VIADUCT_SPAD, &spad);
		break;
	case 3:
		if (make_slice(port, VIADUCT_OUTBOUND, 0, 0, 1 << 20, &s) == 0)
			*(volatile char *)map_slice(&s) = 1;
		break;
	default:
		if (make_slice(port, VIADUCT_INBOUND, 0, 0, (*state >> 20 & 31) * PAGE + 1, &s) ==
		    0)
			*(volatile char *)map_slice(&s) = 1;
	}
}

struct caller {
	int port;
	unsigned int state;
	atomic_ulong *calls;
};

static void *call_again(void *arg)
{
	struct caller *c = arg;

	for (;;) {
		call(c->port, &c->state);
		(*c->calls)++;
	}
	return NULL;
}

static void child(atomic_ulong *calls, unsigned int seed)
{
	struct caller callers[4];
	pthread_t thread;
	int i, port[2] = { open_any(), open_any() };

	for (i = 0; i < 4; i++) {
		callers[i] = (struct caller){ port[i % 2], seed + i, calls };
		pthread_create(&thread, NULL, call_again, &callers[i]);
	}
	for (;;)
		pause();
}

/* Is everything that a killed process had given back at its end? */
static bool is_clean(void)
{
	struct viaduct_slice s[2];
	int i, port = open_any();
	bool good = port >= 0;

	if (good && !wait_link(port, VIADUCT_LINK_DOWN))
		good = false;
	for (i = 0; i < 2; i++)
		good = good && make_slice(port, VIADUCT_INBOUND, 0, 0, 4 << 20, &s[i]) == 0;
	for (i = 0; good && i < 2; i++)
		close(s[i].fd);
	close(port);
	return good;
}

static void kills(void)
{
	atomic_ulong *calls =
		mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	bool good = true;
	int i, pid;

	CHECK(start(), "windows have memory");
	stop();
	for (i = 0; i < 40 && good; i++) {
		*calls = 0;
		pid = fork();
		if (pid == 0)
			child(calls, i);
		while (*calls < 20u + 37 * i % 300)
			sched_yield();
		kill(pid, SIGKILL);
		good = waitpid(pid, NULL, 0) == pid && is_clean();
	}
	CHECK(good, "a holder is killed 40 times in its calls, and nothing stays");
	CHECK(start(), "then ports can be used");
	stop();
}

int main(int argc, char **argv)
{
	int i;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "flaps") == 0)
			flaps();
		else if (strcmp(argv[i], "kills") == 0)
			kills();
		else
			gone(argv[i], strstr(argv[i], "all") != NULL);
	}
	return end();
}
