// SPDX-License-Identifier: BSD-2-Clause
#include "vf_name.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vf_flow.h"
#include "vf_target.h"
#include "vs_env.h"

/* The addresses of the connection; NULL: the kernel knows them. */
static const struct vf_names *names_of(const struct vf_call *call)
{
	const struct vf_names *names;
	uint64_t inode;
	int fd;

	if (vf_flow_count() == 0)
		return NULL;
	fd = vf_target_fd(call->thread, (int)call->args[0]);
	if (fd < 0)
		return NULL;
	inode = vf_target_inode(fd);
	close(fd);
	names = vf_flow_names(inode);
	return names && vf_notify_valid(call->id) ? names : NULL;
}

static void answer(const struct vf_call *call, const struct sockaddr_storage *a)
{
	int rc = vf_target_write_name(call->thread, call->args[1], call->args[2], a);

	vf_notify_answer(call->id, rc);
}

void vf_name_peer(const struct vf_call *call)
{
	const struct vf_names *names = names_of(call);

	if (names)
		answer(call, &names->peer);
	else
		vf_notify_go_on(call->id);
}

void vf_name_local(const struct vf_call *call)
{
	const struct vf_names *names = names_of(call);

	if (names)
		answer(call, &names->local);
	else
		vf_notify_go_on(call->id);
}

bool vf_name_read(const struct vf_call *call, struct sockaddr_storage *a, struct vs_addr *addr)
{
	size_t n = (uint32_t)call->args[2];

	memset(a, 0, sizeof(*a));
	return n <= sizeof(*a) && vf_target_read(call->thread, call->args[1], a, n) &&
	       vs_addr_of((struct sockaddr *)a, (socklen_t)n, addr);
}

/* Binds a copy of the descriptor.  1: the kernel has to; else 0 or -errno. */
static int bind_here(const struct vf_call *call, const struct sockaddr_storage *a,
		     const struct vs_addr *addr)
{
	struct sockaddr_storage ours;
	int fd = vf_target_fd(call->thread, (int)call->args[0]), rc = 1, only_v6 = 0;
	socklen_t n = sizeof(only_v6);

	if (fd < 0)
		return 1;
	if (a->ss_family == AF_INET6)
		getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, &n);
	if (vf_target_may_be_tcp(fd) && !only_v6 && vf_notify_valid(call->id)) {
		vs_addr_make(&ours, a->ss_family, &vs_env.address, addr->port);
		rc = bind(fd, (struct sockaddr *)&ours, vf_target_length(&ours)) == 0 ? 0 : -errno;
	}
	close(fd);
	return rc;
}

void vf_name_bind(const struct vf_call *call)
{
	struct sockaddr_storage a;
	struct vs_addr addr;
	int rc = 1;

	/* This process may have rights that the program has not. */
	if (vs_env.bound && vf_name_read(call, &a, &addr) && vs_addr_is_any(&addr) &&
	    (addr.port == 0 || addr.port >= IPPORT_RESERVED || vf_target_may_reserve(call->thread)))
		rc = bind_here(call, &a, &addr);
	if (rc == 1)
		vf_notify_go_on(call->id);
	else
		vf_notify_answer(call->id, rc);
}

static const struct vs_rules none; /* whose only hosts are emulated ones */

void vf_name_source(int fd, const struct sockaddr_storage *mine, const struct vs_addr *peer)
{
	struct sockaddr_storage ours;
	struct vs_addr here;
	char host[VS_NAME_MAX];
	int on = 1;

	if (!vs_env.bound || !vs_map_host(&none, peer, host) ||
	    !vs_addr_of((const struct sockaddr *)mine, sizeof(*mine), &here) ||
	    !vs_addr_is_any(&here) || here.port != 0)
		return;
	setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof(on));
	vs_addr_make(&ours, mine->ss_family, &vs_env.address, 0);
	bind(fd, (struct sockaddr *)&ours, vf_target_length(&ours));
}
