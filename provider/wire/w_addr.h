/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The addresses at which agents listen: abstract Unix addresses, so that nothing is left in any
 * directory when a process dies.  Both sides check the other's credentials, because anybody may
 * bind such a name.
 *
 *	viaduct/<owner uid>/<fabric>/host<id>	 the agent of a host
 *	viaduct/<owner uid>/<fabric>/cable<id>.<port> emulated cable of one of its ports
 *
 * A fabric whose name ends with a secret, "-" and W_SECRET_DIGITS hexadecimal digits, has addresses
 * from which its other addresses cannot be computed, so that nobody can bind one before its agent
 * does:
 *
 *	viaduct/<owner uid>/<hash of the above, keyed with the secret>
 */
#ifndef W_ADDR_H
#define W_ADDR_H

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

/*
 * Splits VIADUCT_FABRIC ("name" or "owner:name", owner a user name or number) into owner and name; without an
 * owner it is the effective user.  Returns 0, -EINVAL (bad characters, too long) or -ENOENT (no such user), and
 * then sets neither.
 */
int w_fabric_parse(const char *text, uid_t *owner_out, char name_out[64]);

/* Does `name` consist of 1 to 63 of [A-Za-z0-9._-], as names of fabrics, hosts and aliases do? */
int w_name_ok(const char *name);

#define W_SECRET_DIGITS 32u

/*
 * Does the name end with a secret?  If so, processes get it by their environment, which other users cannot read, and
 * not by their arguments.
 */
int w_name_secret(const char *name);

socklen_t w_agent_addr(struct sockaddr_un *un, uid_t owner, const char *fabric, unsigned int host);
socklen_t w_cable_addr(struct sockaddr_un *un, uid_t owner, const char *fabric, unsigned int host,
		       unsigned int port);

/*
 * Checks that the agent at the other end of `sock` runs as the fabric's owner or as root: returns 0 or -EPERM,
 * also if that cannot be found out.
 */
int w_agent_cred_check(int sock, uid_t owner);

#endif
