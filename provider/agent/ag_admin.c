/* SPDX-License-Identifier: BSD-2-Clause */
/* Administration: links taken down and up, names added, the agent stopped. */
#include "ag_admin.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ag_client.h"
#include "ag_link.h"
#include "ag_links.h"
#include "ag_listing.h"
#include "ag_loop.h"
#include "ag_name.h"
#include "ag_state.h"
#include "u_log.h"
#include "w_addr.h"
#include "w_ctl.h"

/*
 * Takes the link of the port of that name up or down.  0, -ENOENT (`text` names the ports that there are) or
 * another -errno.
 */
static int admin_link(struct ag_agent *a, const char *name, bool up, char *text, size_t size)
{
	size_t at;
	uint32_t i;

	for (i = 1; i < a->link_count; i++) {
		if (strcmp(a->links[i].port->limits.name, name) == 0)
			return ag_links_admin(&a->links[i], up);
	}
	at = (size_t)snprintf(text, size, "host %u has no port %.32s with a link; it has",
			      a->cfg.host_id, name);
	for (i = 1; i < a->link_count && at < size; i++)
		at += (size_t)snprintf(text + at, size - at, "%s %s", i > 1 ? "," : "",
				       a->links[i].port->limits.name);
	if (a->link_count == 1)
		snprintf(text + at, size - at, " none");
	return -ENOENT;
}

/*
 * Adds or replaces the name of a host or device, given as NAME=HOST.  0, -EINVAL (`text` says why) or another
 * -errno.
 */
static int admin_alias(struct ag_agent *a, const struct w_admin *m, char *text, size_t size)
{
	bool device = m->verb == W_ADMIN_DEVICE;
	char name[sizeof(m->name)];
	char *host;
	int id;

	memcpy(name, m->name, sizeof(name));
	host = strrchr(name, '=');
	if (host == NULL) {
		snprintf(text, size, "NAME=HOST expected, found %.80s", name);
		return -EINVAL;
	}
	*host++ = '\0';
	id = ag_name_host(a, host);
	if (id < 0 || !(device ? ag_name_device_ok(name) : w_name_ok(name))) {
		snprintf(text, size, "%.60s=%.60s: %s", name, host,
			 id < 0 ? "no such host in this fabric" : "not a possible name");
		return -EINVAL;
	}
	if (device)
		return ag_name_set_alias(&a->devices, &a->device_count, name, (uint32_t)id);
	return ag_name_set_alias(&a->aliases, &a->alias_count, name, (uint32_t)id);
}

/* Writes "fabric NAME is in use by" and the programs that have a NIC open; those that do not fit are counted. */
static void users_name(struct ag_agent *a, char *text, size_t size)
{
	size_t at = (size_t)snprintf(text, size, "fabric %.40s is in use by", a->fabric);
	struct ag_client *c;
	uint32_t i;

	for (i = 0; (c = ag_listing_nic(a, i)) != NULL; i++) {
		if (at + strlen(c->program) + 20 + AG_NAME_MORE_MAX > size) {
			snprintf(text + at, size - at, ", %u more", a->nic_count - i);
			return;
		}
		at += (size_t)snprintf(text + at, size - at, "%s %s (pid %d)", i > 0 ? "," : "",
				       c->program, (int)c->pid);
	}
}

/*
 * A tool that is about to start a fabric asks this: an agent that was started on demand and has no NIC open
 * ends, so that its address is free.  0, or -EBUSY, and `text` says why it stays.
 */
static int admin_leave(struct ag_agent *a, char *text, size_t size)
{
	if (!a->cfg.leave_when_idle) {
		snprintf(text, size,
			 "fabric %.40s is up already; vi_fabric down --name %.40s takes it down",
			 a->fabric, a->fabric);
		return -EBUSY;
	}
	if (a->nic_count > 0) {
		users_name(a, text, size);
		return -EBUSY;
	}
	ag_loop_stop(a);
	return 0;
}

/*
 * Does what the request asks, without a check of its sender.  0 or -errno; `text`, empty before, gets the error line or
 * stays empty.  An agent that is stopped ends only when the present turn of the loop has ended.
 */
static int admin_do(struct ag_client *c, const struct w_admin *m, char *text, size_t size)
{
	struct ag_agent *a = c->agent;

	switch (m->verb) {
	case W_ADMIN_STOP:
		u_info("ag", "stopped by pid %d", (int)c->pid);
		ag_loop_stop(a);
		return 0;
	case W_ADMIN_LEAVE:
		return admin_leave(a, text, size);
	case W_ADMIN_LINK_DOWN:
	case W_ADMIN_LINK_UP:
		return admin_link(a, m->name, m->verb == W_ADMIN_LINK_UP, text, size);
	default:
		return admin_alias(a, m, text, size);
	}
}

void ag_admin(struct ag_client *c, const struct w_admin *m)
{
	char text[160] = "";
	int rc;

	if (c->uid != 0 && c->uid != c->agent->cfg.owner) {
		ag_client_refuse(c, W_DONE, m->token, W_DENIED,
				 "only the owner of a fabric may change it");
		return;
	}
	rc = admin_do(c, m, text, sizeof(text));
	if (rc != 0 && text[0] == '\0')
		snprintf(text, sizeof(text), "%s", strerror(-rc));
	ag_client_refuse(c, W_DONE, m->token, rc == 0 ? W_SUCCESS : W_BAD_REQUEST,
			 rc == 0 ? NULL : text);
}
