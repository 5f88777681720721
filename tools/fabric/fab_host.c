/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>

#include "fab_host.h"
#include "fab_say.h"

int fab_open(const struct fabric *f, unsigned int host, struct cl_agent *out, char *error)
{
	return cl_open_host(f->owner, f->name, host, W_KIND_TOOL, out, error);
}

int fab_open_any(const struct fabric *f, struct cl_agent *out, char *error)
{
	int rc = cl_open_some(f->owner, f->name, out, error);

	if (rc != -ENODEV && rc != -EPIPE)
		return rc;
	fab_not_up(f, error);
	return -ENODEV;
}

/* Reads a host's number, or its default name, for when no agent answers that knows the names. */
static int host_by_itself(const char *name, unsigned int *out)
{
	unsigned int host;
	char end;

	if (sscanf(name, "host%u%c", &host, &end) != 1 && sscanf(name, "%u%c", &host, &end) != 1)
		return -ENOENT;
	if (host >= CL_HOSTS_MAX)
		return -ENOENT;
	*out = host;
	return 0;
}

int fab_host_number(const struct fabric *f, const char *name, unsigned int *out, char *error)
{
	struct cl_agent agent;
	struct w_name found;
	int rc = fab_open_any(f, &agent, error);

	if (rc == -ETIMEDOUT && host_by_itself(name, out) == 0)
		return 0;
	if (rc != 0)
		return rc;
	rc = cl_name(&agent, name, 0, &found);
	if (rc == 0)
		*out = (unsigned int)found.host_addr[4] << 8 | found.host_addr[5];
	else
		snprintf(error, CL_ERROR_MAX,
			 "fabric %s has no host %.60s; vi_fabric status lists them", f->name, name);
	cl_close(&agent);
	return rc;
}

int fab_agent_path(char *path, size_t size)
{
	int rc = cl_agent_path(path, size);

	if (rc == 0)
		return EXIT_OK;
	return fab_fail(rc == -EPERM ? "VIADUCT_AGENT=none forbids to start agents"
				     : "viaductd was not found; set VIADUCT_AGENT to its path");
}
