/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls of the programs, which wait for an answer (seccomp_unotify(2)).
 *
 * A signal or the end of its thread makes a call void at any time; the same call may come again then.
 */
#ifndef VF_NOTIFY_H
#define VF_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct vf_call {
	uint64_t id;
	pid_t thread;
	int number;
	uint64_t args[6];
};

/* Takes the descriptor of the filter.  0, or -errno: -EOPNOTSUPP if the kernel is too old. */
int vf_notify_init(int fd);
/* The next call.  False: there is none now. */
bool vf_notify_next(struct vf_call *call);
/* False: the call is void. */
bool vf_notify_valid(uint64_t id);
/* The kernel executes the call as if it had not been asked about. */
void vf_notify_go_on(uint64_t id);
/* The call returns this result, or -errno.  False: it is void. */
bool vf_notify_answer(uint64_t id, int result);
/* The call returns a new descriptor, a copy of `fd`.  0; or -errno: -ENOENT, it is void; else it still waits. */
int vf_notify_give(uint64_t id, int fd, bool cloexec);

#endif
