/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "osh_base.h"
#include "osh_origin.h"

/* Reads the number that the machine has drawn at its start; leaves `machine` as it is where there is none. */
static void read_machine(uint64_t machine[2])
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	unsigned long long part[5];

	if (file == NULL)
		return;
	if (fscanf(file, "%8llx-%4llx-%4llx-%4llx-%12llx", &part[0], &part[1], &part[2], &part[3],
		   &part[4]) == 5) {
		machine[0] = part[0] << 32 | part[1] << 16 | part[2];
		machine[1] = part[3] << 48 | part[4];
	}
	fclose(file);
}

void osh_origin_read(struct osh_origin *o)
{
	const char *fabric = secure_getenv("VIADUCT_FABRIC");
	struct stat st;

	memset(o, 0, sizeof(*o));
	read_machine(o->machine);
	if (stat("/proc/self/ns/net", &st) == 0)
		o->network = st.st_ino;
	o->user = geteuid();
	if (gethostname(o->name, sizeof(o->name) - 1) != 0)
		o->name[0] = '\0';
	snprintf(o->fabric, sizeof(o->fabric), "%s",
		 fabric != NULL && fabric[0] != '\0' ? fabric : "default");
}

/*
 * Are the names of the fabrics equal, and the users, where neither name has one? One of two users' names may be a
 * number: such are not compared.
 */
static bool same_fabric(const struct osh_origin *a, const struct osh_origin *b)
{
	const char *of_a = memchr(a->fabric, ':', sizeof(a->fabric)),
		   *of_b = memchr(b->fabric, ':', sizeof(b->fabric));

	if (of_a == NULL && of_b == NULL && a->user != b->user)
		return false;
	of_a = of_a == NULL ? a->fabric : of_a + 1;
	of_b = of_b == NULL ? b->fabric : of_b + 1;
	return strncmp(of_a, of_b,
		       osh_min((size_t)(a->fabric + sizeof(a->fabric) - of_a),
			       (size_t)(b->fabric + sizeof(b->fabric) - of_b))) == 0;
}

bool osh_origins_agree(const struct osh_origin *a, const struct osh_origin *b, bool same_host)
{
	if ((a->machine[0] | a->machine[1]) == 0 || (b->machine[0] | b->machine[1]) == 0 ||
	    a->network == 0 || b->network == 0)
		return true;
	if (memcmp(a->machine, b->machine, sizeof(a->machine)) != 0 || a->network != b->network)
		return !same_host;
	return same_fabric(a, b);
}

void osh_origin_text(const struct osh_origin *o, char text[OSH_ORIGIN_TEXT])
{
	snprintf(text, OSH_ORIGIN_TEXT, "fabric %.20s, uid %u, machine %.16s, network %llu",
		 o->fabric, o->user, o->name, (unsigned long long)o->network);
	for (char *c = text; *c != '\0'; c++) {
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	}
}
