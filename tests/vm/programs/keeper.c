// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs in a guest with agents of two hosts: a process of each that connects, has window memory, and hangs up, again and
 * again, and keeps every descriptor of the module that it was ever given.
 * Usage: vm_keeper server|client ROUNDS
 */
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "vipl_side.h"

#define MEMORY_BYTES (2u << 20)

static _Alignas(VIP_DESCRIPTOR_ALIGNMENT) struct {
	VIP_DESCRIPTOR desc, recv;
	unsigned char data[64];
} mem;

static unsigned int kept_slices, kept_clients;

static bool is_of(int fd, const char *kind)
{
	char path[32], name[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	len = readlink(path, name, sizeof(name) - 1);
	name[len > 0 ? len : 0] = '\0';
	return strcmp(name, kind) == 0;
}

/*
 * Replaces the close() of the C library for this program and the library: no descriptor of the
 * module is closed.
 */
__attribute__((visibility("default"))) int close(int fd)
{
	if (is_of(fd, "anon_inode:[viaduct-slice]"))
		kept_slices++;
	else if (is_of(fd, "anon_inode:[viaduct-client]"))
		kept_clients++;
	else
		return (int)syscall(SYS_close, fd);
	return 0;
}

static void one_round(bool is_client)
{
	VIP_MEM_ATTRIBUTES open = { NULL, VIP_TRUE, VIP_FALSE };
	VIP_MEM_HANDLE window;
	union address here;
	VIP_VI_HANDLE vi;
	VIP_PVOID at;

	open_nic(&mem, sizeof(mem), "keeper", &here);
	create_vi(VIP_SERVICE_RELIABLE_DELIVERY, sizeof(mem.data), &vi);
	expect_message(vi, &mem.recv, mem.data, 1);
	CHECK(VipxAllocMem(nic, MEMORY_BYTES, &open, &at, &window));
	if (is_client)
		connect_to(vi, (VIP_CHAR *)"host1", &here);
	else
		accept_one(vi, &here);
	send_message(vi, &mem.desc, &mem.data[1], 1);
	wait_message(vi);
	CHECK(VipDisconnect(vi));
	CHECK(VipDestroyVi(vi));
	CHECK(VipxFreeMem(nic, at, window));
	CHECK(VipDeregisterMem(nic, &mem, handle));
	CHECK(VipCloseNic(nic));
}

int main(int argc, char **argv)
{
	unsigned int rounds = argc == 3 ? (unsigned int)atoi(argv[2]) : 1, i;

	for (i = 0; i < rounds; i++) {
		one_round(strcmp(argv[1], "client") == 0);
		/*
		 * For each connection a slice each way, and the memory, which lies in the window of
		 * an adapter.
		 */
		if (kept_slices < 3 * (i + 1) || kept_clients < i + 1) {
			fprintf(stderr, "in round %u there are %u slices, %u clients\n", i,
				kept_slices, kept_clients);
			return 1;
		}
	}
	printf("%u rounds, %u slices and %u clients were kept\n", rounds, kept_slices,
	       kept_clients);
	return 0;
}
