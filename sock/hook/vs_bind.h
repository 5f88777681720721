/* SPDX-License-Identifier: BSD-2-Clause */
/* Addresses of a process that stands for one of several hosts of this machine (vi_run --host). */
#ifndef VS_BIND_H
#define VS_BIND_H

#include <stdbool.h>
#include <sys/socket.h>

#include "vs_env.h"
#include "vs_table.h"

bool vs_bind_any_slow(int fd, const struct sockaddr *a, socklen_t alen,
		      struct sockaddr_storage *ours);
void vs_bind_source_slow(int fd, const struct sockaddr *a, socklen_t alen);

/* True: a TCP socket is being bound to any address, and this process stands for a host: `ours` is the host's. */
static inline bool vs_bind_any(int fd, const struct sockaddr *a, socklen_t alen,
			       struct sockaddr_storage *ours)
{
	return vs_unlikely(vs_env.bound) && vs_bind_any_slow(fd, a, alen, ours);
}

/*
 * Before a connection to an emulated host: binds a TCP socket that has no address to the host's, if this process stands
 * for one.
 */
static inline void vs_bind_source(int fd, const struct sockaddr *a, socklen_t alen)
{
	if (vs_unlikely(vs_env.bound))
		vs_bind_source_slow(fd, a, alen);
}

#endif
