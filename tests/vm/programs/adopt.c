// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs in two guests, one port of viaduct.ko each, behind an IOMMU.  A puts memory of its own behind its windows; B
 * stores there.  Between the steps A's adapter stores into all that it can reach (`overwrite`).
 * Usage: adopt A|B BYTES, of a window
 */
#include "kmod_side.h"

#include <inttypes.h>
#include <linux/capability.h>
#include <linux/falloc.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define PAGES 3	  /* adopted ones; one page before and one after them are not adopted */
#define BAD 0xdbu /* what `overwrite` stores */
#define WINDOWS 2
#define ROUNDS 20
#define PATIENCE 60 /* seconds */
#define LIMIT_FILE "/sys/module/viaduct/parameters/max_user_bytes"

static struct side port;
static bool is_a;
static uint64_t half; /* of a window: the part that can lead to memory of programs */
static unsigned char *room, *memory;
static volatile uint64_t *far; /* B: the half of A's window 0 */

static void both(const char *name)
{
	ask("barrier %s", name);
}

static int adopt(const void *at, uint64_t len, struct viaduct_adopt *out)
{
	*out = (struct viaduct_adopt){ .address = (uintptr_t)at, .len = len };
	return ioctl(port.fd, VIADUCT_ADOPT, out);
}

static bool refuses(struct viaduct_adopt request, int error)
{
	return ioctl(port.fd, VIADUCT_ADOPT, &request) != 0 && errno == error;
}

static void *anonymous(size_t len, int prot)
{
	return mmap(NULL, len, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static unsigned char pattern(size_t i, unsigned int n)
{
	return (unsigned char)(i * 7 + (i >> 8) + n * 31 + 1);
}

static void fill(unsigned char *at, size_t len, unsigned int n)
{
	for (size_t i = 0; i < len; i++)
		at[i] = pattern(i, n);
}

static bool is_filled(const unsigned char *at, size_t len, unsigned int n)
{
	for (size_t i = 0; i < len; i++)
		if (at[i] != pattern(i, n))
			return false;
	return true;
}

static bool is_all(const unsigned char *at, size_t len, unsigned char value)
{
	for (size_t i = 0; i < len; i++)
		if (at[i] != value)
			return false;
	return true;
}

/* Are the pages next to the adopted ones unchanged? */
static bool beside_is_filled(void)
{
	return is_filled(room, PAGE, 1) && is_filled(memory + PAGES * PAGE, PAGE, 2);
}

static long pinned_kib(void)
{
	FILE *f = fopen("/proc/self/status", "r");
	char line[128];
	long kib = -1;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL)
		if (sscanf(line, "VmPin: %ld", &kib) == 1)
			break;
	if (f != NULL)
		fclose(f);
	return kib;
}

/* Lets the adapter of this guest store wherever it can; returns the bytes that it has stored. */
static uint64_t overwrite(void)
{
	return strtoull(ask("overwrite l"), NULL, 10);
}

/* B stores the n-th pattern at a place in A's window, and waits until it is there. */
static void store(uint64_t offset, size_t len, unsigned int n)
{
	volatile uint64_t *at = far + (offset - half) / 8;
	union {
		unsigned char byte[8];
		uint64_t word;
	} v;

	for (size_t i = 0; i < len; i += 8) {
		for (unsigned int k = 0; k < 8; k++)
			v.byte[k] = pattern(i + k, n);
		at[i / 8] = v.word;
	}
	ioctl(port.fd, VIADUCT_FLUSH);
}

/* A tells B the place; B stores the n-th pattern there. */
static void peer_stores(const char *name, const struct viaduct_adopt *where, unsigned int n)
{
	char key[32];
	uint64_t offset;

	snprintf(key, sizeof(key), "at%u", n);
	if (is_a) {
		ask("put %s %" PRIu64, key, (uint64_t)where->offset);
	} else {
		offset = strtoull(ask("get %s", key), NULL, 10);
		store(offset, PAGES * PAGE, n);
	}
	both(name);
}

static void open_far(void)
{
	struct viaduct_slice s;

	if (is_a)
		return;
	CHECK(slice(&port, VIADUCT_OUTBOUND, 0, half, half, &s) == 0, "the half is opened");
	far = map(s.fd, s.len, 0);
	CHECK(far != MAP_FAILED, "and mapped");
}

static void test_up(uint64_t bytes)
{
	CHECK(refuses((struct viaduct_adopt){ .address = (uintptr_t)memory, .len = PAGE }, ENOSPC),
	      "nothing is adopted before the windows have memory");
	CHECK(link_set(&port, 1) == 0 && wait_link(&port, VIADUCT_LINK_UP), "the link comes up");
	CHECK(port.info.windows == WINDOWS && port.info.window[0].inbound == bytes,
	      "with windows as the adapter has them");
	both("up");
}

static void test_wrong(void)
{
	const uint64_t at = (uintptr_t)memory;
	struct viaduct_client client = { 0 };
	struct viaduct_adopt request = { .address = at, .len = PAGE };
	char *none = anonymous(PAGE, PROT_NONE), *fixed = anonymous(PAGE, PROT_READ);

	CHECK(refuses((struct viaduct_adopt){ .address = at + 8, .len = PAGE }, EINVAL) &&
		      refuses((struct viaduct_adopt){ .address = at, .len = PAGE + 8 }, EINVAL) &&
		      refuses((struct viaduct_adopt){ .address = at }, EINVAL) &&
		      refuses((struct viaduct_adopt){ .len = PAGE }, EINVAL) &&
		      refuses((struct viaduct_adopt){ .address = -2 * PAGE, .len = 4 * PAGE },
			      EINVAL),
	      "only whole pages that exist are adopted");
	CHECK(refuses((struct viaduct_adopt){ .address = at, .len = PAGE, .offset = PAGE },
		      EINVAL) &&
		      refuses((struct viaduct_adopt){ .address = at, .len = PAGE, .window = 1 },
			      EINVAL) &&
		      refuses((struct viaduct_adopt){ .address = at, .len = PAGE, .fd = 1 },
			      EINVAL),
	      "what is in the answer is 0 in the request");
	CHECK(refuses((struct viaduct_adopt){ .address = at, .len = half + PAGE }, ENOSPC) &&
		      refuses((struct viaduct_adopt){ .address = PAGE, .len = 1ULL << 62 }, ENOSPC),
	      "no more than half of a window");
	CHECK(refuses((struct viaduct_adopt){ .address = (uintptr_t)none, .len = PAGE }, EFAULT) &&
		      refuses((struct viaduct_adopt){ .address = (uintptr_t)fixed, .len = PAGE },
			      EFAULT) &&
		      refuses((struct viaduct_adopt){ .address = 1ULL << 60, .len = PAGE }, EFAULT),
	      "no memory that the caller cannot write");
	CHECK(ioctl(port.fd, VIADUCT_CLIENT, &client) == 0 &&
		      ioctl(client.fd, VIADUCT_ADOPT, &request) != 0 && errno == ENOTTY,
	      "the holder of a client descriptor adopts nothing");
	close(client.fd);
	CHECK(pinned_kib() == 0, "and nothing is pinned");
}

/* A child without rights has a limit of two pages. */
static bool is_limited(void)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { 0 };
	struct rlimit two = { 2 * PAGE, 2 * PAGE };
	struct viaduct_adopt a;
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		if (setrlimit(RLIMIT_MEMLOCK, &two) != 0 || syscall(SYS_capset, &header, none) != 0)
			_exit(2);
		if (adopt(memory, 3 * PAGE, &a) == 0 || errno != ENOMEM)
			_exit(3);
		if (adopt(memory, 2 * PAGE, &a) != 0 || adopt(memory, PAGE, &a) == 0)
			_exit(4);
		_exit(0);
	}
	errno = 0;
	return waitpid(pid, &status, 0) == pid && status == 0;
}

static void set_limit(const char *text)
{
	int fd = open(LIMIT_FILE, O_WRONLY);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		printf("not ok %s\n", LIMIT_FILE);
	close(fd);
}

static void test_limits(void)
{
	struct viaduct_adopt a;

	CHECK(is_limited(), "a process without rights adopts what it may lock");
	set_limit("8192");
	CHECK(adopt(memory, PAGES * PAGE, &a) != 0 && errno == EDQUOT,
	      "adopted memory counts as window memory of the user");
	set_limit("18446744073709551615");
	CHECK(pinned_kib() == 0, "and nothing is pinned");
}

static void test_stores(void)
{
	struct viaduct_adopt a = { 0 };
	struct viaduct_slice info;

	fill(room, PAGE, 1);
	fill(memory, PAGES * PAGE, 3);
	fill(memory + PAGES * PAGE, PAGE, 2);
	if (is_a) {
		CHECK(adopt(memory, PAGES * PAGE, &a) == 0, "memory is adopted");
		info = (struct viaduct_slice){ .fd = a.fd };
		CHECK(a.window == 0 && a.offset == half &&
			      ioctl(port.fd, VIADUCT_SLICE_INFO, &info) == 0 &&
			      info.direction == VIADUCT_INBOUND && info.offset == a.offset &&
			      info.len == PAGES * PAGE,
		      "as an inbound slice of the upper half");
		CHECK(map(a.fd, PAGE, 0) == MAP_FAILED && errno == EACCES, "that is not mapped");
		CHECK(pinned_kib() == PAGES * PAGE / 1024, "it counts as pinned");
		CHECK(is_filled(memory, PAGES * PAGE, 3), "its content stays");
	}
	peer_stores("stored", &a, 4);
	if (!is_a) {
		both("overwritten");
		peer_stores("stored again", NULL, 5);
		return;
	}
	CHECK(is_filled(memory, PAGES * PAGE, 4), "what the peer stores is in it");
	CHECK(beside_is_filled(), "and not beside it");
	CHECK(overwrite() == WINDOWS * 2 * half, "the adapter reaches as much as before");
	CHECK(is_all(memory, PAGES * PAGE, BAD), "with the memory that is adopted");
	CHECK(beside_is_filled(), "and without what is beside it");
	close(a.fd);
	CHECK(pinned_kib() == 0, "given back, it is not pinned");
	fill(memory, PAGES * PAGE, 3);
	CHECK(overwrite() == WINDOWS * 2 * half, "the adapter reaches as much as before");
	both("overwritten");
	peer_stores("stored again", &a, 5);
	CHECK(is_filled(memory, PAGES * PAGE, 3), "and it is out of reach, also of the peer");
}

static bool ends(const struct viaduct_adopt *a)
{
	struct viaduct_end end = { .fd = a->fd };

	return ioctl(port.fd, VIADUCT_END, &end) == 0;
}

/* Checks, in A, a slice that has ended. */
static void check_ended(const struct viaduct_adopt *a)
{
	struct viaduct_adopt other = { 0 };

	CHECK(ends(a) && pinned_kib() == 0, "a slice that has ended keeps nothing pinned");
	fill(memory, PAGES * PAGE, 3);
	CHECK(overwrite() == WINDOWS * 2 * half, "the adapter reaches as much as before");
	CHECK(is_filled(memory, PAGES * PAGE, 3), "and not the memory");
	CHECK(map(a->fd, PAGE, 0) == MAP_FAILED && errno == EACCES, "it is still not mapped");
	CHECK(adopt(memory, PAGE, &other) == 0 && other.offset == half + PAGES * PAGE,
	      "its places stay taken");
	CHECK(pinned_kib() == PAGE / 1024 && ends(a) && pinned_kib() == PAGE / 1024,
	      "what has ended may be ended again");
	close(other.fd);
}

static void test_ended(void)
{
	struct viaduct_adopt a = { 0 };

	if (is_a) {
		CHECK(adopt(memory, PAGES * PAGE, &a) == 0 && a.offset == half,
		      "memory is adopted");
		check_ended(&a);
	}
	peer_stores("stored after the end", &a, 11);
	if (is_a) {
		CHECK(is_filled(memory, PAGES * PAGE, 3), "the peer does not reach it either");
		close(a.fd);
		CHECK(adopt(memory, PAGE, &a) == 0 && a.offset == half,
		      "closed it leaves its places to others");
		close(a.fd);
	}
	both("ended");
}

/* Memory of a file, which another mapping shows; then its owner takes the pages out of the file. */
static void test_shared(void)
{
	int fd = memfd_create("adopted", MFD_CLOEXEC);
	struct viaduct_adopt a = { 0 };
	unsigned char *seen = NULL, *taken;

	if (is_a) {
		CHECK(ftruncate(fd, PAGES * PAGE) == 0, "memory of a file");
		seen = map(fd, PAGES * PAGE, 0);
		taken = map(fd, PAGES * PAGE, 0);
		CHECK(adopt(taken, PAGES * PAGE, &a) == 0 && munmap(taken, PAGES * PAGE) == 0,
		      "is adopted by a mapping that goes again");
	}
	peer_stores("into the file", &a, 6);
	if (is_a) {
		CHECK(is_filled(seen, PAGES * PAGE, 6), "what the peer stores is in the file");
		CHECK(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, PAGES * PAGE) ==
			      0,
		      "its owner takes the pages out");
	}
	both("punched");
	peer_stores("into the hole", &a, 7);
	if (is_a) {
		CHECK(is_all(seen, PAGES * PAGE, 0), "and gets nothing that is stored then");
		close(a.fd);
	}
	both("shared");
	close(fd);
}

/* Adopts as much as the windows have room for; the descriptors are fd[WINDOWS]. */
static bool take_all(const void *all, int fd[WINDOWS])
{
	struct viaduct_adopt a;

	for (int i = 0; i < WINDOWS; i++) {
		if (adopt(all, half, &a) != 0)
			return false;
		fd[i] = a.fd;
	}
	return adopt(all, PAGE, &a) != 0 && errno == ENOSPC;
}

static void test_room(void)
{
	unsigned char *all = anonymous(half, PROT_READ | PROT_WRITE);
	int fd[WINDOWS], pipes[2];
	struct viaduct_slice s;
	char byte;
	pid_t pid;

	if (!is_a)
		return;
	CHECK(take_all(all, fd), "half of each window is adopted, by the same pages, and no more");
	CHECK(slice(&port, VIADUCT_INBOUND, 0, 0, half, &s) == 0, "the rest has other slices");
	close(s.fd);
	for (int i = 0; i < WINDOWS; i++)
		close(fd[i]);
	if (pipe(pipes) != 0)
		exit(1);
	pid = fork();
	if (pid == 0) {
		byte = take_all(all, fd);
		if (write(pipes[1], &byte, 1) == 1)
			pause();
		_exit(1);
	}
	CHECK(read(pipes[0], &byte, 1) == 1 && byte == 1, "a process has all of it");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	CHECK(take_all(all, fd), "and nothing when it was killed");
	for (int i = 0; i < WINDOWS; i++)
		close(fd[i]);
	close(pipes[0]);
	close(pipes[1]);
	munmap(all, half);
}

/* Maps a page of the peer's, which the peer has named under this key. */
static volatile uint64_t *open_page(const char *key)
{
	struct viaduct_slice s;

	CHECK(slice(&port, VIADUCT_OUTBOUND, 0, strtoull(ask("get %s", key), NULL, 10), PAGE, &s) ==
		      0,
	      "a page of the peer's is opened");
	return map(s.fd, PAGE, 0);
}

/* Waits until the peer has stored more; a peer that has failed stores no more. */
static void wait_stores(const volatile uint64_t *counter)
{
	uint64_t seen = *counter;
	time_t end = time(NULL) + PATIENCE;

	while (*counter == seen && time(NULL) < end)
		sched_yield();
	if (*counter == seen)
		CHECK(false, "the peer has stored nothing for a minute");
}

/* Memory that was given back must not be stored into any more. */
static void give_and_take(const volatile uint64_t *counter)
{
	unsigned int wrong = 0, refused = 0;
	struct viaduct_adopt a;

	for (unsigned int i = 0; i < ROUNDS; i++) {
		if (adopt(memory, (i % PAGES + 1) * PAGE, &a) != 0) {
			refused++;
			continue;
		}
		wait_stores(counter);
		close(a.fd);
		fill(memory, PAGES * PAGE, i);
		wait_stores(counter);
		wrong += !is_filled(memory, PAGES * PAGE, i);
	}
	CHECK(refused == 0, "memory is adopted while the peer stores");
	CHECK(wrong == 0, "and what was given back is left alone");
}

/*
 * B stores into all places, and counts, while A puts memory behind them and takes it away again,
 * until A ends it.
 */
static void test_race(void)
{
	volatile uint64_t *mine, *yours;
	struct viaduct_slice s;

	CHECK(slice(&port, VIADUCT_INBOUND, 0, 0, PAGE, &s) == 0, "a page to count in");
	mine = map(s.fd, PAGE, 0);
	ask("put count%c %" PRIu64, is_a ? 'A' : 'B', (uint64_t)s.offset);
	yours = open_page(is_a ? "countB" : "countA");
	if (is_a) {
		give_and_take(mine);
		*yours = 1;
	} else {
		time_t end = time(NULL) + 10 * PATIENCE;

		for (uint64_t i = 1; *mine == 0 && time(NULL) < end; i++) {
			far[i * 97 % (half / 8)] = i;
			*yours = i;
			ioctl(port.fd, VIADUCT_FLUSH); /* else stores would queue up on their way */
		}
	}
	both("raced");
}

/* Memory stays adopted while the link is cut, and until the adapter is removed. */
static void test_removal(void)
{
	struct viaduct_adopt a = { 0 };

	fill(memory, PAGES * PAGE, 8);
	if (is_a)
		CHECK(adopt(memory, PAGES * PAGE, &a) == 0, "memory is adopted");
	both("to be cut");
	if (is_a)
		ask("cut l");
	CHECK(wait_link(&port, VIADUCT_LINK_DOWN), "the link is cut");
	both("cut");
	if (is_a)
		ask("restore l");
	CHECK(wait_link(&port, VIADUCT_LINK_UP), "and comes back");
	open_far();
	peer_stores("after the cut", &a, 9);
	if (is_a) {
		CHECK(is_filled(memory, PAGES * PAGE, 9), "the memory is still adopted");
		fill(memory, PAGES * PAGE, 10);
		ask("unbind");
		CHECK(overwrite() == 0, "without the module the adapter reaches nothing");
		CHECK(is_filled(memory, PAGES * PAGE, 10) && beside_is_filled(),
		      "also not what was adopted");
		CHECK(refuses((struct viaduct_adopt){ .address = (uintptr_t)memory, .len = PAGE },
			      ENODEV),
		      "and nothing more is");
		CHECK(pinned_kib() == PAGES * PAGE / 1024 && close(a.fd) == 0 && pinned_kib() == 0,
		      "it is pinned until its slice is closed");
	}
	both("removed");
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	is_a = strcmp(argv[1], "A") == 0;
	half = strtoull(argv[2], NULL, 0) / 2;
	room = anonymous((PAGES + 2) * PAGE, PROT_READ | PROT_WRITE);
	memory = room + PAGE;
	open_side(&port, "/dev/viaduct0");
	test_up(2 * half);
	if (is_a) {
		test_wrong();
		test_limits();
	}
	open_far();
	test_stores();
	test_ended();
	test_shared();
	test_room();
	test_race();
	test_removal();
	printf("end %d\n", failures);
	return failures != 0;
}
