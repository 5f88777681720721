/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of fabrics and the abstract socket addresses made of them. */
#include "w_addr.h"

#include <errno.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "u_siphash.h"

#define FABRIC_MAX 64u

static int name_char_ok(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '.' || c == '_' || c == '-';
}

int w_name_ok(const char *name)
{
	size_t n;

	for (n = 0; name[n] != '\0'; n++) {
		if (n >= FABRIC_MAX - 1 || !name_char_ok(name[n]))
			return 0;
	}
	return n > 0;
}

/* Returns the digits of the secret with which the name ends, or NULL. */
static const char *secret_of(const char *name)
{
	size_t n = strlen(name);
	const char *digits;

	if (n <= W_SECRET_DIGITS)
		return NULL;
	digits = name + n - W_SECRET_DIGITS;
	return digits[-1] == '-' && strspn(digits, "0123456789abcdef") == W_SECRET_DIGITS ? digits
											  : NULL;
}

int w_name_secret(const char *name)
{
	return secret_of(name) != NULL;
}

/* Finds the id of a user given by number or name.  0, -EINVAL (not a number) or -ENOENT (no such user). */
static int owner_parse(const char *text, uid_t *owner_out)
{
	struct passwd entry, *found = NULL;
	char buf[4096];
	char *end;
	unsigned long number;

	if (text[0] >= '0' && text[0] <= '9') {
		errno = 0;
		number = strtoul(text, &end, 10);
		if (errno != 0 || *end != '\0' || number >= UINT32_MAX)
			return -EINVAL;
		*owner_out = (uid_t)number;
		return 0;
	}
	if (getpwnam_r(text, &entry, buf, sizeof(buf), &found) != 0 || found == NULL)
		return -ENOENT;
	*owner_out = entry.pw_uid;
	return 0;
}

int w_fabric_parse(const char *text, uid_t *owner_out, char name_out[64])
{
	const char *colon = strchr(text, ':');
	const char *name = colon != NULL ? colon + 1 : text;
	uid_t owner = geteuid();
	char user[FABRIC_MAX];
	size_t len;
	int rc = 0;

	if (!w_name_ok(name))
		return -EINVAL;
	if (colon != NULL) {
		len = (size_t)(colon - text);
		if (len == 0 || len >= sizeof(user))
			return -EINVAL;
		memcpy(user, text, len);
		user[len] = '\0';
		rc = w_name_ok(user) ? owner_parse(user, &owner) : -EINVAL;
		if (rc != 0)
			return rc;
	}
	*owner_out = owner;
	snprintf(name_out, FABRIC_MAX, "%s", name);
	return 0;
}

/*
 * Replaces an address that others could guess, without its leading NUL, by its keyed hash.  Returns the new
 * length.
 */
static int addr_hide(char *path, size_t size, uid_t owner, const char *secret)
{
	uint8_t key[W_SECRET_DIGITS / 2];
	unsigned int i, byte;

	for (i = 0; i < sizeof(key); i++) {
		sscanf(secret + 2 * i, "%2x", &byte);
		key[i] = (uint8_t)byte;
	}
	return snprintf(path, size, "viaduct/%u/%016llx", (unsigned int)owner,
			(unsigned long long)u_siphash(key, path, strlen(path)));
}

/*
 * Fills in an abstract address, hidden if the fabric's name has a secret.  Returns its length for bind() and
 * connect().
 */
static socklen_t addr_fill(struct sockaddr_un *un, uid_t owner, const char *fabric,
			   const char *what, unsigned int host)
{
	const char *secret = secret_of(fabric);
	int n;

	memset(un, 0, sizeof(*un));
	un->sun_family = AF_UNIX;
	n = snprintf(un->sun_path + 1, sizeof(un->sun_path) - 1, "viaduct/%u/%.63s/%s%u",
		     (unsigned int)owner, fabric, what, host);
	if (secret != NULL)
		n = addr_hide(un->sun_path + 1, sizeof(un->sun_path) - 1, owner, secret);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
}

/* Fills in the address at which the agent of a host listens, and returns its length. */
socklen_t w_agent_addr(struct sockaddr_un *un, uid_t owner, const char *fabric, unsigned int host)
{
	return addr_fill(un, owner, fabric, "host", host);
}

/* Fills in the address at which the cable of a port is awaited, and returns its length. */
socklen_t w_cable_addr(struct sockaddr_un *un, uid_t owner, const char *fabric, unsigned int host,
		       unsigned int port)
{
	char what[24];

	snprintf(what, sizeof(what), "cable%u.", host);
	return addr_fill(un, owner, fabric, what, port);
}

int w_agent_cred_check(int sock, uid_t owner)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) != 0)
		return -EPERM;
	return cred.uid == owner || cred.uid == 0 ? 0 : -EPERM;
}
