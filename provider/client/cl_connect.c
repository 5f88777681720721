/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the host that a device names, and finds or starts its agent. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cl_priv.h"
#include "u_cfg.h"
#include "u_time.h"

#define ATTEMPTS 5 /* an agent started on demand may end just before it is greeted */

/*
 * Starts the agent of host 0 on demand, if the fabric is the caller's own, and waits until it listens.  0, also
 * when another agent listens there by now; or -errno, and `error` says why.
 */
static int start_agent(const struct cl_where *w, char *error)
{
	const char *named[] = { "--on-demand", "--fabric", w->fabric, NULL };
	/* A secret is already in the environment, and must not be in arguments. */
	const char *secret[] = { "--on-demand", NULL };
	char path[4096];
	int rc;

	if (w->owner != geteuid()) {
		cl_error(error, "fabric %s of uid %u has no agent and only its owner may start one",
			 w->fabric, (unsigned int)w->owner);
		return -ENODEV;
	}
	rc = cl_agent_path(path, sizeof(path));
	if (rc == -EPERM) {
		cl_error(error,
			 "fabric %s has no agent and VIADUCT_AGENT=none forbids to start one; use "
			 "vi_fabric up",
			 w->fabric);
		return -ENODEV;
	}
	if (rc != 0) {
		cl_error(error,
			 "fabric %s has no agent and viaductd was not found (%s); set "
			 "VIADUCT_AGENT to its path",
			 w->fabric,
			 u_cfg_str(U_CFG_AGENT)[0] != '\0' ? u_cfg_str(U_CFG_AGENT)
							   : VIADUCTD_PATH);
		return -ENODEV;
	}
	rc = cl_spawn(path, w_name_secret(w->fabric) ? secret : named, error);
	return rc < 0 ? rc : 0;
}

/*
 * Connects to any running agent of the fabric, or starts that of host 0 and connects to it, with some attempts.  0 or
 * -errno of cl_open_any() or start_agent(), and `error` says why.
 */
static int open_or_start(const struct cl_where *w, unsigned int first, struct cl_agent *out,
			 char *error)
{
	int i, rc = -ENODEV;

	for (i = 0; i < ATTEMPTS; i++) {
		rc = cl_open_any(w, first, out, error);
		if (rc != -ENODEV && rc != -EPIPE)
			return rc;
		rc = start_agent(w, error);
		if (rc != 0)
			return rc;
		rc = cl_open_at(w, 0, out, error);
		if (rc != -ENODEV && rc != -EPIPE)
			return rc;
	}
	return rc;
}

/* Finds the host of a device in VIADUCT_DEVICE ("NAME=HOST,..."), as the text that stands there.  0 or -ENOENT. */
static int device_alias(const char *device, char host_out[W_NAME_MAX])
{
	const char *at = u_cfg_str(U_CFG_DEVICE);
	size_t len, name = strlen(device);

	while (at != NULL && *at != '\0') {
		len = strcspn(at, ",");
		if (len > name + 1 && at[name] == '=' && memcmp(at, device, name) == 0 &&
		    len - name - 1 < W_NAME_MAX) {
			memcpy(host_out, at + name + 1, len - name - 1);
			host_out[len - name - 1] = '\0';
			return 0;
		}
		at += len;
		at += *at == ',';
	}
	return -ENOENT;
}

/* Asks the agent for the id of the host of that name; `index` as for cl_name().  0, -ENOENT or another error of it. */
static int host_of_name(struct cl_agent *agent, const char *name, uint32_t index,
			unsigned int *host_out)
{
	struct w_name found;
	int rc = cl_name(agent, name, index, &found);

	if (rc == 0)
		*host_out = (unsigned int)found.host_addr[4] << 8 | found.host_addr[5];
	return rc;
}

/* Writes the error line for a failed request.  Returns -EPIPE and -ETIMEDOUT as they are, else -EHOSTDOWN. */
static int no_answer(struct cl_agent *agent, int rc, char *error)
{
	cl_error(error, "the agent of host %u did not answer: %s", agent->welcome.host_id,
		 strerror(-rc));
	return rc == -EPIPE || rc == -ETIMEDOUT ? rc : -EHOSTDOWN;
}

/*
 * Writes the error line for a look-up of `name`, from that variable, that failed with `rc`.  Returns -ENODEV if the
 * host is unknown, rc being -ENOENT, else as no_answer().
 */
static int no_such_host(struct cl_agent *agent, const char *variable, const char *name, int rc,
			char *error)
{
	if (rc != -ENOENT)
		return no_answer(agent, rc, error);
	cl_error(error,
		 "%s names host %s; fabric %s has %u host%s and none is called so (vi_info "
		 "lists them)",
		 variable, name, agent->welcome.fabric, agent->welcome.host_count,
		 agent->welcome.host_count == 1 ? "" : "s");
	return -ENODEV;
}

/*
 * Asks `agent` for the host that `device` names, the default NIC where it names none.  0; -EPIPE or -ETIMEDOUT: another
 * agent has to be asked; -ENODEV: no such device or host; or -EHOSTDOWN.  `error` then says why; `agent` stays open.
 */
static int resolve(struct cl_agent *agent, const char *device, unsigned int *host_out, char *error)
{
	const char *chosen = u_cfg_str(U_CFG_HOST);
	char host[W_NAME_MAX];
	int rc;

	if (device != NULL && device[0] != '\0') {
		if (device_alias(device, host) == 0) {
			rc = host_of_name(agent, host, 0, host_out);
			return rc == 0 ? 0 : no_such_host(agent, "VIADUCT_DEVICE", host, rc, error);
		}
		rc = host_of_name(agent, device, W_NAME_DEVICE, host_out);
		if (rc != -ENOENT)
			return rc == 0 ? 0 : no_answer(agent, rc, error);
		if (u_cfg_uint(U_CFG_DEFAULT_NIC) == 0) {
			cl_error(error,
				 "device %.60s is neither an alias nor a host of fabric %s and "
				 "VIADUCT_DEFAULT_NIC=no; use vi_fabric device or VIADUCT_DEVICE",
				 device, agent->welcome.fabric);
			return -ENODEV;
		}
	}
	*host_out = 0;
	if (chosen == NULL || chosen[0] == '\0')
		return 0;
	rc = host_of_name(agent, chosen, 0, host_out);
	return rc == 0 ? 0 : no_such_host(agent, "VIADUCT_HOST", chosen, rc, error);
}

/*
 * Returns the host to connect to first, mostly the right one, so that one connection is enough: the number in
 * VIADUCT_HOST if it is one below CL_HOSTS_MAX, else 0.
 */
static unsigned int likely_host(void)
{
	const char *text = u_cfg_str(U_CFG_HOST);
	unsigned int host = 0;
	char end;

	if (text != NULL && sscanf(text, "%u%c", &host, &end) == 1 && host < CL_HOSTS_MAX)
		return host;
	return 0;
}

/*
 * Turns an error of connecting into the one for callers: 0, -EMFILE, -ENFILE, -ENOMEM and -EPROTONOSUPPORT stay, all
 * others become -EHOSTDOWN: the error text has the reason, which they need not tell apart.
 */
static int no_agent(int rc)
{
	switch (rc) {
	case 0:
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
	case -EPROTONOSUPPORT:
		return rc;
	default:
		return -EHOSTDOWN;
	}
}

/*
 * Asks any agent for the host that `device` names, and another one when it ends or stops before it has answered.  0,
 * and `out` is open, mostly but not always to the agent of that host; or an error of cl_open(), with its line, and it
 * is closed.
 */
static int open_resolved(const struct cl_where *w, const char *device, struct cl_agent *out,
			 unsigned int *host_out, char *error)
{
	int64_t deadline = u_deadline_ms(2 * CL_TIMEOUT_MS);
	int i, rc = -EPIPE;

	for (i = 0; i < ATTEMPTS && (rc == -EPIPE || rc == -ETIMEDOUT); i++) {
		if (i > 0 && u_time_left(deadline) == 0)
			break;
		rc = no_agent(open_or_start(w, likely_host(), out, error));
		if (rc != 0)
			return rc;
		rc = resolve(out, device, host_out, error);
		if (rc != 0)
			cl_close(out);
	}
	return rc == -EPIPE || rc == -ETIMEDOUT ? -EHOSTDOWN : rc;
}

int cl_open(const char *device, uint32_t kind, struct cl_agent *out, char *error)
{
	struct cl_where w = { .kind = kind };
	struct cl_agent agent;
	unsigned int host = 0;
	int rc;

	out->sock = out->doorbells_fd = out->status_fd = -1;
	if (u_cfg_load() != 0) {
		cl_error(error, "a VIADUCT_ variable has a bad value; the log says which");
		return -EINVAL;
	}
	rc = w_fabric_parse(u_cfg_str(U_CFG_FABRIC), &w.owner, w.fabric);
	if (rc != 0) {
		cl_error(error, "VIADUCT_FABRIC=%.80s: %s", u_cfg_str(U_CFG_FABRIC),
			 rc == -ENOENT ? "there is no user of the name before the colon"
				       : "NAME or OWNER:NAME expected");
		return -EINVAL;
	}
	rc = open_resolved(&w, device, &agent, &host, error);
	if (rc != 0)
		return rc;
	if (host == agent.welcome.host_id) {
		*out = agent;
		return 0;
	}
	cl_close(&agent);
	return no_agent(cl_open_at(&w, host, out, error));
}
