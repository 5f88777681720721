/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks that the options of viaductd fit together, and derives the settings of the agent from
 * them.
 */
#include "viaductd_check.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include "ag_cfg.h"
#include "ag_profile.h"
#include "port_fault.h"
#include "port_fault_opt.h"
#include "port_host.h"
#include "rt_load.h"
#include "u_cfg.h"
#include "u_fd.h"
#include "u_option.h"
#include "w_addr.h"
#include "w_slot.h"

#define FDS_PORT 8u   /* the most descriptors that a port takes while its link is set up */
#define FDS_LEAST 16u /* in addition to the ports; enough for the first clients, too */

/*
 * Finds the host of that name, or of that number if no host has the name; the number of hosts is known.  0 or
 * -EINVAL.
 */
static int host_named(const struct vd_options *o, const char *text, uint32_t *out)
{
	char standard[16];
	uint64_t number;
	uint32_t i;

	for (i = 0; i < o->cfg.host_count; i++) {
		snprintf(standard, sizeof(standard), "host%u", i);
		if (strcmp(o->name_count > 0 ? o->names[i] : standard, text) == 0) {
			*out = i;
			return 0;
		}
	}
	if (u_option_number(text, false, 0, o->cfg.host_count - 1, &number) != 0)
		return -EINVAL;
	*out = (uint32_t)number;
	return 0;
}

/*
 * May a device have that name?  1 or 0.  It may be a path, but has no character with a meaning in lists or
 * JSON.  The length is not checked.
 */
static int device_ok(const char *name)
{
	size_t i;

	for (i = 0; name[i] != '\0'; i++) {
		if (name[i] <= ' ' || name[i] > '~' || strchr("\"\\=,", name[i]) != NULL)
			return 0;
	}
	return i > 0;
}

/*
 * Turns `text`, NAME=HOST, into a pair.  name_ok() returns 1 for a NAME that is allowed, else 0, as for an empty one.
 * 0, or -EINVAL with a complaint that names `option`.
 */
static int alias_resolve(const struct vd_options *o, const char *option, const char *text,
			 int (*name_ok)(const char *name), struct ag_alias *out)
{
	const char *eq = strrchr(text, '=');
	struct ag_alias alias = { .host = 0 };

	if (eq != NULL && (size_t)(eq - text) < sizeof(alias.name))
		memcpy(alias.name, text, (size_t)(eq - text));
	if (!name_ok(alias.name)) {
		vd_complain("%s %.80s: NAME=HOST expected, NAME of 1..63 characters", option, text);
		return -EINVAL;
	}
	if (host_named(o, eq + 1, &alias.host) != 0) {
		vd_complain("%s %.80s: NAME=HOST expected, HOST of a fabric of %u host%s", option,
			    text, o->cfg.host_count, o->cfg.host_count == 1 ? "" : "s");
		return -EINVAL;
	}
	*out = alias;
	return 0;
}

/* Turns the texts of --alias and --device-alias into pairs.  0, or -EINVAL with a complaint. */
static int aliases_resolve(struct vd_options *o)
{
	uint32_t *n = &o->cfg.alias_count, *m = &o->cfg.device_count;
	int rc = 0;

	for (; rc == 0 && *n < VD_ALIASES_MAX && o->alias_text[*n] != NULL; ++*n)
		rc = alias_resolve(o, "--alias", o->alias_text[*n], w_name_ok, &o->aliases[*n]);
	for (; rc == 0 && *m < VD_ALIASES_MAX && o->device_text[*m] != NULL; ++*m)
		rc = alias_resolve(o, "--device-alias", o->device_text[*m], device_ok,
				   &o->devices[*m]);
	return rc;
}

/*
 * Checks the kind, adapters and faults of ports.  Each may come from a variable or from an option: the
 * complaint says which.  0, or -EINVAL with a complaint.
 */
static int port_check(struct vd_options *o)
{
	bool from_env = o->cfg.port_kind == u_cfg_str(U_CFG_PORT);
	struct fault_options ignored;

	if (port_kind_check(o->cfg.port_kind) != 0) {
		o->bad_variable = from_env;
		vd_complain("%s %.40s: emu or cdev expected, also with +strict, +fault, "
			    "+model[:PROFILE[:DILATION]] or several of them, such as emu+strict; "
			    "correct %s",
			    from_env ? "VIADUCT_PORT is" : "--port", o->cfg.port_kind,
			    from_env ? "or unset it" : "it or leave it out");
		return -EINVAL;
	}
	if (port_adapters_check(o->cfg.adapters) != 0) {
		o->bad_variable = o->cfg.adapters == u_cfg_str(U_CFG_ADAPTERS);
		vd_complain("%s %.80s: NAME=PATH,... expected, the name of a port and the path of "
			    "its device from / on; correct it or leave it out",
			    o->bad_variable ? "VIADUCT_ADAPTERS is" : "--adapters",
			    o->cfg.adapters);
		return -EINVAL;
	}
	if (fault_parse(o->cfg.fault_options, &ignored) != 0) {
		o->bad_variable = o->cfg.fault_options == u_cfg_str(U_CFG_FAULT);
		vd_complain("%s %.40s: drop_db=P, spurious_db=P, early_db=P, down_after=N, "
			    "down_ms=N, torn=P expected, P from 0 to 1; correct it or leave it out",
			    o->bad_variable ? "VIADUCT_FAULT is" : "--fault", o->cfg.fault_options);
		return -EINVAL;
	}
	return 0;
}

/*
 * Reads the topology, which may say how many hosts there are.  An agent on demand takes none from a variable.
 * 0, or -EINVAL with a complaint.
 */
static int topology_resolve(struct vd_options *o)
{
	bool from_env = o->topology_text == u_cfg_str(U_CFG_TOPOLOGY);
	struct rt_size hosts = { o->hosts, 1, AG_HOSTS_MAX };
	char why[VD_COMPLAINT_MAX - 32];

	/* An agent that a program starts on demand serves a fabric of one host. */
	if (from_env && o->cfg.leave_when_idle && o->hosts == 0)
		return 0;
	if (rt_load(o->topology_text, hosts, &o->topology, why, sizeof(why)) != 0) {
		o->bad_variable = from_env && u_cfg_origin(U_CFG_TOPOLOGY) == U_CFG_FROM_ENV;
		vd_complain("%s%s", o->bad_variable ? "VIADUCT_TOPOLOGY: " : "", why);
		return -EINVAL;
	}
	o->cfg.host_count = rt_hosts(o->topology);
	o->cfg.topology = rt_topo_spec(o->topology);
	return 0;
}

/*
 * Do the profiles fit the topology and the kind of ports?  An agent on demand that has no topology has no links.  0, or
 * -EINVAL with a complaint.
 */
static int profiles_check(struct vd_options *o)
{
	char why[VD_COMPLAINT_MAX - 32];

	if (o->topology == NULL) {
		o->cfg.profiles = NULL;
		return 0;
	}
	if (ag_profile_check(o->topology, o->cfg.port_kind, o->cfg.profiles, why, sizeof(why)) == 0)
		return 0;
	o->bad_variable = o->cfg.profiles == u_cfg_str(U_CFG_PROFILES);
	vd_complain("%s %s", o->bad_variable ? "VIADUCT_PROFILES:" : "--profiles", why);
	return -EINVAL;
}

/* Are there enough doorbell bits for the transfer threads?  0, or -EINVAL with a complaint. */
static int relay_threads_check(struct vd_options *o)
{
	uint32_t most = o->cfg.db_bits - AG_DB_BITS_RESERVED;

	if (o->cfg.relay_threads <= most)
		return 0;
	o->bad_variable = o->relay_threads == 0;
	vd_complain(
		"%u transfer thread%s: each wants a doorbell bit, and of %u bits %u can be theirs; "
		"use fewer %s or more with --doorbells",
		o->cfg.relay_threads, o->cfg.relay_threads == 1 ? "" : "s", o->cfg.db_bits, most,
		o->relay_threads != 0 ? "with --relay-threads" : "in VIADUCT_RELAY_THREADS");
	return -EINVAL;
}

/*
 * Checks the processors that were named for transfer threads, and passes them to the agent, which starts only
 * if they can run there.  0, or -EINVAL with a complaint.
 */
static int relay_cpus_check(struct vd_options *o)
{
	cpu_set_t set;
	uint32_t i;

	o->cfg.relay_cpus = o->relay_cpus;
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return 0; /* the kernel has more processors than the set: it checks when the threads start */
	for (i = 0; i < o->cfg.relay_cpu_count; i++) {
		if (CPU_ISSET((size_t)o->relay_cpus[i], &set))
			continue;
		o->bad_variable = o->relay_cpus_text == u_cfg_str(U_CFG_RELAY_CPUS);
		vd_complain("%s %.40s: processor %d is none of the %d that may be used here; name "
			    "others (taskset -cp $$ lists them)",
			    o->bad_variable ? "VIADUCT_RELAY_CPUS is" : "--relay-cpus",
			    o->relay_cpus_text, o->relay_cpus[i], CPU_COUNT(&set));
		return -EINVAL;
	}
	return 0;
}

/*
 * An agent that has no descriptor left when its links are up could serve no process, not even one that asks it
 * to stop, so it does not start: -EINVAL with a complaint.  0: there are enough.
 */
static int descriptors_check(struct vd_options *o)
{
	unsigned int ports = o->topology != NULL ? rt_topo_ports(o->topology, o->cfg.host_id) : 1;
	uint64_t least = FDS_LEAST + (uint64_t)ports * FDS_PORT;
	char text[U_FD_ERROR];

	if (!u_fd_scarce(least))
		return 0;
	o->bad_variable = true;
	vd_complain("agent of host %u of fabric %s needs %llu file descriptors to begin with: %s",
		    o->cfg.host_id, o->fabric, (unsigned long long)least, u_fd_error(EMFILE, text));
	return -EINVAL;
}

/*
 * Sets the size of the window if no option did.  An agent on demand serves programs that are not known when it
 * starts: the first may need little memory, and another may start before that has ended.  So it gets the
 * largest window.  A window takes memory only where it is used.
 */
static void window_choose(struct vd_options *o)
{
	if (o->cfg.window_bytes != 0)
		return;
	if (o->cfg.leave_when_idle && u_cfg_origin(U_CFG_WINDOW_BYTES) == U_CFG_FROM_DEFAULT)
		o->cfg.window_bytes = U_CFG_WINDOW_BYTES_MAX;
	else
		o->cfg.window_bytes = u_cfg_uint(U_CFG_WINDOW_BYTES);
}

/*
 * Sets the geometry from the variables where no option did.  Where neither was set, it stays 0: the agent chooses by
 * the size of the window.
 */
static void geometry_choose(struct vd_options *o)
{
	if (o->cfg.slots == 0 && o->cfg.payload_bytes == 0 &&
	    u_cfg_origin(U_CFG_SLOTS) == U_CFG_FROM_DEFAULT &&
	    u_cfg_origin(U_CFG_RING_BYTES) == U_CFG_FROM_DEFAULT)
		return;
	if (o->cfg.slots == 0)
		o->cfg.slots = (uint32_t)u_cfg_uint(U_CFG_SLOTS);
	if (o->cfg.payload_bytes == 0)
		o->cfg.payload_bytes = (uint32_t)u_cfg_uint(U_CFG_RING_BYTES);
}

int vd_check(struct vd_options *o)
{
	window_choose(o);
	geometry_choose(o);
	if (topology_resolve(o) != 0)
		return -EINVAL;
	if (o->fabric[0] == '\0' && vd_set_fabric(o, u_cfg_str(U_CFG_FABRIC)) != 0) {
		vd_complain("fabric %.80s is not the caller's own", u_cfg_str(U_CFG_FABRIC));
		return -EINVAL;
	}
	if (o->name_count > 0 && o->name_count != o->cfg.host_count) {
		vd_complain("--names: %u name%s for %u host%s; give one name for each",
			    o->name_count, o->name_count == 1 ? "" : "s", o->cfg.host_count,
			    o->cfg.host_count == 1 ? "" : "s");
		return -EINVAL;
	}
	if (o->cfg.slots != 0 && !w_geometry_ok(o->cfg.slots, o->cfg.payload_bytes)) {
		vd_complain(
			"--slots %u, --ring-bytes %u: powers of two expected, 8..4096 and 4k..64M",
			o->cfg.slots, o->cfg.payload_bytes);
		return -EINVAL;
	}
	if (o->cfg.host_id >= o->cfg.host_count) {
		vd_complain("--host-id %u: 0..%u expected in a fabric of %u host%s", o->cfg.host_id,
			    o->cfg.host_count - 1, o->cfg.host_count,
			    o->cfg.host_count == 1 ? "; say --hosts" : "s");
		return -EINVAL;
	}
	if (aliases_resolve(o) != 0 || port_check(o) != 0 || profiles_check(o) != 0 ||
	    relay_threads_check(o) != 0 || relay_cpus_check(o) != 0 || descriptors_check(o) != 0)
		return -EINVAL;
	o->cfg.fabric = o->fabric;
	o->cfg.host_names = o->name_count > 0 ? (const char *const *)o->names : NULL;
	o->cfg.aliases = o->aliases;
	o->cfg.devices = o->devices;
	return 0;
}
