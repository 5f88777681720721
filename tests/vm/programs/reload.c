// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs in one of two guests: stores into the peer's memory and reads its own, in each generation of the link, until it
 * is ended.  Usage: reload FILE, which gets a line for each generation.
 */
#include "ports.h"

#define SLICE (64 * PAGE)

static void use(int fd, const volatile uint64_t *mine, const volatile struct viaduct_status *status)
{
	uint32_t generation = status->generation;
	struct viaduct_slice out;
	volatile uint64_t *yours;
	uint64_t value = 0;
	size_t i;

	/* The first slice of the peer begins at the beginning of its first window. */
	if (make_slice(fd, VIADUCT_OUTBOUND, 0, 0, SLICE, &out) != 0)
		return;
	yours = map_slice(&out);
	printf("%u\n", generation);
	fflush(stdout);
	while (status->link == VIADUCT_LINK_UP && status->generation == generation) {
		for (i = 0; i < SLICE / 8; i += 128)
			yours[i] = value + mine[i];
		value++;
		ring_bits(fd, 1ULL << value % 8);
	}
	munmap((void *)yours, SLICE);
	close(out.fd);
}

int main(int argc, char **argv)
{
	const volatile struct viaduct_status *status;
	volatile uint64_t *mine = NULL;
	struct viaduct_slice in;
	int fd;

	if (argc != 2 || freopen(argv[1], "w", stdout) == NULL)
		return 2;
	fd = open_port(0);
	status = status_of(fd);
	link_set(fd, 1);
	while (wait_link(fd, VIADUCT_LINK_UP)) {
		if (mine == NULL && make_slice(fd, VIADUCT_INBOUND, 0, 0, SLICE, &in) == 0)
			mine = map_slice(&in);
		if (mine != NULL)
			use(fd, mine, status);
	}
	return 1;
}
