// SPDX-License-Identifier: BSD-2-Clause
#include "vs_bind.h"

#include <errno.h>
#include <netinet/in.h>

#include "vs_real.h"
#include "vs_table.h"

/* May change errno. */
static bool is_tcp(int fd)
{
	int type = 0, protocol = 0;
	socklen_t n = sizeof(type), m = sizeof(protocol);

	return vs_real.getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &n) == 0 && type == SOCK_STREAM &&
	       vs_real.getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &m) == 0 &&
	       protocol == IPPROTO_TCP;
}

/* False also if it is no IPv6 socket.  May change errno. */
static bool only_v6(int fd)
{
	int on = 0;
	socklen_t n = sizeof(on);

	return vs_real.getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, &n) == 0 && on;
}

/*
 * vs_bind_any() of a process that stands for a host; an IPv6 socket with IPV6_V6ONLY is left.  `ours` is written only
 * for true; errno stays.
 */
bool vs_bind_any_slow(int fd, const struct sockaddr *a, socklen_t alen,
		      struct sockaddr_storage *ours)
{
	int before = errno;
	struct vs_addr addr;
	bool change;

	change = vs_addr_of(a, alen, &addr) && vs_addr_is_any(&addr) && is_tcp(fd) &&
		 (a->sa_family == AF_INET || !only_v6(fd));
	if (change)
		vs_addr_make(ours, a->sa_family, &vs_env.address, addr.port);
	errno = before;
	return change;
}

static const struct vs_rules none; /* whose only hosts are emulated ones */

/*
 * vs_bind_source() of a process that stands for a host: does nothing for one that has an address or port already, or
 * where `a` is no emulated host.  An error of bind() is ignored, and errno stays.
 */
void vs_bind_source_slow(int fd, const struct sockaddr *a, socklen_t alen)
{
	struct sockaddr_storage mine = { 0 };
	struct vs_addr addr, here;
	socklen_t n = sizeof(mine);
	char host[VS_NAME_MAX];
	int on = 1, before = errno;

	/* What has an object and a name is TCP. */
	if (vs_addr_of(a, alen, &addr) && vs_map_host(&none, &addr, host) &&
	    (vs_peek(fd) || is_tcp(fd)) && getsockname(fd, (struct sockaddr *)&mine, &n) == 0 &&
	    vs_addr_of((struct sockaddr *)&mine, n, &here) && vs_addr_is_any(&here) &&
	    here.port == 0) {
		vs_real.setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
		vs_addr_make(&mine, mine.ss_family, &vs_env.address, 0);
		vs_real.bind(fd, (struct sockaddr *)&mine, n);
	}
	errno = before;
}
