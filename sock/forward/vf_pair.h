/* SPDX-License-Identifier: BSD-2-Clause */
/* Local connections, of which a program gets one end. */
#ifndef VF_PAIR_H
#define VF_PAIR_H

#include <stdbool.h>
#include <sys/socket.h>

/* Listens on loopback addresses.  0 or -errno. */
int vf_pair_init(void);

/*
 * A TCP socket for vf_pair_join(), not waiting, which the preloaded library does not know.  The socket or -errno.
 */
int vf_pair_socket(sa_family_t family);

/*
 * Connects a socket of that family, whose connections have `mapped` IPv4 addresses or not, with a new one.  The new
 * one, which does not wait, and which the preloaded library does not know; or -errno.  `used` says whether `fd` was
 * connected, or is about to be.  Sleeps some milliseconds at most, unless somebody attacks.
 */
int vf_pair_join(int fd, sa_family_t family, bool mapped, bool *used);

#endif
