/* SPDX-License-Identifier: BSD-2-Clause */
/* The options of viaductd: their table, and the variables with their defaults. */
#include "viaductd_options.h"

#include <errno.h>
#include <grp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ag_cfg.h"
#include "port.h"
#include "u_base.h"
#include "u_cfg.h"
#include "u_close.h"
#include "u_cpus.h"
#include "u_option.h"
#include "w_addr.h"
#include "w_slot.h"

static char complaint[VD_COMPLAINT_MAX];

void vd_complain(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(complaint, sizeof(complaint), fmt, ap);
	va_end(ap);
	fprintf(stderr, "viaductd: %s\n", complaint);
}

const char *vd_complaint(void)
{
	return complaint[0] != '\0' ? complaint : "bad value of a VIADUCT_ variable";
}

int vd_set_fabric(struct vd_options *o, const char *arg)
{
	uid_t owner;
	int rc = w_fabric_parse(arg, &owner, o->fabric);

	return rc == 0 && owner == geteuid() ? 0 : -EINVAL;
}

static int set_fabric(void *into, const struct u_option *option, const char *arg)
{
	return vd_set_fabric(into, arg);
}

/* Is it among the hosts' names that were read so far? */
static bool name_given(const struct vd_options *o, const char *name)
{
	unsigned int i;

	for (i = 0; i < o->name_count; i++) {
		if (strcmp(o->names[i], name) == 0)
			return true;
	}
	return false;
}

/*
 * Sets the hosts' names, in place of earlier ones.  0, -EINVAL, -ENOMEM, or -ECANCELED after a complaint of its
 * own.
 */
static int set_names(void *into, const struct u_option *option, const char *arg)
{
	struct vd_options *o = into;
	char *rest = NULL, *name;

	free(o->names_text);
	o->name_count = 0;
	o->names_text = strdup(arg);
	if (o->names_text == NULL)
		return -ENOMEM;
	for (name = strtok_r(o->names_text, ",", &rest); name != NULL;
	     name = strtok_r(NULL, ",", &rest)) {
		if (o->name_count == AG_HOSTS_MAX || !w_name_ok(name))
			return -EINVAL;
		if (name_given(o, name)) {
			vd_complain(
				"--names %.80s: %s is given twice; give every host another name",
				arg, name);
			return -ECANCELED;
		}
		o->names[o->name_count++] = name;
	}
	return o->name_count > 0 ? 0 : -EINVAL;
}

/* Sets the group by its name or number.  0 or -EINVAL. */
static int set_group(void *into, const struct u_option *option, const char *arg)
{
	struct group *entry = getgrnam(arg);
	struct vd_options *o = into;
	uint64_t gid;

	if (entry != NULL)
		gid = entry->gr_gid;
	else if (u_option_number(arg, false, 0, UINT32_MAX - 1, &gid) != 0)
		return -EINVAL;
	o->cfg.group = (gid_t)gid;
	return 0;
}

/* Sets the processors of transfer threads from a list, as in 2,3 or 2-5.  0 or -EINVAL. */
static int set_relay_cpus(void *into, const struct u_option *option, const char *arg)
{
	struct vd_options *o = into;

	o->relay_cpus_text = arg;
	return arg[0] == '\0' || u_cpus_parse(arg, AG_RELAY_CPUS_MAX, o->relay_cpus,
					      &o->cfg.relay_cpu_count) != 0
		       ? -EINVAL
		       : 0;
}

#define AT(field) U_OPTION_AT(struct vd_options, field)

static const struct u_option options[] = {
	{ "fabric", 0, "NAME", "fabric to serve (VIADUCT_FABRIC)", .call = set_fabric,
	  .expected = "a fabric of the caller's, 1 to 63 characters of [A-Za-z0-9._-]" },
	{ "host-id", 0, "N", "which host this is, from 0", AT(cfg.host_id),
	  .max = AG_HOSTS_MAX - 1 },
	{ "hosts", 0, "N", "hosts of the fabric, 1..64 (1, or as many as SPEC says)", AT(hosts),
	  .min = 1, .max = AG_HOSTS_MAX },
	{ "topology", 0, "SPEC", "ring, chain, mesh:WxH, torus:WxH, graph:0-1,... or file:PATH",
	  AT(topology_text) },
	{ "names", 0, "A,B,...", "names of the hosts (host0,host1,...)", .call = set_names,
	  .expected = "A,B,... of 1 to 63 characters of [A-Za-z0-9._-] each" },
	{ "alias", 0, "NAME=HOST", "another name of a host; may be repeated", AT(alias_text) },
	{ "device-alias", 0, "DEV=HOST", "device name that opens a host's NIC", AT(device_text) },
	{ "group", 0, "GROUP", "members of the group may use the fabric too", .call = set_group,
	  .expected = "the name or number of a group" },
	{ "on-demand", 0, NULL, "leave after the last program with a NIC",
	  AT(cfg.leave_when_idle) },
	{ "grace-ms", 0, "MS", "... when there was none for so long (2000)", AT(cfg.grace_ms),
	  .max = 3600000 },
	{ "window", 0, "SIZE",
	  "memory window of a port (VIADUCT_WINDOW_BYTES;\nwith neither 4G, on demand 1T)",
	  AT(cfg.window_bytes), .size = true, .min = U_CFG_WINDOW_BYTES_MIN,
	  .max = U_CFG_WINDOW_BYTES_MAX },
	{ "doorbells", 0, "N", "doorbell bits of a port (VIADUCT_DOORBELLS)", AT(cfg.db_bits),
	  .min = 2, .max = PORT_DB_MAX },
	{ "scratchpads", 0, "N", "scratchpads of a port (VIADUCT_SCRATCHPADS)", AT(cfg.spads),
	  .min = 8, .max = PORT_SPAD_MAX },
	{ "relay-threads", 0, "N", "transfer threads, 1..8 (VIADUCT_RELAY_THREADS)",
	  AT(relay_threads), .min = 1, .max = AG_RELAY_THREADS_MAX },
	{ "relay-cpus", 0, "LIST", "processors of theirs (VIADUCT_RELAY_CPUS)",
	  .call = set_relay_cpus, .expected = "a list of up to 8 processors, as in 2,3 or 2-5" },
	{ "relay-wait", 0, "HOW", "adaptive, poll or block (VIADUCT_RELAY_WAIT)",
	  AT(cfg.relay_wait), .words = u_cfg_relay_wait_words },
	{ "slots", 0, "N",
	  "slots of a VI's fifo (VIADUCT_SLOTS;\nwith neither 128, 32 in a window of at most 4M)",
	  AT(cfg.slots), .min = W_SLOTS_MIN, .max = W_SLOTS_MAX },
	{ "ring-bytes", 0, "SIZE",
	  "payload bytes of a VI's fifo, more over relays\n"
	  "(VIADUCT_RING_BYTES; with neither 256k, 4M for the first\nof a link, 8k in a window of at most 4M)",
	  AT(cfg.payload_bytes), .size = true, .min = W_PAYLOAD_MIN, .max = W_PAYLOAD_MAX },
	{ "port", 0, "KIND", "kind of ports (VIADUCT_PORT)", AT(cfg.port_kind) },
	{ "profiles", 0, "LIST",
	  "of links with a model: A-B=PROFILE or A.PORT=PROFILE,...\n(VIADUCT_PROFILES)",
	  AT(cfg.profiles) },
	{ "adapters", 0, "LIST", "of ports of kind cdev: NAME=PATH,... (VIADUCT_ADAPTERS)",
	  AT(cfg.adapters) },
	{ "fault", 0, "OPTIONS", "faults of ports of kind fault (VIADUCT_FAULT)",
	  AT(cfg.fault_options) },
	{ "seed", 0, "N", "seed of strict and fault (VIADUCT_SEED)", AT(cfg.seed) },
	{ "no-passrights", 0, NULL, "be as on a kernel without SO_PASSRIGHTS, for tests",
	  AT(no_passrights) },
	{ "check", 0, NULL, "look at options and variables, start nothing", AT(check) },
	{ "ready-fd", 0, "FD", "write one line there when listening, or why not", AT(ready_fd),
	  .max = 1 << 20 },
	U_OPTION_LAST(0, 0)
};

static void complain_line(const char *line)
{
	vd_complain("%s", line);
}

/* Sets options from the environment, before the command line overrides them. */
int vd_options_defaults(struct vd_options *o)
{
	memset(o, 0, sizeof(*o));
	o->ready_fd = -1;
	o->cfg.owner = geteuid();
	o->cfg.host_count = 1;
	o->cfg.group = AG_NO_GROUP;
	if (u_cfg_load() != 0)
		return -EINVAL;
	o->cfg.db_bits = (uint32_t)u_cfg_uint(U_CFG_DOORBELLS);
	o->cfg.spads = (uint32_t)u_cfg_uint(U_CFG_SCRATCHPADS);
	o->cfg.port_kind = u_cfg_str(U_CFG_PORT);
	o->cfg.profiles = u_cfg_str(U_CFG_PROFILES);
	o->cfg.adapters = u_cfg_str(U_CFG_ADAPTERS);
	o->topology_text = u_cfg_str(U_CFG_TOPOLOGY);
	o->cfg.relay_threads = (uint32_t)u_cfg_uint(U_CFG_RELAY_THREADS);
	o->cfg.relay_wait = (uint32_t)u_cfg_uint(U_CFG_RELAY_WAIT);
	o->relay_cpus_text = u_cfg_str(U_CFG_RELAY_CPUS);
	u_cpus_parse(o->relay_cpus_text, AG_RELAY_CPUS_MAX, o->relay_cpus, &o->cfg.relay_cpu_count);
	o->cfg.fault_options = u_cfg_str(U_CFG_FAULT);
	o->cfg.seed = u_cfg_uint(U_CFG_SEED);
	return 0;
}

int vd_options_parse(int argc, char **argv, struct vd_options *o)
{
	static const struct u_option_tool tool = {
		.name = "viaductd",
		.head = "Usage: viaductd [OPTION]...\n"
			"The agent of one host of a Viaduct fabric.  It stays in the foreground;\n"
			"libvipl and vi_fabric start it when they need it.\n\n",
		.options = options,
		.say = complain_line,
	};
	int rc = u_option_parse(&tool, argc, argv, o);

	if (o->hosts != 0)
		o->cfg.host_count = o->hosts;
	if (o->relay_threads != 0)
		o->cfg.relay_threads = o->relay_threads;
	if (o->no_passrights)
		u_rights_forget(true);
	return rc;
}
