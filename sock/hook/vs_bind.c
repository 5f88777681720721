// SPDX-License-Identifier: BSD-2-Clause
#include "vs_bind.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "vs_real.h"

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

/* True: 0.0.0.0 or ::, whatever the port. */
static bool is_any(const struct vs_addr *a)
{
	static const uint8_t zero[16];

	return memcmp(a->b, zero, 16) == 0 || (vs_addr_is_v4(a) && memcmp(a->b + 12, zero, 4) == 0);
}

/* Writes the host's address in that family, AF_INET or AF_INET6, with that port in the processor's byte order. */
static void make(struct sockaddr_storage *out, sa_family_t family, uint16_t port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	out->ss_family = family;
	if (family == AF_INET) {
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, vs_env.address.b + 12, 4);
	} else {
		v6->sin6_port = htons(port);
		memcpy(&v6->sin6_addr, vs_env.address.b, 16);
	}
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

	change = vs_addr_of(a, alen, &addr) && is_any(&addr) && is_tcp(fd) &&
		 (a->sa_family == AF_INET || !only_v6(fd));
	if (change)
		make(ours, a->sa_family, addr.port);
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

	if (vs_addr_of(a, alen, &addr) && vs_map_host(&none, &addr, host) && is_tcp(fd) &&
	    getsockname(fd, (struct sockaddr *)&mine, &n) == 0 &&
	    vs_addr_of((struct sockaddr *)&mine, n, &here) && is_any(&here) && here.port == 0) {
		vs_real.setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
		make(&mine, mine.ss_family, 0);
		vs_real.bind(fd, (struct sockaddr *)&mine, n);
	}
	errno = before;
}
