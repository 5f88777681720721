// SPDX-License-Identifier: BSD-2-Clause
/* Runs in a guest with both ports of a link: calls that the holders of descriptors may not make. */
#define _GNU_SOURCE
#include "ports.h"

static const unsigned long agents[] = { VIADUCT_SLICE, VIADUCT_CLIENT, VIADUCT_LINK,  VIADUCT_SPAD,
					VIADUCT_IRQ,   VIADUCT_END,    VIADUCT_ADOPT, 0 };
static const unsigned long clients[] = { VIADUCT_GET_INFO,
					 VIADUCT_BIND,
					 VIADUCT_RING,
					 VIADUCT_SLICE_INFO,
					 VIADUCT_FLUSH,
					 VIADUCT_GET_TRAITS,
					 0 };
static const unsigned long copies[] = { VIADUCT_PIN, VIADUCT_UNPIN, VIADUCT_COPY, VIADUCT_COPIED,
					0 };
static const unsigned long sleeps[] = { VIADUCT_IRQ_WAIT, VIADUCT_IRQ_RAISE, 0 };

/* Are all of the calls refused on this kind of descriptor? */
static bool refuses(int fd, const unsigned long *call)
{
	unsigned char zeros[sizeof(struct viaduct_info)];

	for (; *call != 0; call++) {
		memset(zeros, 0, sizeof(zeros));
		if (ioctl(fd, *call, zeros) == 0 || errno != ENOTTY)
			return false;
	}
	return true;
}

/* Is executing refused, both when memory is mapped and later? */
static bool never_executable(int fd)
{
	void *mapped = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	bool good;

	if (mapped == MAP_FAILED)
		return false;
	good = mprotect(mapped, PAGE, PROT_READ | PROT_EXEC) < 0 && errno == EACCES &&
	       mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0) == MAP_FAILED &&
	       errno == EACCES;
	munmap(mapped, PAGE);
	return good;
}

static void test_user(void)
{
	int fd;

	CHECK(setresuid(1000, 1000, 1000) == 0, "a user without rights");
	fd = open("/dev/viaduct0", O_RDWR);
	CHECK(fd < 0 && errno == EACCES && open("/dev/viaduct1", O_RDONLY) < 0 && errno == EACCES,
	      "cannot open a port, also when nobody has it");
}

int main(void)
{
	int port[2] = { open_port(0), open_port(1) }, client;
	struct viaduct_slice in, out;
	struct viaduct_irq irq = { 0 };

	CHECK(both_up(port[0], port[1]), "the link comes up");
	CHECK(make_slice(port[1], VIADUCT_INBOUND, 0, 0, PAGE, &in) == 0 &&
		      make_slice(port[0], VIADUCT_OUTBOUND, in.window, in.offset, PAGE, &out) == 0,
	      "slices");
	client = make_client(port[0], 1);
	CHECK(client >= 0 && ioctl(port[0], VIADUCT_IRQ, &irq) == 0,
	      "a client, an interrupt object");
	CHECK(refuses(port[0], copies) && refuses(port[0], sleeps), "a port copies nothing");
	CHECK(refuses(client, agents) && refuses(client, copies) && refuses(client, sleeps),
	      "a client has no call of an agent: slices, clients, the link, scratchpads");
	CHECK(refuses(in.fd, agents) && refuses(in.fd, clients) && refuses(in.fd, copies) &&
		      refuses(in.fd, sleeps),
	      "nor has an inbound slice, or one of a client");
	CHECK(refuses(out.fd, agents) && refuses(out.fd, clients) && refuses(out.fd, sleeps),
	      "nor has an outbound one");
	CHECK(refuses(irq.fd, agents) && refuses(irq.fd, clients) && refuses(irq.fd, copies),
	      "nor has an interrupt object");
	CHECK(never_executable(client) && never_executable(in.fd) && never_executable(out.fd) &&
		      never_executable(irq.fd),
	      "no mapping is or becomes executable");
	close(port[0]);
	close(port[1]);
	test_user();
	return end();
}
