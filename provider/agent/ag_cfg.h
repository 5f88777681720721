/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration of an agent, and its limits. */
#ifndef AG_CFG_H
#define AG_CFG_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define AG_HOSTS_MAX 64u
#define AG_WHY_MAX 256u
#define AG_NO_GROUP ((gid_t)-1)
#define AG_GRACE_MS 2000u
#define AG_DB_BITS 16u
#define AG_SPADS 8u /* the least number of scratchpads of a port */
#define AG_RELAY_THREADS_MAX 8u
#define AG_RELAY_CPUS_MAX 8u
#define AG_CIRCUITS_MAX 65536u
/* Doorbell bits of a port that are not for transfer threads: the agent's, and one for processes. */
#define AG_DB_BITS_RESERVED 2u

/* One pair of a table of names: `name` means host `host`. */
struct ag_alias {
	char name[64];
	uint32_t host;
};

struct ag_cfg {
	const char *fabric; /* its name, 1..63 of [A-Za-z0-9._-] */
	uid_t owner;	    /* the uid as which the agents of the fabric run */
	int listen_sock; /* one that already listens at the agent's address, and stays open; 0: none */
	uint32_t host_id;
	uint32_t host_count;
	const char *const *host_names; /* host_count names, or NULL: host0, host1 ... */
	const struct ag_alias *aliases;
	uint32_t alias_count;
	const struct ag_alias *devices; /* device names */
	uint32_t device_count;
	gid_t group;	      /* members may use the fabric too; AG_NO_GROUP: owner and root only */
	bool leave_when_idle; /* return from ag_run() after the last client with a NIC */
	uint32_t grace_ms;    /* ... and after so long without one; 0: AG_GRACE_MS */
	uint32_t slots; /* geometry of new connections; 0: the default, by the size of the window */
	uint32_t payload_bytes;
	uint64_t window_bytes; /* of each port; 0: the port's default */
	uint32_t db_bits;
	uint32_t spads;
	const char *topology;	/* see rt_topo_parse(); NULL: a ring; must be equal at all hosts */
	uint32_t relay_threads; /* transfer threads; 0: by the processors and doorbell bits */
	uint32_t relay_wait;	/* enum rl_wait */
	uint32_t circuits;	/* the most connections of other hosts; 0: AG_CIRCUITS_MAX */
	/* processors to which the threads are given in turn, up to AG_RELAY_CPUS_MAX */
	const int *relay_cpus;
	uint32_t relay_cpu_count;  /* 0: anywhere */
	const char *port_kind;	   /* see port_decorate(); NULL: "emu" */
	const char *profiles;	   /* see ag_profile.h, which has checked it; NULL: none */
	const char *adapters;	   /* for kind cdev: see port_host.h; NULL: in order */
	const char *fault_options; /* NULL: none */
	uint64_t seed;
	bool stepped; /* no threads for the event loop: the caller calls ag_step(), not ag_run() */
	char *why;    /* NULL, or AG_WHY_MAX bytes for the reason of a failed ag_create() */
};

#endif
