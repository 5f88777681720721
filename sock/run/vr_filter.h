/* SPDX-License-Identifier: BSD-2-Clause */
/* Filters of system calls, for this process and its children. */
#ifndef VR_FILTER_H
#define VR_FILTER_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * io_uring_setup() fails with ENOSYS from now on.  Without the right to filter, the process gives up gaining rights.
 * False: the kernel takes no filter, errno says why.
 */
bool vr_filter_refuse_uring(void);

/* Whether this processor's calls are known to vr_filter_ask(). */
bool vr_filter_can_ask(void);

/*
 * From now on connect(), accept(), accept4(), getpeername(), getsockname() and, with `bind`, bind() wait until the
 * holder of the returned descriptor has answered, unless they are marked (vs_all.h).  Rights as above.  A descriptor
 * with FD_CLOEXEC; or -1, and errno says why.
 */
int vr_filter_ask(bool bind);

/*
 * Whether this process may look into the memory and descriptors of another, as vi_forward has to: 0 or -errno, -ESRCH
 * for one that has ended.
 */
int vr_filter_inspect(pid_t process);

/* Whether vr_filter_ask() and vr_filter_inspect() work here, as vi_forward needs it: 0 or -errno.  Asks by a child. */
int vr_filter_try(void);

#endif
