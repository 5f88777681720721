// SPDX-License-Identifier: BSD-2-Clause
/* Runs in a guest with both ports of a link: the interface of viaduct.ko, step by step. */
#include "kmod_side.h"
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static struct side side[2];

static bool fails(const void *p, int error)
{
	return p == MAP_FAILED && errno == error;
}

static void test_info(void)
{
	struct viaduct_slice s;

	CHECK(open("/dev/viaduct0", O_RDWR) < 0 && errno == EBUSY, "a port has one agent");
	CHECK(side[0].status != MAP_FAILED && side[0].status->abi == VIADUCT_ABI,
	      "the status page is mapped");
	CHECK(fails(map(side[0].fd, PAGE, 0), EACCES), "not for writing");
	CHECK(mprotect((void *)side[0].status, PAGE, PROT_READ | PROT_WRITE) < 0 && errno == EACCES,
	      "and cannot be made writable");
	CHECK(fails(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, side[0].fd, PAGE), EINVAL),
	      "nothing lies behind it");
	CHECK(slice(&side[0], VIADUCT_OUTBOUND, 0, 0, PAGE, &s) < 0 && errno == ENOTCONN,
	      "no slice of the peer while the link is down");
	CHECK(link_set(&side[0], 1) == 0 && link_set(&side[1], 1) == 0, "the link is enabled");
	CHECK(wait_link(&side[0], VIADUCT_LINK_UP) && wait_link(&side[1], VIADUCT_LINK_UP),
	      "it comes up");
	CHECK(side[0].info.abi == VIADUCT_ABI && side[0].info.windows == 2 &&
		      side[0].info.db_bits == strtoull(getenv("DB_BITS"), NULL, 0) &&
		      side[0].info.window[0].inbound == 4 << 20 &&
		      side[0].info.window[0].outbound == 4 << 20,
	      "windows and doorbells as the link has them");
	CHECK(link_set(&side[0], 2) < 0 && errno == EINVAL, "an unknown request is refused");
	CHECK(ioctl(side[0].fd, VIADUCT_SLICE, NULL) < 0 && errno == EFAULT,
	      "a bad address is refused");
	CHECK(ioctl(side[0].fd, _IO(VIADUCT_IOC, 99)) < 0 && errno == ENOTTY,
	      "an unknown call is refused");
}

/* Reads until the value is there: where scratchpads are made of messages it arrives some time later. */
static bool read_spad(struct side *s, unsigned int index, uint32_t value)
{
	time_t end = time(NULL) + WAIT_MS / 1000;
	struct viaduct_spad spad;

	do {
		spad = (struct viaduct_spad){ .index = index };
		if (ioctl(s->fd, VIADUCT_SPAD, &spad) != 0)
			return false;
		sched_yield();
	} while (spad.value != value && time(NULL) < end);
	return spad.value == value;
}

static void test_spads(void)
{
	struct viaduct_spad spad = { .index = 3,
				     .flags = VIADUCT_SPAD_PEER | VIADUCT_SPAD_WRITE,
				     .value = 77 };

	CHECK(ioctl(side[0].fd, VIADUCT_SPAD, &spad) == 0, "a scratchpad of the peer is written");
	CHECK(read_spad(&side[1], 3, 77), "the peer reads it");
	spad = (struct viaduct_spad){ .index = 64 };
	CHECK(ioctl(side[1].fd, VIADUCT_SPAD, &spad) < 0 && errno == EINVAL,
	      "there is no scratchpad 64");
}

static int end_slice(const struct side *s, int fd, unsigned int reserved)
{
	struct viaduct_end end = { .fd = fd, .reserved = reserved };

	return ioctl(s->fd, VIADUCT_END, &end);
}

struct pair {
	struct viaduct_slice in, out;
	volatile uint64_t *mine;  /* inbound at port 1 */
	volatile uint64_t *yours; /* outbound at port 0, the same memory */
};

/* Adoption is refused: no IOMMU translates for these adapters. */
static void test_adopt(void)
{
	void *memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct viaduct_adopt adopt = { .address = (uintptr_t)memory, .len = PAGE };

	CHECK(ioctl(side[0].fd, VIADUCT_ADOPT, &adopt) < 0 && errno == EOPNOTSUPP,
	      "memory of a program is put behind no window");
	adopt.window = 1;
	CHECK(ioctl(side[0].fd, VIADUCT_ADOPT, &adopt) < 0 && errno == EINVAL,
	      "a request with an answer in it is none");
	munmap(memory, PAGE);
}

static void test_slices(struct pair *p)
{
	struct viaduct_slice other;
	char path[64];

	CHECK(slice(&side[1], VIADUCT_INBOUND, 0, 0, PAGE, &other) == 0, "a slice of one page");
	CHECK(slice(&side[1], VIADUCT_INBOUND, 0, 0, 2 * PAGE + 1, &p->in) == 0 &&
		      p->in.len == 3 * PAGE,
	      "a slice is rounded up to pages");
	CHECK(p->in.window != other.window || p->in.offset >= other.offset + other.len,
	      "slices do not overlap");
	CHECK(slice(&side[0], VIADUCT_OUTBOUND, p->in.window, p->in.offset, p->in.len, &p->out) ==
		      0,
	      "the other side opens it");
	p->mine = map(p->in.fd, p->in.len, 0);
	p->yours = map(p->out.fd, p->out.len, 0);
	CHECK(p->mine != MAP_FAILED && p->yours != MAP_FAILED, "both are mapped");
	CHECK(p->mine[0] == 0 && p->mine[1535] == 0, "the memory is zero");
	p->yours[0] = 0x1122334455667788;
	p->yours[1535] = 0x99;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	CHECK(p->mine[0] == 0x1122334455667788 && p->mine[1535] == 0x99,
	      "what is stored here is read there");
	CHECK(fails(map(p->in.fd, 4 * PAGE, 0), EINVAL) &&
		      fails(map(p->out.fd, 4 * PAGE, 0), EINVAL),
	      "a mapping beyond the slice is refused");
	CHECK(fails(map(p->in.fd, PAGE, 3 * PAGE), EINVAL) &&
		      fails(map(p->out.fd, 2 * PAGE, 2 * PAGE), EINVAL),
	      "also by its offset");
	CHECK(fails(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, p->in.fd, 0), EINVAL),
	      "a private one is refused");
	CHECK(fails(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, p->in.fd, 0), EACCES),
	      "an executable one is refused");
	CHECK(mremap((void *)p->mine, p->in.len, p->in.len + PAGE, MREMAP_MAYMOVE) == MAP_FAILED,
	      "a mapping does not grow");
	snprintf(path, sizeof(path), "/proc/self/fd/%d", p->in.fd);
	CHECK(open(path, O_RDWR) < 0 && errno == ENXIO, "nobody opens a slice by a path");
	CHECK(slice(&side[0], VIADUCT_OUTBOUND, 0, (4 << 20) - PAGE, 2 * PAGE, &other) < 0 &&
		      errno == ERANGE,
	      "no slice reaches beyond the window");
	CHECK(slice(&side[0], VIADUCT_OUTBOUND, 0, 1ULL << 63, PAGE, &other) < 0 && errno == ERANGE,
	      "an offset beyond it is refused");
	CHECK(slice(&side[0], VIADUCT_OUTBOUND, 0, PAGE, ~0ULL, &other) < 0 && errno == EINVAL,
	      "a length that overflows is refused");
	CHECK(slice(&side[0], VIADUCT_OUTBOUND, 0, 1, PAGE, &other) < 0 && errno == EINVAL,
	      "an offset within a page is refused");
	CHECK(slice(&side[0], VIADUCT_OUTBOUND, 2, 0, PAGE, &other) < 0 && errno == EINVAL,
	      "there is no window 2");
	CHECK(slice(&side[1], VIADUCT_INBOUND, 0, 0, 5 << 20, &other) < 0 && errno == ENOSPC,
	      "no slice is larger than a window");
	CHECK(slice(&side[1], VIADUCT_INBOUND, 0, 0, 1ULL << 44, &other) < 0 && errno == ENOSPC &&
		      slice(&side[1], VIADUCT_INBOUND, 0, 0, (1ULL << 44) + PAGE, &other) < 0 &&
		      errno == ENOSPC,
	      "nor by a number of pages beyond 32 bits");
}

/* Lets a child of fork() store there; returns its exit code, or -1 for a signal. */
static int child_stores(volatile uint64_t *at)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		*at = 0x77;
		_exit(0);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_children(struct pair *p)
{
	CHECK(child_stores(&p->mine[3]) == 0 && p->mine[3] == 0x77,
	      "a child of fork has the memory of this host");
	CHECK(child_stores(&p->yours[3]) == -1, "but not that of the peer");
}

/* A holder keeps its mapping and its descriptor; a copy of the descriptor is in another table. */
static void test_end(struct pair *p)
{
	struct viaduct_client c = { .ring_bits = 0 };
	struct viaduct_end end = { 0 };
	struct viaduct_slice s;
	volatile uint64_t *kept, *late;
	struct viaduct_copied copied;

	CHECK(slice(&side[0], VIADUCT_OUTBOUND, p->in.window, p->in.offset, p->in.len, &s) == 0,
	      "the slice is opened once more");
	kept = map(s.fd, s.len, 0);
	kept[8] = 0x1234;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	CHECK(p->mine[8] == 0x1234, "and reaches the peer");
	CHECK(end_slice(&side[0], s.fd, 1) < 0 && errno == EINVAL &&
		      end_slice(&side[1], s.fd, 0) < 0 && errno == EINVAL &&
		      end_slice(&side[0], p->in.fd, 0) < 0 && errno == EINVAL &&
		      end_slice(&side[0], side[0].fd, 0) < 0 && errno == EINVAL &&
		      end_slice(&side[0], -1, 0) < 0 && errno == EBADF,
	      "only a slice of this port ends");
	CHECK(ioctl(side[0].fd, VIADUCT_CLIENT, &c) == 0, "a client is made");
	end.fd = s.fd;
	CHECK(ioctl(c.fd, VIADUCT_END, &end) < 0 && errno == ENOTTY, "it ends no slices");
	close(c.fd);
	kept[8] = 0x2345;
	CHECK(p->mine[8] == 0x2345, "the slice has not ended by that");
	CHECK(end_slice(&side[0], s.fd, 0) == 0, "the agent ends it");
	kept[8] = 0x3456;
	kept[512] = 0x3456;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	CHECK(p->mine[8] == 0x2345 && p->mine[512] == 0,
	      "stores into a mapping that a process has kept go nowhere");
	late = map(s.fd, s.len, 0);
	late[8] = 0x4567;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	CHECK(p->mine[8] == 0x2345, "nor do those into a new one");
	CHECK(ioctl(s.fd, VIADUCT_COPIED, &copied) < 0 && errno == ENOLINK, "it begins no copies");
	p->yours[8] = 0x5678;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	CHECK(p->mine[8] == 0x5678, "another slice of these pages stays");
	CHECK(end_slice(&side[0], s.fd, 0) == 0, "what has ended may be ended again");
	munmap((void *)kept, s.len);
	munmap((void *)late, s.len);
	close(s.fd);
}

/* The memory type of the outbound mapping: the script of the suite compares it with that of the kernel. */
static void test_write_combining(void)
{
	CHECK(system("/bin/grep -q \"$OUTBOUND. write-combining\" /sys/kernel/debug/x86/pat_memtype_list") ==
		      0,
	      "the outbound window is write-combining");
	CHECK(system("/bin/grep -q \"$INBOUND. write-back\" /sys/kernel/debug/x86/pat_memtype_list") ==
		      0,
	      "the memory of the inbound one is cached");
}

static void test_doorbells(void)
{
	struct viaduct_client c = { .ring_bits = 0x6 };
	struct viaduct_bind bind = { .db_bits = 0x4, .eventfd = eventfd(0, EFD_NONBLOCK) };
	struct viaduct_ring ring = { .db_bits = 0x6 };
	struct viaduct_slice s = { .len = PAGE };
	uint32_t before = side[1].status->db_count[2];
	uint64_t value;

	CHECK(ioctl(side[1].fd, VIADUCT_BIND, &bind) == 0, "an eventfd is bound to a doorbell bit");
	CHECK(ioctl(side[0].fd, VIADUCT_CLIENT, &c) == 0, "the agent makes a client descriptor");
	CHECK(ioctl(c.fd, VIADUCT_RING, &ring) == 0, "the client rings two bits");
	CHECK(rung(bind.eventfd), "the eventfd is signalled");
	CHECK(side[1].status->db_count[2] != before, "the ring is counted");
	ring.db_bits = 0x9;
	CHECK(ioctl(c.fd, VIADUCT_RING, &ring) < 0 && errno == EPERM,
	      "the client rings no other bit");
	ring.db_bits = 1ULL << 40;
	CHECK(ioctl(c.fd, VIADUCT_RING, &ring) < 0 && errno == EINVAL, "there is no bit 40");
	CHECK(ioctl(c.fd, VIADUCT_SLICE, &s) < 0 && errno == ENOTTY,
	      "a client allocates no slices");
	bind.flags = 0x80;
	CHECK(ioctl(c.fd, VIADUCT_BIND, &bind) < 0 && errno == EINVAL,
	      "an unknown flag is refused");
	bind = (struct viaduct_bind){ .db_bits = 1, .eventfd = side[0].fd };
	CHECK(ioctl(c.fd, VIADUCT_BIND, &bind) < 0 && errno == EINVAL,
	      "what is no eventfd is refused");

	bind = (struct viaduct_bind){ .db_bits = 1, .eventfd = eventfd(0, EFD_NONBLOCK) };
	CHECK(ioctl(side[1].fd, VIADUCT_BIND, &bind) == 0, "another one is bound to bit 0");
	ring.db_bits = 0x1;
	CHECK(ioctl(side[0].fd, VIADUCT_RING, &ring) == 0 && rung(bind.eventfd),
	      "and is signalled");
	CHECK(read(bind.eventfd, &value, sizeof(value)) < 0 && errno == EAGAIN, "once");
	close(c.fd);
}

/* ---- interrupt objects ----------------------------------------------------------------------- */

struct irq {
	int fd;
	struct viaduct_irq_page *page;
};

struct sleeper {
	const struct irq *irq;
	uint64_t bits;
	uint32_t ticket;
	pthread_t thread;
	_Atomic pid_t tid;
	_Atomic bool done;
	int rc;
};

static uint32_t ticket_of(const struct irq *irq)
{
	return __atomic_load_n(&irq->page->seq, __ATOMIC_SEQ_CST);
}

static int irq_wait(const struct irq *irq, uint32_t ticket, uint64_t bits, int64_t timeout_ns)
{
	struct viaduct_irq_wait wait = { .db_bits = bits,
					 .timeout_ns = timeout_ns,
					 .ticket = ticket };

	return ioctl(irq->fd, VIADUCT_IRQ_WAIT, &wait) == 0 ? 0 : -errno;
}

static void *sleep_on(void *arg)
{
	struct sleeper *s = arg;

	s->tid = (pid_t)syscall(SYS_gettid);
	s->rc = irq_wait(s->irq, s->ticket, s->bits, WAIT_MS * INT64_C(1000000));
	s->done = true;
	return NULL;
}

static char state_of(pid_t tid)
{
	char path[64], text[64] = "";
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", tid);
	file = fopen(path, "r");
	if (file == NULL)
		return 0;
	if (fgets(text, sizeof(text), file) == NULL)
		text[0] = 0;
	fclose(file);
	return strrchr(text, ')') ? strrchr(text, ')')[2] : 0;
}

/* Starts a thread; it sleeps on the object when this returns. */
static void start_sleeper(struct sleeper *s, const struct irq *irq, uint64_t bits)
{
	time_t end = time(NULL) + WAIT_MS / 1000;

	*s = (struct sleeper){ .irq = irq, .bits = bits, .ticket = ticket_of(irq) };
	pthread_create(&s->thread, NULL, sleep_on, s);
	while ((s->tid == 0 || state_of(s->tid) != 'S') && time(NULL) < end)
		sched_yield();
	CHECK(s->tid != 0 && state_of(s->tid) == 'S', "a thread sleeps on the object");
}

static int end_sleeper(struct sleeper *s)
{
	pthread_join(s->thread, NULL);
	return s->rc;
}

static bool bind_irq(const struct side *s, const struct irq *irq, uint64_t bits)
{
	struct viaduct_bind bind = { .db_bits = bits, .eventfd = irq->fd };

	return ioctl(s->fd, VIADUCT_BIND, &bind) == 0;
}

static bool ring_bit(const struct side *from, uint64_t bit)
{
	struct viaduct_ring ring = { .db_bits = bit };

	return ioctl(from->fd, VIADUCT_RING, &ring) == 0;
}

static void test_irq_page(struct irq *irq)
{
	struct viaduct_irq made = { 0 };
	struct viaduct_irq_wait wait = { .db_bits = 1, .reserved = 1 };
	struct viaduct_ring ring = { .db_bits = 1 };

	CHECK(ioctl(side[0].fd, VIADUCT_IRQ, &made) == 0, "a port makes an interrupt object");
	irq->fd = made.fd;
	irq->page = map(irq->fd, PAGE, 0);
	CHECK(irq->page != MAP_FAILED && irq->page->seq == 0, "its page is mapped, and zero");
	CHECK(fails(map(irq->fd, 2 * PAGE, 0), EINVAL) && fails(map(irq->fd, PAGE, PAGE), EINVAL),
	      "it has one page");
	CHECK(fails(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, irq->fd, 0), EINVAL) &&
		      fails(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, irq->fd, 0),
			    EACCES),
	      "not privately, nor to be executed");
	CHECK(ioctl(irq->fd, VIADUCT_RING, &ring) < 0 && errno == ENOTTY,
	      "the holder of an object rings nobody");
	CHECK(ioctl(irq->fd, VIADUCT_IRQ_WAIT, &wait) < 0 && errno == EINVAL &&
		      irq_wait(irq, 0, 0, 0) == -EINVAL,
	      "reserved words, and a wait for no bit, are refused");
	CHECK(irq_wait(irq, 0, 1, 0) == -ETIMEDOUT && irq_wait(irq, 0, 1, 1000) == -ETIMEDOUT,
	      "a wait ends with its time");
	CHECK(irq_wait(irq, 1, 1, -1) == 0,
	      "and at once if the count is not the one that was seen");
}

/*
 * One object for doorbells of both ports: a doorbell of either wakes the threads that sleep on its
 * bit, and no others.
 */
static void test_irqs(void)
{
	struct viaduct_ring raise = { .db_bits = 0x8 };
	struct sleeper first, second;
	struct irq irq;
	uint32_t seen;

	test_irq_page(&irq);
	CHECK(bind_irq(&side[0], &irq, 0x10) && bind_irq(&side[1], &irq, 0x8),
	      "bits of two ports are bound to it");
	seen = ticket_of(&irq);
	CHECK(ring_bit(&side[1], 0x10) && irq_wait(&irq, seen, 0x10, -1) == 0 &&
		      ticket_of(&irq) != seen,
	      "a ring of the first is counted");
	start_sleeper(&first, &irq, 0x10);
	start_sleeper(&second, &irq, 0x8);
	CHECK(ring_bit(&side[1], 0x10) && end_sleeper(&first) == 0,
	      "one of the first wakes who sleeps on its bit");
	CHECK(!second.done && state_of(second.tid) == 'S',
	      "and not who sleeps on that of the second");
	CHECK(ring_bit(&side[0], 0x8) && end_sleeper(&second) == 0, "one of the second does that");
	start_sleeper(&first, &irq, 0x8);
	seen = ticket_of(&irq);
	__atomic_add_fetch(&irq.page->seq, 1, __ATOMIC_SEQ_CST);
	CHECK(ioctl(irq.fd, VIADUCT_IRQ_RAISE, &raise) == 0 && end_sleeper(&first) == 0,
	      "a holder wakes another one without a ring");
	CHECK(ticket_of(&irq) == seen + 1, "that changes no count");
	munmap(irq.page, PAGE);
	close(irq.fd);
}

static void test_cut(struct pair *p)
{
	struct viaduct_bind bind = { .eventfd = eventfd(0, EFD_NONBLOCK),
				     .flags = VIADUCT_BIND_LINK };
	uint32_t generation = side[0].info.generation;
	struct viaduct_slice again;
	volatile uint64_t *fresh;

	CHECK(ioctl(side[0].fd, VIADUCT_BIND, &bind) == 0, "an eventfd is bound to the link");
	ask("cut");
	CHECK(wait_link(&side[0], VIADUCT_LINK_DOWN), "a cut is seen");
	CHECK(rung(bind.eventfd), "and signalled");
	CHECK(side[0].status->link == VIADUCT_LINK_DOWN, "the status page says so");
	p->yours[0] = 5;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	CHECK(p->mine[0] == 0x1122334455667788, "a store into the mapping goes nowhere");
	ask("restore");
	CHECK(wait_link(&side[0], VIADUCT_LINK_UP) && wait_link(&side[1], VIADUCT_LINK_UP),
	      "the link comes back");
	CHECK(side[0].info.generation != generation, "with another generation");
	p->yours[0] = 6;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	CHECK(p->mine[0] == 0x1122334455667788, "the old mapping stays dead");
	CHECK(slice(&side[0], VIADUCT_OUTBOUND, p->in.window, p->in.offset, p->in.len, &again) == 0,
	      "the slice is opened again");
	fresh = map(again.fd, again.len, 0);
	fresh[0] = 7;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	CHECK(p->mine[0] == 7, "and shows the peer's memory");
}

static void test_unbind(struct pair *p)
{
	struct pollfd poller = { .fd = side[1].fd, .events = POLLIN };
	struct viaduct_slice s;

	ask("unbind");
	CHECK(poll(&poller, 1, WAIT_MS) == 1 && poller.revents & POLLHUP,
	      "a port that is removed hangs up");
	CHECK(side[1].status->link == VIADUCT_LINK_GONE, "the status page says so");
	CHECK(wait_link(&side[0], VIADUCT_LINK_DOWN), "its peer sees the link go down");
	p->mine[0] = 8;
	CHECK(p->mine[0] == 8, "the mapping can be used, but shows nothing");
	CHECK(slice(&side[1], VIADUCT_INBOUND, 0, 0, PAGE, &s) < 0 && errno == ENODEV,
	      "calls say that it is gone");
	CHECK(link_set(&side[1], 1) < 0 && errno == ENODEV, "all of them");
}

int main(void)
{
	struct pair p;

	open_side(&side[0], "/dev/viaduct0");
	open_side(&side[1], "/dev/viaduct1");
	test_info();
	test_spads();
	test_adopt();
	test_slices(&p);
	test_children(&p);
	test_end(&p);
	test_write_combining();
	test_doorbells();
	test_irqs();
	test_cut(&p);
	test_unbind(&p);
	printf("end %d\n", failures);
	return failures != 0;
}
