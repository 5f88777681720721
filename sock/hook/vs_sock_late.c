// SPDX-License-Identifier: BSD-2-Clause
/* The end of a socket that a signal handler closes in the middle of a call that uses it. */
#include <errno.h>
#include <fcntl.h>

#include "vs_epoll.h"
#include "vs_item.h"
#include "vs_late.h"
#include "vs_real.h"
#include "vs_signal.h"
#include "vs_sock.h"
#include "vs_table.h"

bool vs_sock_interrupted(struct vs_obj *o)
{
	struct st_stream *s = vs_is_socket(o) ? atomic_load(&o->sock.stream) : NULL;

	return s && vs_in_handler() &&
	       (st_readable_bytes(s) == -EDEADLK || st_writable_bytes(s) == -EDEADLK);
}

bool vs_sock_any_interrupted(void)
{
	struct vs_obj *o;
	bool yes = false;
	int fd = -1;

	while (vs_in_handler() && !yes && (fd = vs_table_next(fd + 1)) >= 0) {
		o = vs_get(fd);
		if (!o)
			continue;
		yes = vs_sock_interrupted(o);
		vs_put(o);
	}
	return yes;
}

/* Closes the socket after the interrupted use is over, and gives the reference back; false: it is not over yet. */
static bool close_late(struct vs_obj *o)
{
	struct st_stream *s = atomic_load(&o->sock.stream);
	int fd = o->sock.late_fd;

	if (vs_items_held() || vs_sock_interrupted(o))
		return false;
	if (s)
		st_set_fd(s, fd);
	vs_sock_close(o, fd);
	if (fd >= 0)
		vs_real.close(fd);
	vs_put(o);
	return true;
}

bool vs_sock_close_late(struct vs_obj *o, int fd)
{
	int before = errno;

	if (vs_likely(!vs_items_held() && !vs_sock_interrupted(o)))
		return false;
	if (vs_late_claim(o, close_late)) {
		o->sock.late_fd = vs_real.fcntl64(fd, F_DUPFD_CLOEXEC, (unsigned long)vs_ours_from);
		vs_late_add(o);
	} else {
		vs_put(o);
	}
	if (atomic_load(&o->fds) == 0 && vs_items_held())
		vs_epoll_unset(o);
	else if (atomic_load(&o->fds) == 0)
		vs_epoll_forget(o);
	errno = before;
	return true;
}
