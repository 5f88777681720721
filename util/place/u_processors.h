/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads the processors that this process may use: those of its affinity, which cpusets limit, and the time on them
 * that quotas of control groups leave.  Computes whether the processes of a machine have to share them.
 */
#ifndef U_PROCESSORS_H
#define U_PROCESSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define U_PROCESSORS_WORDS 16

/* Without pointers, so that processes can send it to each other. */
struct u_processors {
	uint64_t machine; /* equal in all processes of a machine, containers included */
	uint64_t group;	  /* the control group that has the smallest quota; 0: none has one */
	uint32_t quota;	  /* of that group, in thousandths of a processor */
	uint32_t count;	  /* processors that the calling thread may run on; 0: not known */
	uint64_t cpus[U_PROCESSORS_WORDS]; /* their numbers, as far as these are below 1024 */
};

/* Reads all of it, for the calling thread; what is not known becomes 0. */
void u_processors_read(struct u_processors *out);

/* How many threads of this process can run at once, by the caller's affinity and the quota rounded up; at least 1. */
unsigned int u_processors_count(void);

/*
 * Gives the smallest quota of the control groups, version 1 or 2, that have the process of this folder of /proc, in
 * thousandths of a processor.  False: there is none; both outputs are 0.
 */
bool u_processors_quota(const char *proc, uint64_t *group, uint32_t *quota);

/* Counts the processes that compete with one of them; `mine` is that of this one. */
struct u_processors_crowd {
	const struct u_processors *mine;
	unsigned int within;		   /* those that may run only where this one may */
	unsigned int meets;		   /* those that may run on a processor of this one */
	unsigned int group;		   /* those in the control group of this one */
	uint64_t cpus[U_PROCESSORS_WORDS]; /* of the processes counted in `meets` */
};

/* Counts nobody yet, not even `mine`, which has to exist as long as *c. */
void u_processors_crowd_begin(struct u_processors_crowd *c, const struct u_processors *mine);
/* Call it once for each process, also for this one; those of other machines do not count. */
void u_processors_crowd_add(struct u_processors_crowd *c, const struct u_processors *other);
/* Are there more processes than processors for them? */
bool u_processors_crowd_is(const struct u_processors_crowd *c);

#endif
