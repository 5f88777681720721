/* SPDX-License-Identifier: BSD-2-Clause */
/* Streams: when they are promoted, and their bytes. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "jnio.h"

#define SWITCH_NS 100000000

/* A stream for a connected socket, or 0: it stays with the kernel. */
JNIEXPORT jlong JNICALL JNIO_NAME(create)(JNIEnv *env, jclass self, jint fd, jboolean accepted)
{
	struct st_origin origin = { .size = sizeof(origin),
				    .role = accepted ? ST_ACCEPTOR : ST_CONNECTOR };
	socklen_t n = sizeof(origin.remote), m = sizeof(origin.local);
	struct vs_addr peer, local;
	struct jnio_stream *t;

	if (getpeername(fd, (struct sockaddr *)&origin.remote, &n) != 0 ||
	    getsockname(fd, (struct sockaddr *)&origin.local, &m) != 0 ||
	    !vs_addr_of((struct sockaddr *)&origin.remote, n, &peer) ||
	    !vs_addr_of((struct sockaddr *)&origin.local, m, &local))
		return 0;
	t = calloc(1, sizeof(*t));
	if (!t)
		return 0;
	t->fd = fd;
	t->policy = vs_rules_policy(&vs_env.rules, vs_env.program, &peer, &local, vs_env.promote);
	t->since = jnio_now_ns();
	if (t->policy == VS_NEVER || !vs_env_host(&vs_env, &peer, t->host) ||
	    st_create(fd, &origin, &t->s) != 0) {
		free(t);
		return 0;
	}
	return (jlong)(uintptr_t)t;
}

static void promote(struct jnio_stream *t)
{
	if (!atomic_exchange(&t->asked, true))
		st_promote(t->s, t->host, jnio_wait_for(t), 0);
}

static void moved(struct jnio_stream *t, bool sent, size_t bytes)
{
	if (atomic_load_explicit(&t->asked, memory_order_relaxed))
		return;
	if (vs_auto_count(&t->traffic, sent, bytes) || jnio_now_ns() - t->since >= VS_AUTO_NS)
		promote(t);
}

/* Before the first use of one that is promoted eagerly; sleeps until that is done, for 0.2 s at most. */
JNIEXPORT void JNICALL JNIO_NAME(settle)(JNIEnv *env, jclass self, jlong handle)
{
	struct jnio_stream *t = jnio_ptr(handle);
	struct pollfd p[2] = { { .events = POLLIN }, { .fd = t->fd, .events = POLLRDHUP } };
	uint64_t now = jnio_now_ns(), end = now + VS_EAGER_NS;
	struct st_ready ready;

	if (t->policy != VS_EAGER || atomic_exchange(&t->waited, true))
		return;
	promote(t);
	while (now < end && !p[1].revents && !st_on_tcp(t->s) &&
	       st_on_vi(t->s) != (ST_IN | ST_OUT)) {
		p[0].fd = st_sleep_begin(t->s, NULL);
		st_ready(t->s, &ready);
		if (p[0].fd >= 0 && st_on_vi(t->s) != (ST_IN | ST_OUT))
			poll(p, 2, 20);
		st_sleep_end();
		now = jnio_now_ns();
	}
}

/* Bytes, 0 at the end of the stream, or -errno. */
JNIEXPORT jint JNICALL JNIO_NAME(receive)(JNIEnv *env, jclass self, jlong handle, jlong address,
					  jint count)
{
	struct jnio_stream *t = jnio_ptr(handle);
	struct iovec v = { .iov_base = jnio_ptr(address), .iov_len = (size_t)count };
	ssize_t n = st_recv(t->s, &v, 1, 0);

	if (n > 0)
		moved(t, false, (size_t)n);
	return (jint)n;
}

/*
 * A direction that moves to a VI takes no bytes until the other end has agreed. The kernel's socket would have room
 * then, so a call that must not block waits for a moment, too.
 */
static bool between_paths(struct st_stream *s)
{
	struct timespec until = jnio_in_ns(SWITCH_NS);
	struct st_ready ready;

	st_ready(s, &ready);
	if ((ready.kernel & ST_OUT) || (st_on_vi(s) & ST_OUT))
		return false;
	return st_sleep(s, ST_OUT, &until) > 0;
}

/* Bytes, or -errno. */
JNIEXPORT jint JNICALL JNIO_NAME(send)(JNIEnv *env, jclass self, jlong handle, jlong address,
				       jint count)
{
	struct jnio_stream *t = jnio_ptr(handle);
	struct iovec v = { .iov_base = jnio_ptr(address), .iov_len = (size_t)count };
	ssize_t n = st_send(t->s, &v, 1, 0);

	if (n == -EAGAIN && between_paths(t->s))
		n = st_send(t->s, &v, 1, 0);
	if (n > 0)
		moved(t, true, (size_t)n);
	return (jint)n;
}

/* Sleeps until one of the events is there, for a time in ns, or without end: -1. 0, or -errno. */
JNIEXPORT jint JNICALL JNIO_NAME(sleep)(JNIEnv *env, jclass self, jlong handle, jint events,
					jlong ns)
{
	struct jnio_stream *t = jnio_ptr(handle);
	struct timespec until = { 0 };
	int rc;

	if (ns >= 0)
		until = jnio_in_ns((uint64_t)ns);
	do
		rc = st_sleep(t->s, (unsigned)events, ns >= 0 ? &until : NULL);
	while (rc == -EINTR);
	return rc < 0 ? rc : 0;
}

JNIEXPORT jlong JNICALL JNIO_NAME(readable)(JNIEnv *env, jclass self, jlong handle)
{
	struct jnio_stream *t = jnio_ptr(handle);

	return st_readable_bytes(t->s);
}

JNIEXPORT jint JNICALL JNIO_NAME(shutdown)(JNIEnv *env, jclass self, jlong handle, jint how)
{
	struct jnio_stream *t = jnio_ptr(handle);

	return st_shutdown(t->s, how);
}

static bool settled(struct st_stream *s)
{
	return st_on_tcp(s) && st_settle(s) != -EAGAIN;
}

/* Back to TCP for good; sleeps until all is there, for a second at most. 0, or -ETIMEDOUT. */
JNIEXPORT jint JNICALL JNIO_NAME(demote)(JNIEnv *env, jclass self, jlong handle)
{
	struct jnio_stream *t = jnio_ptr(handle);
	uint64_t end = jnio_now_ns() + UINT64_C(1000000000);
	struct pollfd p = { .events = POLLIN };

	atomic_store(&t->asked, true);
	st_demote(t->s, ST_WHY_ASKED);
	while (!settled(t->s)) {
		if (jnio_now_ns() >= end)
			return -ETIMEDOUT;
		p.fd = st_sleep_begin(t->s, NULL);
		/* Room for what st_settle() sends wakes nobody, and without a descriptor this is a pause. */
		if (!settled(t->s))
			poll(&p, 1, 20);
		st_sleep_end();
	}
	return 0;
}

/* As the JDK's exceptions tell it. */
JNIEXPORT jstring JNICALL JNIO_NAME(errorText)(JNIEnv *env, jclass self, jint error)
{
	char room[128];

	return (*env)->NewStringUTF(env, strerror_r(error, room, sizeof(room)));
}

/*
 * Ends the stream; threads that sleep for it wake. The caller closes the descriptor next. If the socket blocks and has
 * SO_LINGER, the call sleeps until the other end has all.
 */
JNIEXPORT void JNICALL JNIO_NAME(close)(JNIEnv *env, jclass self, jlong handle, jboolean blocking)
{
	struct jnio_stream *t = jnio_ptr(handle);
	struct linger l = { 0 };
	enum st_close_how how = ST_CLOSE_ORDERLY;

	if (st_get_linger(t->s, &l) == 0 && l.l_onoff) {
		if (l.l_linger == 0)
			how = ST_CLOSE_ABORT;
		else if (blocking)
			st_linger(t->s, (uint32_t)l.l_linger * 1000);
	}
	st_close(t->s, how);
}

/* After close(), when no thread uses it. */
JNIEXPORT void JNICALL JNIO_NAME(free)(JNIEnv *env, jclass self, jlong handle)
{
	struct jnio_stream *t = jnio_ptr(handle);
	struct jnio_set *set = atomic_load(&t->set);

	st_put(t->s);
	if (set)
		jnio_set_put(set);
	free(t);
}
