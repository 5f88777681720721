/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A connection that is carried: bytes go from one socket to the other, both ways, and so do urgent bytes, the end of
 * either direction, and resets.
 *
 * Near is the local end, whose other end the program has.  Far is the connection to the peer, by way of the preloaded
 * library, which promotes it.  A flow ends, and its sockets are closed, when both directions have ended and everything
 * was handed on, or when the rest cannot be handed on; then the other end is reset.  Both ends are reset by the kernel,
 * too, if this process is killed, so that nobody takes that for the end of the stream.
 */
#ifndef VF_FLOW_H
#define VF_FLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* With `reset`, the kernel resets the connection when the descriptor is closed, also because the process is killed. */
void vf_flow_set_reset(int fd, bool reset);

/* The addresses of a connection as the program is to see them. */
struct vf_names {
	struct sockaddr_storage local, peer;
};

/*
 * Begins one; has both sockets from then on.  `inode` is that of the program's end.  False: no memory, they stay the
 * caller's.
 */
bool vf_flow_start(int near, int far, uint64_t inode, const struct vf_names *names);

/* The addresses of the flow to which the program's socket belongs; NULL: there is none. */
const struct vf_names *vf_flow_names(uint64_t inode);

size_t vf_flow_count(void);
/* When bytes came last, as vf_loop_now() tells it. */
int64_t vf_flow_moved(void);

#endif
