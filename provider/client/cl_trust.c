/* SPDX-License-Identifier: BSD-2-Clause */
/* Explains why a process that listens at an agent's address is not trusted. */
#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>

#include "cl_priv.h"

/*
 * Is this the id that stands for all users which the user namespace of this process does not map?  It may mean the
 * owner or anybody else.  False, too, if that cannot be read.
 */
static bool is_unmapped(uid_t uid)
{
	unsigned int overflow = 0, first, below, count;
	bool mapped = false;
	FILE *file = fopen("/proc/sys/kernel/overflowuid", "re");

	if (file == NULL)
		return false;
	if (fscanf(file, "%u", &overflow) != 1)
		overflow = 0;
	fclose(file);
	file = overflow == uid ? fopen("/proc/self/uid_map", "re") : NULL;
	if (file == NULL)
		return false;
	while (!mapped && fscanf(file, "%u %u %u", &first, &below, &count) == 3)
		mapped = uid >= first && uid - first < count;
	fclose(file);
	return !mapped;
}

int cl_distrust(const struct cl_where *w, unsigned int host, int sock, char *error)
{
	struct ucred cred = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(cred);

	getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len);
	if (is_unmapped(cred.uid))
		cl_error(
			error,
			"the user of pid %d, which listens as host %u of fabric %s, is not in the user "
			"name space of this process, so it cannot be trusted; start the program "
			"outside of it, or map uid %u there",
			(int)cred.pid, host, w->fabric, (unsigned int)w->owner);
	else
		cl_error(
			error,
			"uid %u, pid %d listens as host %u of fabric %s, which is neither uid %u nor root: "
			"not trusted; have that process ended, or choose another VIADUCT_FABRIC",
			(unsigned int)cred.uid, (int)cred.pid, host, w->fabric,
			(unsigned int)w->owner);
	return -EACCES;
}
