/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which connections may be promoted, and the fabric host of an address: the text of
 * VIADUCT_SOCK_RULES and VIADUCT_SOCK_MAP.  Pure: reads no environment, opens nothing.
 */
#ifndef VS_RULES_H
#define VS_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#define VS_RULES_MAX 64
#define VS_MAP_MAX 256
#define VS_NAME_MAX 64

enum vs_policy { VS_NEVER, VS_AUTO, VS_EAGER };

/* An IP address in the form of IPv6; IPv4 is ::ffff:a.b.c.d. */
struct vs_addr {
	uint8_t b[16];
	uint16_t port; /* in the processor's byte order */
};

struct vs_rule {
	char program[VS_NAME_MAX]; /* a pattern as fnmatch() has it; "": any */
	struct vs_addr addr;
	unsigned int bits; /* of addr that count; 0: any */
	uint16_t port_min, port_max;
	enum vs_policy policy;
};

struct vs_map_entry {
	struct vs_addr addr;
	unsigned int bits;
	char host[VS_NAME_MAX];
};

struct vs_rules {
	struct vs_rule rule[VS_RULES_MAX];
	size_t rules;
	struct vs_map_entry map[VS_MAP_MAX];
	size_t mapped;
};

/* Converts a socket address, with the port.  False: it is NULL, too short, or neither IPv4 nor IPv6. */
bool vs_addr_of(const struct sockaddr *a, socklen_t alen, struct vs_addr *out);
/* True for ::ffff:a.b.c.d. */
bool vs_addr_is_v4(const struct vs_addr *a);
/*
 * Is it a loopback address: 127.0.0.0/8 or ::1?  False for the addresses of emulated hosts in 127.77.0.0/16, each of
 * which names one host.
 */
bool vs_addr_is_loopback(const struct vs_addr *a);
/* True: 0.0.0.0 or ::, whatever the port. */
bool vs_addr_is_any(const struct vs_addr *a);
/*
 * Writes an IPv4 address as one of that family, AF_INET or AF_INET6, with this port in the processor's byte order in
 * place of its own.
 */
void vs_addr_make(struct sockaddr_storage *out, sa_family_t family, const struct vs_addr *a,
		  uint16_t port);
/* Writes the address without the port, or "" where `size` is too small. */
void vs_addr_text(const struct vs_addr *a, char *text, size_t size);

/* Parses "auto", "eager" or "never".  False: the text is none of them. */
bool vs_policy_parse(const char *text, enum vs_policy *out);

#define VS_BAD_MAX 128
/*
 * Adds the entries of the text to those that are there.  0; or -EINVAL, -E2BIG, and `bad` (VS_BAD_MAX bytes) has the
 * part that is wrong; or -ENOMEM, with "" there.  The entries before it stay.
 */
int vs_rules_parse(struct vs_rules *r, const char *text, char *bad);
int vs_map_parse(struct vs_rules *r, const char *text, char *bad);

/*
 * The policy of a connection: the first rule that fits decides, else `otherwise`.  A rule's address is compared with
 * the peer's; its port may be that of either end.
 */
enum vs_policy vs_rules_policy(const struct vs_rules *r, const char *program,
			       const struct vs_addr *peer, const struct vs_addr *local,
			       enum vs_policy otherwise);

/*
 * The name of the host at an address: from the map, or the number of an emulated host, whose address is
 * 127.77.0.0 plus number plus 1.  False: unknown here; the fabric may know it by an alias.
 */
bool vs_map_host(const struct vs_rules *r, const struct vs_addr *a, char host[VS_NAME_MAX]);

/* The address of an emulated host, with port 0.  False: there is none for that number. */
bool vs_emulated_addr(unsigned int host, struct vs_addr *out);

#endif
