// SPDX-License-Identifier: BSD-2-Clause
#include "vs_note.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/time.h>

#include "st_stream.h"
#include "vs_real.h"

/* The same with 64 bits for seconds, as time_t has where this library runs. */
#define RCVTIMEO_NEW 66
#define SNDTIMEO_NEW 67

int vs_int_of(const void *v, socklen_t len)
{
	int n = 0;

	memcpy(&n, v, len < sizeof(n) ? len : sizeof(n));
	return n;
}

/*
 * Notes a struct timeval in nanoseconds, 0 for no end, and 1 for one below 0, which is over at once; does nothing for a
 * value that is too short.
 */
static void note_timeout(_Atomic uint64_t *ns, const void *v, socklen_t len)
{
	struct timeval t;

	if (len < sizeof(t))
		return;
	memcpy(&t, v, sizeof(t));
	/* As the kernel: a time below 0 is over at once, and 0 has no end. */
	if (t.tv_sec < 0)
		atomic_store(ns, 1);
	else if (t.tv_sec > INT64_MAX / 2000000000)
		atomic_store(ns, 0);
	else
		atomic_store(ns, (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_usec * 1000);
}

void vs_note_socket(struct vs_sock *k, int name, const void *v, socklen_t len)
{
	if (name == SO_RCVTIMEO || name == RCVTIMEO_NEW)
		note_timeout(&k->receive_ns, v, len);
	else if (name == SO_SNDTIMEO || name == SNDTIMEO_NEW)
		note_timeout(&k->send_ns, v, len);
	else if (name == SO_RCVLOWAT)
		atomic_store(&k->low_water, vs_int_of(v, len) > 0 ? vs_int_of(v, len) : 1);
}

void vs_note_buffer(struct vs_sock *k, int fd, int name)
{
	bool receive = name == SO_RCVBUF || name == SO_RCVBUFFORCE;
	socklen_t len = sizeof(int);
	int bytes;

	if (!receive && name != SO_SNDBUF && name != SO_SNDBUFFORCE)
		return;
	if (vs_real.getsockopt(fd, SOL_SOCKET, receive ? SO_RCVBUF : SO_SNDBUF, &bytes, &len) == 0)
		atomic_store(receive ? &k->receive_buffer : &k->send_buffer, bytes);
}

/* Notes TCP_CORK; its end, or TCP_NODELAY, sends what was kept back. */
void vs_note_tcp(struct vs_sock *k, int name, const void *v, socklen_t len)
{
	struct st_stream *s = atomic_load(&k->stream);
	bool on = vs_int_of(v, len) != 0;

	if (name == TCP_CORK)
		atomic_store(&k->cork, on);
	if (s && ((name == TCP_CORK && !on) || (name == TCP_NODELAY && on)))
		st_flush(s);
}

void vs_note_all(struct vs_sock *k, int fd)
{
	static const int names[] = { SO_RCVTIMEO, SO_SNDTIMEO, SO_RCVLOWAT };
	struct timeval v;
	socklen_t len;
	size_t i;
	int cork;

	atomic_store(&k->lingers, true); /* close asks */
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		len = sizeof(v);
		if (vs_real.getsockopt(fd, SOL_SOCKET, names[i], &v, &len) == 0)
			vs_note_socket(k, names[i], &v, len);
	}
	len = sizeof(cork);
	if (vs_real.getsockopt(fd, IPPROTO_TCP, TCP_CORK, &cork, &len) == 0)
		vs_note_tcp(k, TCP_CORK, &cork, len);
}
