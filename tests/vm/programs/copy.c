// SPDX-License-Identifier: BSD-2-Clause
/* Runs in a guest with both ports of a link: copies into the peer's memory by a DMA engine and by the processor. */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "ports.h"

#define BYTES (3u << 20)
#define QUEUE 64
#define REGIONS 8

static int port[2];
static struct viaduct_slice in, out;
static unsigned char *mine;
static unsigned char *data;
static uint64_t asked;

static bool set_parameter(const char *module, const char *name, const char *value)
{
	char path[128];
	bool good;
	int fd;

	snprintf(path, sizeof(path), "/sys/module/%s/parameters/%s", module, name);
	fd = open(path, O_WRONLY);
	if (fd < 0)
		exit(1);
	good = write(fd, value, strlen(value)) > 0;
	close(fd);
	return good;
}

static void parameter(const char *module, const char *name, const char *value)
{
	if (!set_parameter(module, name, value))
		exit(1);
}

static int pin(int fd, const void *address, uint64_t len, uint32_t *region)
{
	struct viaduct_pin p = { .address = (uintptr_t)address, .len = len };
	int rc = ioctl(fd, VIADUCT_PIN, &p);

	*region = p.region;
	return rc;
}

static int unpin(int fd, uint32_t region)
{
	struct viaduct_unpin u = { .region = region };

	return ioctl(fd, VIADUCT_UNPIN, &u);
}

static int copy(int fd, uint32_t region, uint64_t source, uint64_t target, uint64_t len)
{
	struct viaduct_copy c = { .region = region, .source = source, .target = target, .len = len };
	int rc = ioctl(fd, VIADUCT_COPY, &c);

	if (rc == 0)
		asked = c.ticket;
	return rc;
}

/* Waits until all copies that were asked for are done; each wait ends by an event of the slice. */
static bool wait_done(int fd, struct viaduct_copied *c)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	for (;;) {
		if (ioctl(fd, VIADUCT_COPIED, c) != 0)
			return false;
		if (c->done == asked)
			return true;
		if (poll(&p, 1, WAIT_MS) <= 0)
			return false;
	}
}

static void fill(unsigned int seed)
{
	size_t i;

	for (i = 0; i < BYTES; i++)
		data[i] = (seed = seed * 1103515245 + 12345) >> 16;
}

/* Opens new slices, of the link's generation. */
static bool open_slices(void)
{
	if (!both_up(port[0], port[1]) ||
	    make_slice(port[1], VIADUCT_INBOUND, 0, 0, BYTES, &in) != 0 ||
	    make_slice(port[0], VIADUCT_OUTBOUND, in.window, in.offset, in.len, &out) != 0)
		return false;
	mine = map_slice(&in);
	asked = 0;
	return mine != MAP_FAILED;
}

static void close_slices(void)
{
	munmap(mine, BYTES);
	close(in.fd);
	close(out.fd);
}

/* Makes one copy with unaligned ends; the bytes around it must not change. */
static bool copies(uint32_t region, unsigned int seed, bool engine)
{
	struct viaduct_copied before, c;
	const size_t from = 12345, to = 777, len = BYTES - 20000;

	fill(seed);
	if (!wait_done(out.fd, &before) || copy(out.fd, region, from, to, len) != 0 ||
	    !wait_done(out.fd, &c))
		return false;
	return c.failed == before.failed && memcmp(mine + to, data + from, len) == 0 &&
	       c.by_engine - before.by_engine == (engine ? len : 0);
}

static void test_refused(uint32_t region)
{
	struct viaduct_slice one;
	uint32_t more[REGIONS], other;
	struct viaduct_copied c;
	int i;

	CHECK(copy(out.fd, region, 0, 0, BYTES + 1) < 0 && errno == ERANGE &&
		      copy(out.fd, region, 1, 0, BYTES) < 0 && errno == ERANGE &&
		      copy(out.fd, region, 0, 1, BYTES) < 0 && errno == ERANGE &&
		      copy(out.fd, region, ~0ULL, 0, PAGE) < 0 && errno == ERANGE &&
		      copy(out.fd, region, 0, ~0ULL - 5, 10) < 0 && errno == ERANGE,
	      "no copy beyond the region or the slice");
	CHECK(copy(out.fd, region, 0, 0, 0) < 0 && errno == EINVAL &&
		      copy(out.fd, region + 1, 0, 0, PAGE) < 0 && errno == EINVAL &&
		      copy(out.fd, ~0u, 0, 0, PAGE) < 0 && errno == EINVAL,
	      "none of nothing, and none from a region that there is not");
	CHECK(pin(out.fd, (void *)PAGE, PAGE, &other) < 0 && errno == EFAULT &&
		      pin(out.fd, (void *)~0UL, PAGE, &other) < 0 && errno == EINVAL &&
		      pin(out.fd, data, 0, &other) < 0 && errno == EINVAL,
	      "no memory is registered that there is not");
	CHECK(pin(out.fd, mine, PAGE, &other) < 0 && errno == EFAULT, "nor a mapping of a slice");
	mprotect(data, PAGE, PROT_READ);
	CHECK(pin(out.fd, data, 2 * PAGE, &other) < 0 && errno == EFAULT,
	      "nor what the program may not write");
	mprotect(data, PAGE, PROT_READ | PROT_WRITE);
	CHECK(ioctl(in.fd, VIADUCT_COPIED, &c) < 0 && errno == ENOTTY, "not into inbound slices");
	for (i = 0; i < REGIONS - 1; i++) {
		if (pin(out.fd, data, PAGE, &more[i]) != 0)
			break;
	}
	CHECK(i == REGIONS - 1 && pin(out.fd, data, PAGE, &other) < 0 && errno == ENOSPC,
	      "a slice has 8 regions");
	while (i-- > 0)
		unpin(out.fd, more[i]);
	CHECK(unpin(out.fd, more[0]) < 0 && errno == EINVAL, "none is given back twice");
	CHECK(make_slice(port[0], VIADUCT_OUTBOUND, in.window, in.offset, PAGE, &one) == 0 &&
		      copy(one.fd, region, 0, 0, PAGE) < 0 && errno == EINVAL,
	      "regions are those of one slice");
	close(one.fd);
}

static void test_engine(uint32_t region)
{
	struct viaduct_copied c;
	int64_t start, engine;

	start = now_ms();
	CHECK(copies(region, 1, true), "the engine copies");
	engine = now_ms() - start;
	parameter("sw_dma", "fail", "2");
	wait_done(out.fd, &c);
	CHECK(!copies(region, 2, true) && memcmp(mine + 777, data + 12345, BYTES - 20000) == 0,
	      "the processor does what an engine fails to do");
	CHECK(copies(region, 3, true), "afterwards the engine does it again");
	parameter("sw_dma", "fail", "100000");
	CHECK(!copies(region, 4, true) && memcmp(mine + 777, data + 12345, BYTES - 20000) == 0,
	      "also when it fails for ever");
	parameter("sw_dma", "fail", "0");
	CHECK(copies(region, 5, false), "then it is not used any more");
	close_slices();
	link_set(port[0], 0);
	wait_link(port[1], VIADUCT_LINK_DOWN);
	CHECK(open_slices() && pin(out.fd, data, BYTES, &region) == 0 && copies(region, 6, true),
	      "until the link comes up again");
	parameter("viaduct", "engine_bytes", "0");
	start = now_ms();
	CHECK(copies(region, 7, false), "nor when it is not wanted");
	printf("note 3 MiB and a check: %d ms by the engine, %d ms by the processor\n", (int)engine,
	       (int)(now_ms() - start));
	parameter("viaduct", "engine_bytes", "65536");
	CHECK(copy(out.fd, region, 0, 0, PAGE) == 0 && wait_done(out.fd, &c), "a short copy");
	engine = c.by_engine;
	CHECK(copy(out.fd, region, 0, 0, 65535) == 0 && wait_done(out.fd, &c) &&
		      c.by_engine == (uint64_t)engine && c.failed == 0,
	      "is the processor's");
}

/*
 * An engine that hangs.  The script has set the longest time limit for engines, so that no other
 * test finds one late.
 */
static void test_hang(uint32_t region)
{
	CHECK(!set_parameter("viaduct", "engine_ms", "0") && errno == EINVAL &&
		      !set_parameter("viaduct", "engine_ms", "60001") && errno == EINVAL,
	      "an engine has a limited time");
	parameter("viaduct", "engine_ms", "20");
	parameter("sw_dma", "hold", "1");
	CHECK(copies(region, 10, false), "the processor does what an engine does not end in time");
	parameter("sw_dma", "hold", "0");
	parameter("viaduct", "engine_ms", "60000");
	CHECK(copies(region, 11, false), "then it is not used any more, though it would work");
	close_slices();
	link_set(port[0], 0);
	wait_link(port[1], VIADUCT_LINK_DOWN);
	CHECK(open_slices() && pin(out.fd, data, BYTES, &region) == 0 && copies(region, 12, true),
	      "until the link comes up the next time");
}

/* While an engine hangs copies stay in the queue. */
static void test_queue(uint32_t region)
{
	struct viaduct_copied before, c;
	int i, rc = 0;

	parameter("sw_dma", "hold", "1");
	wait_done(out.fd, &before);
	for (i = 0; i <= QUEUE && rc == 0; i++)
		rc = copy(out.fd, region, 0, 0, 65536);
	CHECK(i == QUEUE + 1 && rc < 0 && errno == EAGAIN,
	      "no more copies are asked for than a queue holds");
	CHECK(unpin(out.fd, region) < 0 && errno == EBUSY,
	      "memory is not given back while it is copied");
	parameter("sw_dma", "hold", "0");
	CHECK(wait_done(out.fd, &c) && c.failed == 0 &&
		      c.by_engine - before.by_engine == QUEUE * 65536ull,
	      "all are done");
}

/* A user without rights: registered memory counts as locked memory. */
static void test_memlock(void)
{
	const struct rlimit limit = { 64 << 10, 64 << 10 };
	int pid = fork(), status;
	uint32_t region, other;

	if (pid == 0) {
		setrlimit(RLIMIT_MEMLOCK, &limit);
		if (setresgid(1000, 1000, 1000) != 0 || setresuid(1000, 1000, 1000) != 0)
			_exit(1);
		if (pin(out.fd, data, 1 << 20, &region) == 0 || errno != ENOMEM)
			_exit(2);
		if (pin(out.fd, data, 32 << 10, &region) != 0)
			_exit(3);
		if (pin(out.fd, data, 64 << 10, &other) == 0 || errno != ENOMEM)
			_exit(4);
		if (unpin(out.fd, region) != 0 || pin(out.fd, data, 60 << 10, &region) != 0)
			_exit(5);
		_exit(unpin(out.fd, region) == 0 ? 0 : 6);
	}
	CHECK(waitpid(pid, &status, 0) == pid && (errno = WEXITSTATUS(status)) == 0,
	      "registered memory is limited as locked memory is, and needs no rights");
}

/* Registered memory stays usable, although the program unmaps it. */
static void test_unmapped(void)
{
	struct viaduct_copied c;
	unsigned char *more =
		mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint32_t region;

	memset(more, 0x5a, 1 << 20);
	CHECK(pin(out.fd, more, 1 << 20, &region) == 0, "memory is registered");
	munmap(more, 1 << 20);
	CHECK(copy(out.fd, region, 0, 0, 1 << 20) == 0 && wait_done(out.fd, &c) &&
		      mine[0] == 0x5a && mine[(1 << 20) - 1] == 0x5a,
	      "and is copied when its mapping is gone");
	unpin(out.fd, region);
}

/* An agent ends a slice while its holder has copies to be made. */
static void test_slice_end(void)
{
	struct viaduct_end end = { .fd = out.fd };
	struct viaduct_copied c;
	uint32_t region;
	bool good = pin(out.fd, data, BYTES, &region) == 0;
	int i;

	fill(7);
	for (i = 0; good && i < QUEUE; i++)
		good = copy(out.fd, region, 0, 0, BYTES) == 0;
	CHECK(good && ioctl(port[0], VIADUCT_END, &end) == 0, "a slice ends with copies queued");
	memset(mine, 0x11, BYTES);
	CHECK(wait_done(out.fd, &c) && c.failed > 0 && c.error == ENOLINK,
	      "those that are left fail");
	CHECK(copy(out.fd, region, 0, 0, BYTES) == 0 && wait_done(out.fd, &c) &&
		      c.error == ENOLINK && mine[0] == 0x11 && mine[BYTES - 1] == 0x11,
	      "and nothing is copied to the peer any more");
	close_slices();
	CHECK(open_slices(), "new slices of the pages");
	end.fd = out.fd;
	CHECK(ioctl(port[0], VIADUCT_END, &end) == 0 && pin(out.fd, data, BYTES, &region) != 0 &&
		      errno == ENOLINK,
	      "memory cannot be registered for the first time for one that has ended");
	close_slices();
	CHECK(open_slices(), "and again new slices");
}

/* Processes are killed, and the link is cut, in the middle of copies. */
static void test_ends(void)
{
	const volatile struct viaduct_status *status_page = status_of(port[0]);
	struct viaduct_copied c;
	uint32_t region;
	int i, pid, status;
	uint64_t failed;
	bool good = true;

	for (i = 0; i < 20 && good; i++) {
		pid = fork();
		if (pid == 0) {
			struct viaduct_slice s;

			make_slice(port[0], VIADUCT_OUTBOUND, in.window, in.offset, in.len, &s);
			close(out.fd);
			if (pin(s.fd, data, BYTES, &region) != 0)
				_exit(1);
			for (;;)
				copy(s.fd, region, 0, 0, BYTES);
		}
		while (mine[BYTES - 1] != data[BYTES - 1] && waitpid(pid, &status, WNOHANG) == 0)
			sched_yield();
		kill(pid, SIGKILL);
		good = waitpid(pid, &status, 0) == pid && WIFSIGNALED(status);
		fill(100 + i);
	}
	CHECK(good, "a process is killed 20 times while it copies");
	good = pin(out.fd, data, BYTES, &region) == 0;
	begin_ask("cut");
	while (good && status_page->link == VIADUCT_LINK_UP)
		copy(out.fd, region, 0, 0, BYTES);
	end_ask();
	copy(out.fd, region, 0, 0, BYTES);
	CHECK(good && wait_link(port[0], VIADUCT_LINK_DOWN) && wait_done(out.fd, &c) &&
		      c.failed > 0 && c.error == ENOLINK,
	      "what is not copied when the link is lost fails");
	ask("restore");
	CHECK(wait_link(port[0], VIADUCT_LINK_UP), "the link comes back");
	failed = c.failed;
	mine[0] = ~data[0];
	CHECK(copy(out.fd, region, 0, 0, PAGE) == 0 && wait_done(out.fd, &c) &&
		      c.failed == failed + 1 && mine[0] != data[0],
	      "but the slice has ended");
	close_slices();
	CHECK(open_slices() && pin(out.fd, data, BYTES, &region) == 0 && copies(region, 9, true),
	      "a new one has not");
	begin_ask("unbind");
	while (status_page->link != VIADUCT_LINK_GONE)
		copy(out.fd, region, 0, 0, BYTES);
	end_ask();
	copy(out.fd, region, 0, 0, PAGE);
	CHECK(wait_done(out.fd, &c) && c.failed > 0 && c.error == ENOLINK,
	      "nor is anything copied when the adapter is gone");
}

int main(void)
{
	uint32_t region;

	port[0] = open_port(0);
	port[1] = open_port(1);
	data = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	fill(99);
	CHECK(open_slices(), "slices");
	CHECK(pin(out.fd, data, BYTES, &region) == 0, "memory is registered for copies");
	test_refused(region);
	test_engine(region);
	test_hang(0);
	test_queue(0);
	CHECK(unpin(out.fd, 0) == 0, "then it is given back");
	test_memlock();
	test_unmapped();
	test_slice_end();
	test_ends();
	return end();
}
