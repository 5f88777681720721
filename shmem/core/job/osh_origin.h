/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which fabric a PE is on.  Host addresses do not tell: host 0 is the first of each fabric, and of each machine that
 * has a fabric of its own.  Agents listen in a name space of networks, by the names of user and fabric.
 */
#ifndef OSH_ORIGIN_H
#define OSH_ORIGIN_H

#include <stdbool.h>
#include <stdint.h>

#define OSH_ORIGIN_TEXT 86

struct osh_origin {
	uint64_t machine[2]; /* drawn at its start; 0: not known */
	uint64_t network;    /* the name space; 0: not known */
	uint32_t user;
	char name[24];	 /* of the machine, maybe cut, for people */
	char fabric[96]; /* VIADUCT_FABRIC: [USER:]NAME */
};

/* Fills *o for this process; what cannot be found out stays 0. Without VIADUCT_FABRIC the fabric is "default". */
void osh_origin_read(struct osh_origin *o);

/*
 * May PEs of these two be on one fabric? `same_host`: their host addresses are equal. Between machines fabrics of
 * adapters are taken to be one. True also where one of them is not known.
 */
bool osh_origins_agree(const struct osh_origin *a, const struct osh_origin *b, bool same_host);

/*
 * Writes the fabric, user, machine and network of `o` for people.  Control characters become "?", since `o` may come
 * from another PE.
 */
void osh_origin_text(const struct osh_origin *o, char text[OSH_ORIGIN_TEXT]);

#endif
