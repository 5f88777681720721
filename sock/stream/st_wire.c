/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "st_wire.h"

/* False: no honest end greets with such a ring. */
static bool ring_is_sound(const struct st_message *m)
{
	uint32_t bytes = m->hello.ring_bytes;

	return bytes >= ST_RING_LEAST && bytes <= ST_RING_MOST && (bytes & (bytes - 1)) == 0 &&
	       m->hello.ring % 16 == 0 && m->hello.ring <= UINT64_MAX - bytes &&
	       m->hello.words % 8 == 0 && m->hello.words <= UINT64_MAX - sizeof(struct st_words) &&
	       m->hello.handle != 0 && m->hello.handle != UINT32_MAX && m->hello.key >> 63 == 1;
}

int st_message_check(const struct st_message *m, size_t bytes)
{
	if (bytes != sizeof(*m) || m->magic != ST_WIRE_MAGIC)
		return -EPROTO;
	if (m->version != ST_WIRE_VERSION)
		return -EPROTONOSUPPORT;
	if (m->reserved != 0 || m->kind < ST_MSG_HELLO || m->kind > ST_MSG_BACK)
		return -EPROTO;
	if (m->kind == ST_MSG_HELLO && !ring_is_sound(m))
		return -EPROTO;
	return m->kind;
}

struct st_token st_mark(uint64_t key, uint64_t written)
{
	return (struct st_token){ { key, ~written } };
}

/* Writes 16 bytes of address, IPv4 as a mapped one, and 2 of port; -EOPNOTSUPP: neither IPv4 nor IPv6. */
static int put_address(const struct sockaddr_storage *from, uint8_t *out)
{
	const struct sockaddr_in6 *six = (const void *)from;
	const struct sockaddr_in *four = (const void *)from;

	if (from->ss_family == AF_INET6) {
		memcpy(out, &six->sin6_addr, 16);
		memcpy(out + 16, &six->sin6_port, 2);
	} else if (from->ss_family == AF_INET) {
		memset(out, 0, 10);
		memset(out + 10, 0xff, 2);
		memcpy(out + 12, &four->sin_addr, 4);
		memcpy(out + 16, &four->sin_port, 2);
	} else {
		return -EOPNOTSUPP;
	}
	return 0;
}

int st_discriminator(const struct st_origin *o, enum st_role role,
		     uint8_t out[ST_DISCRIMINATOR_BYTES])
{
	bool connector = o->role == ST_CONNECTOR;
	uint8_t *first = out + 3, *second = out + 21;

	memcpy(out, "s1", 2);
	out[2] = (uint8_t)role;
	if (put_address(&o->local, connector ? first : second) != 0 ||
	    put_address(&o->remote, connector ? second : first) != 0)
		return -EOPNOTSUPP;
	return memcmp(first, second, 18) == 0 ? -EOPNOTSUPP : 0;
}
