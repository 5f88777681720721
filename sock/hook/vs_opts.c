// SPDX-License-Identifier: BSD-2-Clause
/*
 * The kernel's socket keeps every option, since it checks and reports them; what changes how bytes
 * move is noted here as well once the kernel has taken it.
 */
#include "vs_opts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "vs_note.h"
#include "vs_ready.h"
#include "vs_real.h"
#include "vs_sock.h"
#include "vs_sock_promote.h"
#include "vs_table.h"

#define WAIT_TCP_MS 1000

#ifndef TCP_ULP
#define TCP_ULP 31
#endif
#ifndef TCP_MD5SIG_EXT
#define TCP_MD5SIG_EXT 32
#endif
#ifndef TCP_ZEROCOPY_RECEIVE
#define TCP_ZEROCOPY_RECEIVE 35
#endif

/* ---- options that only the kernel serves ---- */

struct option {
	int level, name;
};

static const struct option kernels[] = {
	{ SOL_SOCKET, SO_ZEROCOPY },	       { SOL_SOCKET, SO_ATTACH_FILTER },
	{ SOL_SOCKET, SO_ATTACH_BPF },	       { SOL_SOCKET, SO_OOBINLINE },
	{ SOL_SOCKET, SO_PEEK_OFF },	       { IPPROTO_TCP, TCP_ULP },
	{ IPPROTO_TCP, TCP_REPAIR },	       { IPPROTO_TCP, TCP_MD5SIG },
	{ IPPROTO_TCP, TCP_MD5SIG_EXT },       { IPPROTO_TCP, TCP_FASTOPEN_CONNECT },
	{ IPPROTO_TCP, TCP_ZEROCOPY_RECEIVE },
};

static bool only_kernel(int level, int name)
{
	size_t i;

	for (i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++) {
		if (kernels[i].level == level && kernels[i].name == name)
			return true;
	}
	return false;
}

/* Bars promotion for ever, and has the bytes with the kernel before the call goes on: waits a second at most. */
static void kernel_only(struct vs_obj *o, enum vs_why why)
{
	vs_sock_bar(o, why);
	vs_sock_wait_tcp(o, WAIT_TCP_MS);
}

/* ---- getsockopt, setsockopt ---- */

/*
 * Sets or gets SO_LINGER by the stream, which may have set the kernel's to another value; *rc is the result of the
 * call, 0 or -1 with errno.  False: there is no stream, or it is in use by the interrupted call; this is for the
 * kernel.
 */
static bool linger(struct vs_obj *o, int fd, bool set, struct linger *l, int *rc)
{
	struct st_stream *s = vs_is_socket(o) ? vs_sock_stream(o, fd) : NULL;
	int error = s ? (set ? st_set_linger(s, l) : st_get_linger(s, l)) : -EDEADLK;

	if (error == -EDEADLK)
		return false;
	*rc = error != 0 ? -1 : 0;
	if (error != 0)
		errno = -error;
	return true;
}

/*
 * Sets the option of the kernel's socket, and notes one that changes how bytes move; SO_LINGER goes to the stream if
 * there is one.  An option that only the kernel serves bars promotion first, and moves a stream back to TCP.
 */
int vs_opts_set(struct vs_obj *o, int fd, int level, int name, const void *v, socklen_t len)
{
	struct linger l;
	int rc;

	if (level == SOL_SOCKET && name == SO_LINGER && vs_is_socket(o))
		atomic_store(&o->sock.lingers, true);
	if (level == SOL_SOCKET && name == SO_LINGER && v && len >= (socklen_t)sizeof(l)) {
		memcpy(&l, v, sizeof(l));
		if (linger(o, fd, true, &l, &rc))
			return rc;
	}
	if (vs_is_socket(o) && only_kernel(level, name))
		kernel_only(o, VS_WHY_OPTION);
	rc = vs_real.setsockopt(fd, level, name, v, len);
	if (rc != 0 || !vs_is_socket(o) || !v)
		return rc;
	if (level == SOL_SOCKET) {
		vs_note_socket(&o->sock, name, v, len);
		vs_note_buffer(&o->sock, fd, name);
	} else if (level == IPPROTO_TCP) {
		vs_note_tcp(&o->sock, name, v, len);
	}
	return rc;
}

/* SO_ERROR: takes the error that a call has kept, else the stream's. */
static int get_error(struct vs_obj *o, struct st_stream *s, void *v, socklen_t *len)
{
	int error = atomic_exchange(&o->sock.error, 0);

	if (error == 0)
		error = st_take_error(s);
	if (*len > sizeof(error))
		*len = sizeof(error);
	memcpy(v, &error, *len);
	return 0;
}

/* SO_LINGER and SO_ERROR of a stream come from the stream, which gives an error once; all others from the kernel. */
int vs_opts_get(struct vs_obj *o, int fd, int level, int name, void *v, socklen_t *len)
{
	struct st_stream *s = vs_is_socket(o) ? vs_sock_stream(o, fd) : NULL;
	struct linger l;
	int rc;

	if (s && level == SOL_SOCKET && name == SO_LINGER && v && len && (int)*len >= 0 &&
	    linger(o, fd, false, &l, &rc)) {
		if (*len > sizeof(l))
			*len = sizeof(l);
		memcpy(v, &l, rc == 0 ? *len : 0);
		return rc;
	}
	if (s && level == SOL_SOCKET && name == SO_ERROR && v && len && (int)*len >= 0)
		return get_error(o, s, v, len);
	return vs_real.getsockopt(fd, level, name, v, len);
}

/* ---- ioctl, fcntl ---- */

/* Stores a count as ioctl() does: 0, and INT32_MAX for one above; -1 and errno for a negative one, which is -errno. */
static int give_count(int64_t n, void *arg)
{
	int count = n > INT32_MAX ? INT32_MAX : (int)n;

	if (n < 0) {
		errno = (int)-n;
		return -1;
	}
	memcpy(arg, &count, sizeof(count));
	return 0;
}

/*
 * FIONREAD, SIOCOUTQ and SIOCATMARK count a stream's bytes; FIOASYNC moves the connection to the kernel; FIONBIO is
 * noted.
 */
int vs_opts_ioctl(struct vs_obj *o, int fd, unsigned long op, void *arg)
{
	struct st_stream *s = vs_is_socket(o) ? vs_sock_stream(o, fd) : NULL;
	int rc;

	if (s && arg && op == FIONREAD)
		return give_count(st_readable_bytes(s), arg);
	if (s && arg && op == SIOCOUTQ)
		return give_count(st_unsent_bytes(s), arg);
	if (s && arg && op == SIOCATMARK)
		return vs_ready_at_mark(s, fd, arg);
	if (vs_is_socket(o) && op == FIOASYNC)
		kernel_only(o, VS_WHY_SIGNAL);
	rc = vs_real.ioctl(fd, op, arg);
	if (rc == 0 && vs_is_socket(o) && op == FIONBIO)
		atomic_store(&o->sock.nonblock, vs_int_of(arg, sizeof(int)) != 0);
	return rc;
}

/*
 * Notes O_NONBLOCK; O_ASYNC moves the connection to the kernel, and so does a copy with a number of 0 to 2; a copy of
 * the descriptor has its object.
 */
int vs_opts_fcntl(struct vs_obj *o, int fd, int op, unsigned long arg)
{
	int rc;

	if (vs_is_socket(o) && op == F_SETFL && (arg & O_ASYNC))
		kernel_only(o, VS_WHY_SIGNAL);
	rc = vs_real.fcntl64(fd, op, arg);
	if (rc < 0)
		return rc;
	if (vs_is_socket(o) && op == F_SETFL)
		atomic_store(&o->sock.nonblock, (arg & O_NONBLOCK) != 0);
	if (op == F_DUPFD || op == F_DUPFD_CLOEXEC) {
		vs_table_set(rc, o);
		if (rc <= STDERR_FILENO) /* which stdio uses unseen */
			kernel_only(o, VS_WHY_STDIO);
	}
	return rc;
}

/* Shuts the stream down, or the kernel's socket where there is none. */
int vs_opts_shutdown(struct vs_obj *o, int fd, int how)
{
	struct st_stream *s = vs_is_socket(o) ? vs_sock_stream(o, fd) : NULL;
	int rc;

	if (!s || how < SHUT_RD || how > SHUT_RDWR)
		return vs_real.shutdown(fd, how);
	if (how != SHUT_RD)
		atomic_store(&o->sock.shut, true);
	rc = st_shutdown(s, how);
	if (rc == 0)
		return 0;
	errno = rc < 0 ? -rc : rc;
	return -1;
}
