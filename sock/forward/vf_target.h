/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process that waits for an answer has: its memory, sockets and name.  All of it may change at any time. */
#ifndef VF_TARGET_H
#define VF_TARGET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "vs_rules.h"

/* Copies from or to its memory.  False: some of it cannot be accessed. */
bool vf_target_read(pid_t thread, uint64_t at, void *to, size_t n);
bool vf_target_write(pid_t thread, uint64_t at, const void *from, size_t n);

/* Writes an address as getpeername() does, to `at`, and its length to `len_at`.  0 or -errno. */
int vf_target_write_name(pid_t thread, uint64_t at, uint64_t len_at,
			 const struct sockaddr_storage *a);

/*
 * A copy of its descriptor, unknown to the preloaded library; -1: it has none of that number, or may not be looked
 * into.
 */
int vf_target_fd(pid_t thread, int fd);

/* True: it has the right to ports below IPPORT_RESERVED, as far as this process may have it. */
bool vf_target_may_reserve(pid_t thread);

/* The file name of its program, as its first argument has it; "" if that cannot be read. */
void vf_target_name(pid_t thread, char name[VS_NAME_MAX]);

/* True: a TCP socket over IPv4 or IPv6. */
bool vf_target_is_tcp(int fd);
/* The same, or one for MPTCP, which gives a peer that does not know that a TCP connection. */
bool vf_target_may_be_tcp(int fd);
/* The number that all descriptors of a socket share; 0: it is none. */
uint64_t vf_target_inode(int fd);
/* True: calls on the descriptor do not wait. */
bool vf_target_nonblock(int fd);
/* Makes them not wait, or wait; for all copies of the descriptor. */
void vf_target_set_nonblock(int fd, bool on);
socklen_t vf_target_length(const struct sockaddr_storage *a);

#endif
