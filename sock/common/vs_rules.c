// SPDX-License-Identifier: BSD-2-Clause
#include "vs_rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fnmatch.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMULATED_NET 0x7f4d0000u /* 127.77.0.0/16 */
#define EMULATED_HOSTS 65534u

static const uint8_t v4_prefix[12] = { [10] = 0xff, [11] = 0xff };

/* ---- addresses ---- */

static void set_v4(struct vs_addr *a, uint32_t addr_be)
{
	memcpy(a->b, v4_prefix, sizeof(v4_prefix));
	memcpy(a->b + 12, &addr_be, 4);
}

bool vs_addr_of(const struct sockaddr *a, socklen_t alen, struct vs_addr *out)
{
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;

	if (!a || alen < sizeof(a->sa_family))
		return false;
	if (a->sa_family == AF_INET && alen >= sizeof(v4)) {
		memcpy(&v4, a, sizeof(v4));
		set_v4(out, v4.sin_addr.s_addr);
		out->port = ntohs(v4.sin_port);
		return true;
	}
	if (a->sa_family == AF_INET6 && alen >= sizeof(v6)) {
		memcpy(&v6, a, sizeof(v6));
		memcpy(out->b, &v6.sin6_addr, sizeof(out->b));
		out->port = ntohs(v6.sin6_port);
		return true;
	}
	return false;
}

bool vs_addr_is_v4(const struct vs_addr *a)
{
	return memcmp(a->b, v4_prefix, sizeof(v4_prefix)) == 0;
}

/* The last four bytes, which are the IPv4 address of one that has it, in the processor's byte order. */
static uint32_t v4_number(const struct vs_addr *a)
{
	uint32_t be;

	memcpy(&be, a->b + 12, sizeof(be));
	return ntohl(be);
}

/* True: the address is that of an emulated host, in 127.77.0.0/16. */
static bool is_emulated(const struct vs_addr *a)
{
	return vs_addr_is_v4(a) && (v4_number(a) & 0xffff0000u) == EMULATED_NET &&
	       (v4_number(a) & 0xffffu) - 1 < EMULATED_HOSTS;
}

bool vs_addr_is_loopback(const struct vs_addr *a)
{
	static const uint8_t one[16] = { [15] = 1 };

	if (vs_addr_is_v4(a))
		return a->b[12] == 127 && !is_emulated(a);
	return memcmp(a->b, one, sizeof(one)) == 0;
}

bool vs_addr_is_any(const struct vs_addr *a)
{
	static const uint8_t zero[16];

	return memcmp(a->b, zero, 16) == 0 || (vs_addr_is_v4(a) && memcmp(a->b + 12, zero, 4) == 0);
}

void vs_addr_make(struct sockaddr_storage *out, sa_family_t family, const struct vs_addr *a,
		  uint16_t port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	out->ss_family = family;
	if (family == AF_INET) {
		v4->sin_port = htons(port);
		memcpy(&v4->sin_addr, a->b + 12, 4);
	} else {
		v6->sin6_port = htons(port);
		memcpy(&v6->sin6_addr, a->b, 16);
	}
}

void vs_addr_text(const struct vs_addr *a, char *text, size_t size)
{
	const char *done = vs_addr_is_v4(a) ? inet_ntop(AF_INET, a->b + 12, text, (socklen_t)size)
					    : inet_ntop(AF_INET6, a->b, text, (socklen_t)size);

	if (!done && size > 0)
		text[0] = '\0';
}

bool vs_emulated_addr(unsigned int host, struct vs_addr *out)
{
	if (host >= EMULATED_HOSTS)
		return false;
	set_v4(out, htonl(EMULATED_NET + host + 1));
	out->port = 0;
	return true;
}

/* ---- text ---- */

bool vs_policy_parse(const char *text, enum vs_policy *out)
{
	static const char *const words[] = {
		[VS_NEVER] = "never", [VS_AUTO] = "auto", [VS_EAGER] = "eager"
	};
	size_t i;

	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcmp(text, words[i]) == 0) {
			*out = (enum vs_policy)i;
			return true;
		}
	}
	return false;
}

/* False: the text is no decimal number, or above `max`. */
static bool parse_number(const char *text, unsigned long max, unsigned long *out)
{
	char *end;

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*out = strtoul(text, &end, 10);
	return errno == 0 && *end == '\0' && *out <= max;
}

/*
 * ADDRESS or ADDRESS/BITS.  `bits` counts in the form of IPv6, so 96 more for IPv4; 128 without BITS.  Changes the
 * text; false: it is none.
 */
static bool parse_addr(char *text, struct vs_addr *a, unsigned int *bits)
{
	char *slash = strchr(text, '/');
	unsigned long n = 128;
	uint32_t v4;

	if (slash)
		*slash = '\0';
	if (inet_pton(AF_INET, text, &v4) == 1) {
		set_v4(a, v4);
		if (slash && !parse_number(slash + 1, 32, &n))
			return false;
		*bits = slash ? 96 + (unsigned int)n : 128;
		return true;
	}
	if (inet_pton(AF_INET6, text, a->b) != 1 || (slash && !parse_number(slash + 1, 128, &n)))
		return false;
	*bits = (unsigned int)n;
	return true;
}

/* N or N-M, of which M is not below N.  Changes the text. */
static bool parse_ports(char *text, uint16_t *min, uint16_t *max)
{
	char *dash = strchr(text, '-');
	unsigned long from, to;

	if (dash)
		*dash = '\0';
	if (!parse_number(text, 65535, &from))
		return false;
	to = from;
	if (dash && (!parse_number(dash + 1, 65535, &to) || to < from))
		return false;
	*min = (uint16_t)from;
	*max = (uint16_t)to;
	return true;
}

/* Cuts blanks off both ends, within the text.  Returns where it begins now. */
static char *trim(char *text)
{
	char *end;

	text += strspn(text, " \t\n");
	end = text + strlen(text);
	while (end > text && strchr(" \t\n", end[-1]))
		end--;
	*end = '\0';
	return text;
}

/* One condition of a rule: program=, address= or port=.  False: the word is none, or has a bad value. */
static bool parse_word(struct vs_rule *rule, char *word)
{
	if (strncmp(word, "program=", 8) == 0) {
		if (word[8] == '\0' || strlen(word + 8) >= sizeof(rule->program))
			return false;
		strcpy(rule->program, word + 8);
		return true;
	}
	if (strncmp(word, "address=", 8) == 0)
		return parse_addr(word + 8, &rule->addr, &rule->bits);
	if (strncmp(word, "port=", 5) == 0)
		return parse_ports(word + 5, &rule->port_min, &rule->port_max);
	return false;
}

/* [program=PATTERN,][address=ADDRESS[/BITS],][port=N[-M],]POLICY.  Changes the text; false: it is none. */
static bool parse_rule(struct vs_rule *rule, char *text)
{
	char *word, *next = text;

	memset(rule, 0, sizeof(*rule));
	rule->port_max = UINT16_MAX;
	while ((word = strsep(&next, ",")) != NULL) {
		word = trim(word);
		if (!next)
			return vs_policy_parse(word, &rule->policy);
		if (!parse_word(rule, word))
			return false;
	}
	return false;
}

/* ADDRESS[/BITS] HOST.  Changes the text; false: it is none. */
static bool parse_entry(struct vs_map_entry *e, char *text)
{
	size_t n = strcspn(text, " \t");
	char *host;

	if (text[n] == '\0')
		return false;
	text[n] = '\0';
	host = trim(text + n + 1);
	if (host[0] == '\0' || strlen(host) >= sizeof(e->host) || strpbrk(host, " \t"))
		return false;
	strcpy(e->host, host);
	return parse_addr(text, &e->addr, &e->bits);
}

/*
 * Calls `one` for each part between semicolons that is not empty, until one fails: its error, 0 or -ENOMEM.  `bad` has
 * the last part.
 */
static int parse_parts(struct vs_rules *r, const char *text, char *bad,
		       int (*one)(struct vs_rules *r, char *part))
{
	char *copy = strdup(text), *next = copy, *part;
	int rc = copy ? 0 : -ENOMEM;

	bad[0] = '\0';
	while (rc == 0 && (part = strsep(&next, ";")) != NULL) {
		part = trim(part);
		if (part[0] == '\0')
			continue;
		snprintf(bad, VS_BAD_MAX, "%s", part);
		rc = one(r, part);
	}
	free(copy);
	return rc;
}

/* 0; -E2BIG: there are too many, -EINVAL: it is no rule. */
static int add_rule(struct vs_rules *r, char *part)
{
	if (r->rules == VS_RULES_MAX)
		return -E2BIG;
	return parse_rule(&r->rule[r->rules], part) ? (r->rules++, 0) : -EINVAL;
}

/* 0; -E2BIG: there are too many, -EINVAL: it is no entry of a map. */
static int add_entry(struct vs_rules *r, char *part)
{
	if (r->mapped == VS_MAP_MAX)
		return -E2BIG;
	return parse_entry(&r->map[r->mapped], part) ? (r->mapped++, 0) : -EINVAL;
}

int vs_rules_parse(struct vs_rules *r, const char *text, char *bad)
{
	return parse_parts(r, text, bad, add_rule);
}

int vs_map_parse(struct vs_rules *r, const char *text, char *bad)
{
	return parse_parts(r, text, bad, add_entry);
}

/* ---- decisions ---- */

/* True: the first `bits` bits of both addresses are the same. */
static bool same_net(const struct vs_addr *a, const struct vs_addr *net, unsigned int bits)
{
	unsigned int bytes = bits / 8, rest = bits % 8;

	if (memcmp(a->b, net->b, bytes) != 0)
		return false;
	return rest == 0 || ((a->b[bytes] ^ net->b[bytes]) >> (8 - rest)) == 0;
}

static bool port_fits(const struct vs_rule *rule, const struct vs_addr *a)
{
	return a->port >= rule->port_min && a->port <= rule->port_max;
}

enum vs_policy vs_rules_policy(const struct vs_rules *r, const char *program,
			       const struct vs_addr *peer, const struct vs_addr *local,
			       enum vs_policy otherwise)
{
	const struct vs_rule *rule;

	for (rule = r->rule; rule < r->rule + r->rules; rule++) {
		if (rule->program[0] && fnmatch(rule->program, program, 0) != 0)
			continue;
		if (same_net(peer, &rule->addr, rule->bits) &&
		    (port_fits(rule, peer) || port_fits(rule, local)))
			return rule->policy;
	}
	return otherwise;
}

bool vs_map_host(const struct vs_rules *r, const struct vs_addr *a, char host[VS_NAME_MAX])
{
	const struct vs_map_entry *e;

	for (e = r->map; e < r->map + r->mapped; e++) {
		if (same_net(a, &e->addr, e->bits)) {
			memcpy(host, e->host, VS_NAME_MAX);
			return true;
		}
	}
	if (!is_emulated(a))
		return false;
	snprintf(host, VS_NAME_MAX, "%u", (unsigned int)(v4_number(a) & 0xffff) - 1);
	return true;
}
