/* SPDX-License-Identifier: BSD-2-Clause */
#include "ag_profile.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "port_model.h"
#include "u_base.h"

#define SHOWN 40

/* One LINK=PROFILE of the text. */
struct item {
	unsigned int host;
	unsigned int peer;	/* of A-B */
	char port[RT_NAME_MAX]; /* of A.PORT; "": it is A-B */
	char profile[PORT_KIND_MAX];
	int shown; /* characters of the text that a message repeats */
	const char *text;
};

/* Reads a number of one to four digits.  Returns the text after it, or NULL. */
static const char *read_host(const char *at, unsigned int *out)
{
	size_t n = strspn(at, "0123456789");

	if (n == 0 || n > 4)
		return NULL;
	*out = 0;
	for (size_t i = 0; i < n; i++)
		*out = *out * 10 + (unsigned int)(at[i] - '0');
	return at + n;
}

/* Copies the text up to any of `ends` or its end.  Returns the text after that, or NULL: it is empty or too long. */
static const char *read_word(const char *at, const char *ends, char *out, size_t size)
{
	size_t n = strcspn(at, ends);

	if (n == 0 || n >= size)
		return NULL;
	memcpy(out, at, n);
	out[n] = '\0';
	return at + n;
}

/* Reads the item at *text, and moves *text to the next one or to the end.  False: it is none. */
static bool read_item(const char **text, struct item *out)
{
	const char *at = read_host(*text, &out->host);
	size_t len = strcspn(*text, ",");

	out->text = *text;
	out->shown = len < SHOWN ? (int)len : SHOWN;
	out->port[0] = '\0';
	if (at != NULL && *at == '-')
		at = read_host(at + 1, &out->peer);
	else if (at != NULL && *at == '.')
		at = read_word(at + 1, "=,", out->port, sizeof(out->port));
	else
		return false;
	if (at == NULL || *at != '=')
		return false;
	at = read_word(at + 1, ",", out->profile, sizeof(out->profile));
	if (at == NULL || (*at == ',' && at[1] == '\0'))
		return false;
	*text = at + (*at == ',');
	return true;
}

/* Does the item name that end of a link? */
static bool names_end(const struct rt_topo *t, const struct item *i, struct rt_end end)
{
	struct rt_end other = rt_topo_peer(t, end.host, end.port);

	if (end.port == RT_PORT_SELF)
		return false;
	if (i->port[0] != '\0')
		return end.host == i->host &&
		       strcmp(rt_topo_port_name(t, end.host, end.port), i->port) == 0;
	return (end.host == i->host && other.host == i->peer) ||
	       (end.host == i->peer && other.host == i->host);
}

/* Writes a message that begins with the item.  Returns -EINVAL. */
static int U_PRINTF(4, 5)
	complain(const struct item *i, char *why, size_t size, const char *fmt, ...)
{
	int n = snprintf(why, size, "%.*s: ", i->shown, i->text);
	va_list ap;

	va_start(ap, fmt);
	if (n >= 0 && (size_t)n < size)
		vsnprintf(why + n, size - (size_t)n, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* Says that the item names no end of a link. */
static int complain_link(const struct rt_topo *t, const struct item *i, char *why, size_t size)
{
	char ports[RT_PORTS_MAX * (RT_NAME_MAX + 2)] = "none";
	size_t at = 0;

	if (i->port[0] == '\0')
		return complain(
			i, why, size,
			"hosts %u and %u of this fabric of %u are not joined by a link; name two that are",
			i->host, i->peer, rt_hosts(t));
	if (i->host >= rt_hosts(t))
		return complain(i, why, size, "there is no host %u; use 0 to %u", i->host,
				rt_hosts(t) - 1);
	for (unsigned int p = 1; p < rt_topo_ports(t, i->host); p++)
		at += (size_t)snprintf(ports + at, sizeof(ports) - at, "%s%s", p > 1 ? ", " : "",
				       rt_topo_port_name(t, i->host, p));
	return complain(i, why, size, "host %u has no port %s; it has %s", i->host, i->port, ports);
}

/* Marks the ends that the item names; -EINVAL when there is none, or one that has a profile already. */
static int mark_ends(const struct rt_topo *t, const struct item *i, uint8_t *marked, char *why,
		     size_t size)
{
	unsigned int found = 0;

	for (unsigned int host = 0; host < rt_hosts(t); host++) {
		for (unsigned int port = 1; port < rt_topo_ports(t, host); port++) {
			if (!names_end(t, i, (struct rt_end){ (uint16_t)host, (uint8_t)port }))
				continue;
			if ((marked[host] & 1u << port) != 0)
				return complain(
					i, why, size,
					"port %s of host %u has a profile already; name each end once",
					rt_topo_port_name(t, host, port), host);
			marked[host] |= (uint8_t)(1u << port);
			found++;
		}
	}
	return found > 0 ? 0 : complain_link(t, i, why, size);
}

/* Can ports of that kind have the profile?  0 or -EINVAL. */
static int check_profile(const struct item *i, const char *kind, char *why, size_t size)
{
	const struct port_model_profile *profile = port_model_profile_find(i->profile);
	char made[PORT_KIND_MAX], names[PORT_MODEL_NAMES_MAX];

	if (profile == NULL)
		return complain(i, why, size, "there is no such profile; use one of %s",
				port_model_profile_names(names));
	if (port_kind_profile(kind, i->profile, made) == 0)
		return 0;
	if (strstr(kind, "+model") == NULL)
		return complain(i, why, size,
				"ports of kind %s have no model; use a kind such as emu+model",
				kind);
	return complain(
		i, why, size,
		"ports of kind %s have more dilation than this slow link allows; use up to %u",
		kind, port_model_dilation_max(profile));
}

int ag_profile_check(const struct rt_topo *t, const char *kind, const char *profiles, char *why,
		     size_t size)
{
	uint8_t marked[RT_HOSTS_MAX] = { 0 };
	const char *at = profiles != NULL ? profiles : "";
	struct item item;
	int rc = 0;

	_Static_assert(RT_PORTS_MAX <= 8, "a bit of `marked` for each port");
	while (rc == 0 && *at != '\0') {
		if (!read_item(&at, &item))
			return complain(&item, why, size,
					"LINK=PROFILE expected, as in 0-1=pex8733 for both ends or "
					"0.right=pex8733 for one");
		rc = check_profile(&item, kind, why, size);
		if (rc == 0)
			rc = mark_ends(t, &item, marked, why, size);
	}
	return rc;
}

int ag_profile_apply(const struct rt_topo *t, const char *profiles, struct rt_end port,
		     char kind[PORT_KIND_MAX])
{
	const char *at = profiles != NULL ? profiles : "";
	struct item item;

	while (*at != '\0') {
		if (!read_item(&at, &item))
			return -EINVAL;
		if (names_end(t, &item, port))
			return port_kind_profile(kind, item.profile, kind);
	}
	return 0;
}
