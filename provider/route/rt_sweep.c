/* SPDX-License-Identifier: BSD-2-Clause */
/* Distances over live links. */
#include <stddef.h>

#include "rt_priv.h"

/* Does the host report the link of that port as up? */
static bool end_up(const uint8_t *up, unsigned int host, unsigned int port)
{
	return (up[host] >> port & 1) != 0;
}

bool rt_link_live(const struct rt_topo *t, const uint8_t *up, unsigned int host, unsigned int port)
{
	struct rt_end peer = t->host[host].port[port].peer;

	return up == NULL || (end_up(up, host, port) && end_up(up, peer.host, peer.port));
}

void rt_sweep(const struct rt_topo *t, const uint8_t *up, unsigned int to, unsigned int until,
	      uint16_t *dist)
{
	uint16_t queue[RT_HOSTS_MAX];
	unsigned int head = 0, tail = 0, port, host, peer;

	for (host = 0; host < t->hosts; host++)
		dist[host] = RT_FAR;
	dist[to] = 0;
	queue[tail++] = (uint16_t)to;
	while (head < tail) {
		host = queue[head++];
		if (host == until)
			return;
		for (port = 1; port < t->host[host].ports; port++) {
			peer = t->host[host].port[port].peer.host;
			if (dist[peer] != RT_FAR || !rt_link_live(t, up, host, port))
				continue;
			dist[peer] = dist[host] + 1;
			queue[tail++] = (uint16_t)peer;
		}
	}
}
