/* SPDX-License-Identifier: BSD-2-Clause */
/* Hosts, ports and paths of a topology: rt_topo.h. */
#ifndef RT_TYPES_H
#define RT_TYPES_H

#include <stdint.h>

#define RT_HOSTS_MAX 1024u
#define RT_PORTS_MAX 8u	   /* ports of a host, self (index 0) included */
#define RT_PATH_MAX 64u	   /* hops of the longest path that is used */
#define RT_SPEC_MAX 36864u /* bytes of the longest spec, its NUL included */
#define RT_NAME_MAX 12u	   /* bytes of the longest port name, its NUL included */
#define RT_PORT_SELF 0u

struct rt_topo;

/* A port of a host. */
struct rt_end {
	uint16_t host;
	uint8_t port;
};

/* A path: the port out of each host, from the first host to the last but one. */
struct rt_path {
	uint8_t hops;
	uint8_t port[RT_PATH_MAX];
};

enum rt_path_kind { RT_NONE, RT_SELF, RT_NEIGHBOUR, RT_RELAYED };

/* Returns the kind of a path of so many hops; RT_NONE for more than a path can have. */
static inline enum rt_path_kind rt_kind_of(unsigned int hops)
{
	if (hops > RT_PATH_MAX)
		return RT_NONE;
	return hops == 0 ? RT_SELF : hops == 1 ? RT_NEIGHBOUR : RT_RELAYED;
}

#endif
