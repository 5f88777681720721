// SPDX-License-Identifier: BSD-2-Clause
/* Runs in a guest with both ports of a link: limits of what a user can have at a time, and of rates. */
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/time.h>

#include "ports.h"

#define LINK_BURST 20
#define LINK_RATE 50
#define FLOOD_MS 1500
#define LONG_MS 200
#define EVENTFDS 64
#define CLIENT_EVENTFDS 4
#define CLIENTS 1024
#define MIB (1 << 20)

static int port[2];
static int client[CLIENTS + 1]; /* more files than a process has by default */

static void parameter(const char *name, const char *value)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "/sys/module/viaduct/parameters/%s", name);
	fd = open(path, O_WRONLY);
	if (fd < 0 || write(fd, value, strlen(value)) < 0)
		exit(1);
	close(fd);
}

/* Makes slices of the first port until one is refused; returns their number. */
static int slices_until(int error, uint64_t len, struct viaduct_slice *slice, int most)
{
	int count = 0;

	while (count < most && make_slice(port[0], VIADUCT_INBOUND, 0, 0, len, &slice[count]) == 0)
		count++;
	return count < most && errno == error ? count : -1;
}

static void close_slices(struct viaduct_slice *slice, int count)
{
	while (count-- > 0)
		close(slice[count].fd);
}

static void test_holdings(void)
{
	struct viaduct_slice slice[40], other;
	int count;

	parameter("max_user_slices", "7");
	count = slices_until(EDQUOT, PAGE, slice, 40);
	CHECK(count == 7, "a user has no more slices than it may");
	CHECK(make_slice(port[1], VIADUCT_INBOUND, 0, 0, PAGE, &other) < 0 && errno == EDQUOT,
	      "also not of another port");
	close(slice[--count].fd);
	CHECK(make_slice(port[1], VIADUCT_INBOUND, 0, 0, PAGE, &other) == 0,
	      "one that is closed is not counted");
	close(other.fd);
	close_slices(slice, count);
	parameter("max_user_slices", "4096");

	parameter("max_user_bytes", "65536");
	CHECK(make_slice(port[0], VIADUCT_INBOUND, 0, 0, 65537, &other) < 0 && errno == EDQUOT,
	      "nor more bytes");
	count = slices_until(EDQUOT, 4 * PAGE, slice, 40);
	CHECK(count == 4, "in several slices");
	CHECK(make_slice(port[0], VIADUCT_OUTBOUND, 0, 0, 65537, &other) == 0,
	      "memory of the peer is not counted");
	close(other.fd);
	close_slices(slice, count);
	parameter("max_user_bytes", "18446744073709551615");

	parameter("max_slices", "3");
	count = slices_until(ENOBUFS, PAGE, slice, 40);
	CHECK(count == 3, "a port has no more slices than it may");
	close_slices(slice, count);
	parameter("max_slices", "1024");

	parameter("max_user_clients", "3");
	for (count = 0; count < 8; count++) {
		client[count] = make_client(port[count % 2], 1);
		if (client[count] < 0)
			break;
	}
	CHECK(count == 3 && errno == EDQUOT, "nor does a user make more clients");
	while (count-- > 0)
		close(client[count]);
	client[0] = make_client(port[0], 1);
	CHECK(client[0] >= 0, "until some are closed");
	close(client[0]);
	parameter("max_user_clients", "4096");
}

static void test_irqs(void)
{
	struct viaduct_irq irq[5] = { 0 };
	int count = 0;

	parameter("max_user_irqs", "3");
	while (count < 5 && ioctl(port[count % 2], VIADUCT_IRQ, &irq[count]) == 0)
		count++;
	CHECK(count == 3 && errno == EDQUOT, "a user has no more interrupt objects than it may");
	close(irq[0].fd);
	CHECK(ioctl(port[0], VIADUCT_IRQ, &irq[3]) == 0, "until one is closed");
	close(irq[1].fd);
	close(irq[2].fd);
	close(irq[3].fd);
	parameter("max_user_irqs", "1024");
}

static int end_fd(int fd)
{
	struct viaduct_end end = { .fd = fd };

	return ioctl(port[0], VIADUCT_END, &end);
}

/* Slices that a holder keeps after the agent has ended them. */
static void test_ended_slices(void)
{
	struct viaduct_slice slice[40], again[40], other;
	volatile uint64_t *kept, *fresh, *late;
	int count, i;

	count = slices_until(ENOSPC, MIB, slice, 40);
	CHECK(count > 1, "a window is full");
	kept = map_slice(&slice[0]);
	kept[0] = kept[512] = 1;
	for (i = 0; i < count; i++)
		CHECK(end_fd(slice[i].fd) == 0, "an inbound slice ends");
	CHECK(kept[0] == 0 && kept[512] == 0, "a mapping shows nothing of it");
	CHECK(slices_until(ENOSPC, MIB, again, 40) == count, "all its pages can be used again");
	for (i = 0; i < count && again[i].offset != slice[0].offset; i++)
		;
	fresh = map_slice(&again[i < count ? i : 0]);
	late = map_slice(&slice[0]);
	fresh[0] = 2;
	kept[0] = 3;
	late[512] = 4;
	CHECK(i < count && fresh[0] == 2 && fresh[512] == 0 && late[0] != 2,
	      "what was kept does not reach them, nor does a new mapping");
	CHECK(end_fd(slice[0].fd) == 0, "it may be ended again");
	munmap((void *)kept, MIB);
	munmap((void *)late, MIB);
	close_slices(slice, count);
	CHECK(slices_until(ENOSPC, PAGE, slice, 1) == 0 && fresh[0] == 2,
	      "and to close it gives no pages back");
	munmap((void *)fresh, MIB);
	close_slices(again, count);

	parameter("max_slices", "4");
	parameter("max_user_slices", "3");
	for (i = 0; i < 6; i++) {
		CHECK(make_slice(port[0], i % 2, 0, 0, PAGE, &slice[i]) == 0 &&
			      end_fd(slice[i].fd) == 0,
		      "slices that have ended count neither for the port nor for the user");
	}
	close_slices(slice, 6);
	CHECK(slices_until(EDQUOT, PAGE, slice, 40) == 3, "nor less than nothing when closed");
	CHECK(make_slice(port[1], VIADUCT_INBOUND, 0, 0, PAGE, &other) < 0 && errno == EDQUOT,
	      "on any port");
	close_slices(slice, 3);
	parameter("max_user_slices", "4096");
	parameter("max_slices", "1024");
}

static void test_eventfds(void)
{
	struct viaduct_bind bind = { .db_bits = 1, .eventfd = eventfd(0, 0) };
	int fd = make_client(port[0], 1), count = 0;

	while (count < 2 * EVENTFDS && ioctl(fd, VIADUCT_BIND, &bind) == 0)
		count++;
	CHECK(count == CLIENT_EVENTFDS && errno == ENOSPC, "a client has 4 eventfds");
	for (count = 0; count < 2 * EVENTFDS && ioctl(port[0], VIADUCT_BIND, &bind) == 0; count++)
		;
	CHECK(count == EVENTFDS && errno == ENOSPC, "the agent has 64");
	close(fd);
	close(bind.eventfd);
}

static int fill_clients(int number)
{
	int count = 0;

	while (count <= CLIENTS && (client[count] = make_client(port[number], 1)) >= 0)
		count++;
	return count;
}

static void test_clients(void)
{
	const struct rlimit files = { 3 * CLIENTS, 3 * CLIENTS };
	static int kept[CLIENTS];
	int count, i;

	setrlimit(RLIMIT_NOFILE, &files);
	count = fill_clients(0);
	CHECK(count == CLIENTS && errno == ENOBUFS, "a port has 1024 clients");
	close(client[0]);
	client[0] = make_client(port[0], 1);
	CHECK(client[0] >= 0, "one more when one is closed");
	memcpy(kept, client, sizeof(kept));
	for (i = 0; i < count && end_fd(kept[i]) == 0; i++)
		;
	CHECK(i == count && end_fd(kept[0]) == 0, "clients are ended, one twice");
	CHECK(fill_clients(0) == CLIENTS && errno == ENOBUFS,
	      "those that somebody keeps do not count");
	for (i = 0; i < CLIENTS; i++)
		close(kept[i]);
	CHECK(make_client(port[0], 1) < 0 && errno == ENOBUFS,
	      "nor less than nothing when they are closed");
	for (i = 0; i < CLIENTS; i++)
		close(client[i]);
}

/* The calls that the holder of an ended client can still make. */
static void test_ended_client(void)
{
	struct viaduct_bind bind = { .db_bits = 1, .eventfd = eventfd(0, EFD_NONBLOCK) };
	struct viaduct_end end = { .fd = make_client(port[0], 1), .reserved = 1 };
	const volatile struct viaduct_status *status = status_of(port[0]);
	uint32_t before = status->db_count[0];
	struct viaduct_info info;
	int64_t start;
	uint64_t value;

	CHECK(ring_bits(end.fd, 1) == 0 && ioctl(end.fd, VIADUCT_BIND, &bind) == 0,
	      "a client rings and has an eventfd");
	CHECK(ioctl(port[0], VIADUCT_END, &end) < 0 && errno == EINVAL, "a reserved field is 0");
	end.reserved = 0;
	CHECK(ioctl(port[1], VIADUCT_END, &end) < 0 && errno == EINVAL,
	      "another port cannot end it");
	CHECK(ioctl(end.fd, VIADUCT_END, &end) < 0 && errno == ENOTTY, "nor can it itself");
	CHECK(ioctl(port[0], VIADUCT_END, &end) == 0, "its agent can");
	CHECK(ring_bits(end.fd, 1) < 0 && errno == EPERM, "it rings no more");
	CHECK(ioctl(end.fd, VIADUCT_BIND, &bind) < 0 && errno == EPERM, "and binds no more");
	ring_bits(port[1], 1);
	for (start = now_ms(); status->db_count[0] == before && now_ms() - start < WAIT_MS;)
		sched_yield();
	CHECK(status->db_count[0] != before && read(bind.eventfd, &value, 8) < 0 && errno == EAGAIN,
	      "what was bound hears nothing");
	CHECK(ioctl(end.fd, VIADUCT_GET_INFO, &info) == 0 && info.link == VIADUCT_LINK_UP,
	      "it sees the link");
	close(end.fd);
	close(bind.eventfd);
}

static void on_alarm(int sig)
{
	(void)sig;
}

static void test_ring_rate(void)
{
	const struct itimerval soon = { .it_value.tv_usec = 50000 };
	struct sigaction action = { .sa_handler = on_alarm };
	int fd = make_client(port[0], 0xf), i;
	int64_t start = now_ms();
	bool good = fd >= 0;

	parameter("ring_rate", "100");
	for (i = 0; i < 55; i++)
		good &= ring_bits(fd, 1) == 0;
	CHECK(good && now_ms() - start >= 490, "a client that rings too fast waits");
	/*
	 * Measured together with those before: time that a slow machine lets pass between calls
	 * counts towards the limit.
	 */
	CHECK(ring_bits(fd, 0xf) == 0 && now_ms() - start >= 530, "for each bit");
	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (i = 0; i < 100 && ring_bits(fd, 1) == 0; i++)
		;
	CHECK(i < 100 && errno == EAGAIN, "or is told, if it does not want to wait");
	for (i = 0; i < 2000 && ring_bits(port[0], 1) == 0; i++)
		;
	CHECK(i == 2000, "the agent rings as it likes");
	parameter("ring_rate", "1");
	fcntl(fd, F_SETFL, 0);
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	CHECK(ring_bits(fd, 0xf) < 0 && errno == EINTR, "a signal ends the wait");
	parameter("ring_rate", "20");
	action.sa_flags = SA_RESTART;
	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &soon, NULL);
	CHECK(ring_bits(fd, 0xf) == 0 && ring_bits(fd, 0xf) == 0,
	      "unless its handler lets calls go on");
	parameter("ring_rate", "100000");
	close(fd);
}

/* Returns the number of interrupts reported while the peer rings as fast as it can, for some time. */
static uint32_t flood(int ms, int64_t *took)
{
	const volatile struct viaduct_status *status = status_of(port[1]);
	uint32_t before = status->interrupts;
	int64_t start = now_ms();

	do
		ring_bits(port[0], 1);
	while (now_ms() - start < ms);
	*took = now_ms() - start;
	return status->interrupts - before;
}

static void test_interrupts(void)
{
	const volatile struct viaduct_status *status = status_of(port[1]);
	struct viaduct_bind bind = { .db_bits = 0x8, .eventfd = eventfd(0, 0) };
	struct pollfd p = { .fd = bind.eventfd, .events = POLLIN };
	uint32_t free, held, most, before[4];
	int64_t took;
	uint64_t value;
	int i;

	parameter("interrupt_rate", "0");
	free = flood(FLOOD_MS, &took);
	parameter("interrupt_rate", "5");
	held = flood(FLOOD_MS, &took);
	most = took * 5 / 1000 + 3;
	printf("note a peer that rings without end: %u interrupts are told in %d ms, %u without a limit\n",
	       held, (int)took, free);
	CHECK(held <= most, "interrupts are told at their rate");
	CHECK(free > 2 * most, "which is lower than they came");
	CHECK(ioctl(port[1], VIADUCT_BIND, &bind) == 0, "an eventfd is bound");
	for (i = 0; i < 4; i++)
		before[i] = status->db_count[i];
	for (i = 0; i < 3000; i++)
		ring_bits(port[0], i == 1500 ? 0x2 : 0x1);
	ring_bits(port[0], 0x8);
	CHECK(poll(&p, 1, WAIT_MS) == 1 && read(bind.eventfd, &value, 8) == 8 && value == 1,
	      "what was rung among many others is told, once");
	CHECK(status->db_count[0] != before[0] && status->db_count[1] != before[1] &&
		      status->db_count[3] != before[3],
	      "no bit is lost");
	parameter("interrupt_rate", "50000");
	close(bind.eventfd);
}

/*
 * Makes as many bindings as a port can have, so that one interrupt takes long.  Runs with and
 * without the limit in turn and takes the best of each, since a guest does not always get the same
 * part of its machine.
 */
static void test_long_interrupts(void)
{
	struct viaduct_bind bind = { .db_bits = 1, .eventfd = eventfd(0, EFD_NONBLOCK) };
	struct epoll_event event = { .events = EPOLLIN };
	int i, count = 0, poll_fd = epoll_create1(0);
	uint32_t told = 0, all = 0, count_now;
	int64_t took;

	CHECK(fill_clients(1) == CLIENTS, "the receiver has all its clients");
	for (i = 0; i < CLIENTS; i++)
		while (ioctl(client[i], VIADUCT_BIND, &bind) == 0)
			count++;
	CHECK(count == CLIENTS * CLIENT_EVENTFDS, "each with all its eventfds");
	epoll_ctl(poll_fd, EPOLL_CTL_ADD, bind.eventfd, &event);
	for (i = 0; i < 12; i++) {
		parameter("interrupt_rate", "0");
		count_now = flood(LONG_MS, &took);
		all = count_now > all ? count_now : all;
		parameter("interrupt_rate", "50000");
		count_now = flood(LONG_MS, &took);
		told = count_now > told ? count_now : told;
	}
	printf("note %d eventfds: %u interrupts are told in %d ms, %u without a limit\n", count,
	       told, LONG_MS, all);
	/* On a processor of its own a guest needs one millisecond for each. */
	if (all < LONG_MS / 2)
		printf("note too busy a machine to compare them\n");
	else
		CHECK(told * 4 < all * 3, "interrupts that take long are told more rarely");
	for (i = 0; i < CLIENTS; i++)
		close(client[i]);
	close(bind.eventfd);
	close(poll_fd);
}

static void test_link_rate(void)
{
	const volatile struct viaduct_status *status = status_of(port[1]);
	/* At their rate they would take twice as long as is waited for. */
	const int count = 2 * WAIT_MS / 10;
	uint32_t before = status->interrupts, told;
	int64_t start = now_ms(), took;
	int i;

	for (i = 0; i < count; i++)
		link_set(port[0], i % 2);
	CHECK(wait_link(port[1], VIADUCT_LINK_UP) && wait_link(port[0], VIADUCT_LINK_UP),
	      "a link that changed often is up in the end");
	took = now_ms() - start;
	told = status->interrupts - before;
	printf("note a link that is switched %d times: %u changes are told in %d ms\n", count, told,
	       (int)took);
	CHECK(told <= LINK_BURST + took * LINK_RATE / 1000 + 2,
	      "its changes are told at their rate");
}

int main(void)
{
	port[0] = open_port(0);
	port[1] = open_port(1);
	CHECK(both_up(port[0], port[1]), "the link comes up");
	test_holdings();
	test_irqs();
	test_ended_slices();
	test_clients();
	test_ended_client();
	test_eventfds();
	test_ring_rate();
	test_interrupts();
	test_long_interrupts();
	test_link_rate();
	return end();
}
