/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Configuration: one table of VIADUCT_* variables drives parsing, range checks,
 * `vi_info --env`, the manual page and the warning about unknown names.
 *
 * Values are read once per process from the environment (secure_getenv).  A bad
 * value is refused: u_cfg_load() fails and names the variable, its text and the
 * values allowed.
 */
#ifndef U_CFG_H
#define U_CFG_H

#include <stdbool.h>
#include <stdint.h>

enum u_cfg_id {
	U_CFG_FABRIC,	   /* VIADUCT_FABRIC      name, or owner:name */
	U_CFG_HOST,	   /* VIADUCT_HOST        host name, alias or number */
	U_CFG_DEVICE,	   /* VIADUCT_DEVICE      device aliases: NAME=HOST,... */
	U_CFG_DEFAULT_NIC, /* VIADUCT_DEFAULT_NIC yes|no: unknown device names open the default NIC */
	U_CFG_PORT, /* VIADUCT_PORT        emu|cdev[+strict][+fault][+model[:PROFILE[:DILATION]]] */
	U_CFG_PROFILES, /* VIADUCT_PROFILES    profiles of the model: A-B=PROFILE,A.PORT=PROFILE,... */
	U_CFG_ADAPTERS,	    /* VIADUCT_ADAPTERS    ports of kind cdev: NAME=PATH,... */
	U_CFG_FAULT,	    /* VIADUCT_FAULT       fault options, see port_fault.h */
	U_CFG_SEED,	    /* VIADUCT_SEED        seed of strict and fault */
	U_CFG_SLOTS,	    /* VIADUCT_SLOTS       slots of a VI's fifo, power of two */
	U_CFG_RING_BYTES,   /* VIADUCT_RING_BYTES  bytes of a VI's payload buffer, power of two */
	U_CFG_WINDOW_BYTES, /* VIADUCT_WINDOW_BYTES memory window of a port */
	U_CFG_DOORBELLS,    /* VIADUCT_DOORBELLS   doorbell bits of a port */
	U_CFG_SCRATCHPADS,  /* VIADUCT_SCRATCHPADS scratchpads of a port */
	U_CFG_TOPOLOGY,	    /* VIADUCT_TOPOLOGY    links of a fabric, see rt_topo.h and rt_load.h */
	U_CFG_RELAY_THREADS, /* VIADUCT_RELAY_THREADS transfer threads of an agent; 0: chosen */
	U_CFG_RELAY_CPUS,    /* VIADUCT_RELAY_CPUS  processors that they run on: 2,3 or 2-5 */
	U_CFG_RELAY_WAIT,    /* VIADUCT_RELAY_WAIT  adaptive|poll|block */
	U_CFG_WAIT,	     /* VIADUCT_WAIT        spin|yield|block|adaptive */
	U_CFG_AFFINITY,	     /* VIADUCT_AFFINITY    placement of threads, see u_place.h */
	U_CFG_AGENT,	     /* VIADUCT_AGENT       path of viaductd started on demand, or "none" */
	U_CFG_LOG,	     /* VIADUCT_LOG */
	U_CFG_LOG_FILE,	     /* VIADUCT_LOG_FILE */
	U_CFG_FD_FROM,	     /* VIADUCT_FD_FROM     lowest number of kept descriptors, see u_fd.h */
	U_CFG_COUNT
};

#define U_CFG_RELAY_CPUS_MAX 8u /* processors of VIADUCT_RELAY_CPUS */
#define U_CFG_WINDOW_BYTES_MIN (UINT64_C(256) << 10)
#define U_CFG_WINDOW_BYTES_MAX (UINT64_C(1) << 40)

/* The words of VIADUCT_RELAY_WAIT, in the order of enum rl_wait; NULL ends them. */
extern const char *const u_cfg_relay_wait_words[];

enum u_cfg_type { U_CFG_STRING, U_CFG_UINT, U_CFG_BYTES, U_CFG_ENUM, U_CFG_BOOL };

struct u_cfg_entry {
	const char *name;
	enum u_cfg_type type;
	const char *fallback; /* the default, as text */
	uint64_t min, max;    /* of UINT and BYTES */
	bool power_of_two;
	const char *const *words; /* of ENUM, NULL-terminated */
	const char *help;
};

extern const struct u_cfg_entry u_cfg_table[U_CFG_COUNT];

/* The origin of a value. */
enum u_cfg_origin { U_CFG_FROM_DEFAULT, U_CFG_FROM_ENV };

/*
 * Parses the environment once (thread-safe; later calls return the first
 * result, and log nothing).  Returns 0, or -EINVAL or -ENOMEM after one log line
 * per bad variable; a refused one has its default in effect.  Warns once about
 * unknown VIADUCT_* names, with the nearest known name.
 */
int u_cfg_load(void);

const char *u_cfg_str(enum u_cfg_id id); /* the text in effect, never NULL; loads if need be */
uint64_t u_cfg_uint(enum u_cfg_id id);	 /* UINT, BYTES, BOOL, ENUM (index of the word) */
enum u_cfg_origin u_cfg_origin(enum u_cfg_id id);

/*
 * Parses "4096", "64k", "1M", "2G", "1T" (powers of 1024; small letters or capitals).  Returns 0, or -EINVAL and
 * leaves *out.
 */
int u_cfg_parse_bytes(const char *text, uint64_t *out);

/*
 * For tests: frees the values, also texts that u_cfg_str() gave, and closes the log, so that the next load reads the
 * environment again.  No other thread may be logging.
 */
void u_cfg_reset(void);

/* In a child of fork(), before it has other threads: initialises the lock again. */
void u_cfg_forked(void);

#endif
