/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jnio.h - the functions of org.viaduct.nio: streams of sockets, and the part of a selector that concerns them
 *
 * Arguments are numbers. Java sees to it that a stream or a set is not used after it was freed, and that a set is
 * used by one thread at a time. No call sleeps but those named so.
 */
#ifndef JNIO_H
#define JNIO_H

#include <jni.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "st_stream.h"
#include "vs_auto.h"
#include "vs_env.h"

#define JNIO_NAME(method) Java_org_viaduct_nio_NioCalls_##method

struct jnio_set;

struct jnio_stream {
	struct st_stream *s;
	int fd;
	enum vs_policy policy;
	char host[VS_NAME_MAX];
	uint64_t since;	     /* CLOCK_MONOTONIC, ns: when it was connected */
	_Atomic bool asked;  /* st_promote() was called, or is not to be called any more */
	_Atomic bool waited; /* for an eager promotion */
	struct vs_auto traffic;
	/* The set whose wait object the stream is to use: the stream has a reference to it. */
	struct jnio_set *_Atomic set;
};

/* A slot of a selector, for the stream of one of its keys. */
struct jnio_slot {
	struct jnio_stream *t; /* NULL: free */
	unsigned interest;     /* ST_IN, ST_OUT */
	unsigned kernel;       /* events that Java was told to have the JDK's selector ask for */
	struct st_wait *wait;  /* whose descriptor is in the epoll set */
	uint64_t quiet;	       /* 1 + the count of changes of is_quiet(), or 0: to be looked at */
};

struct jnio_set {
	_Atomic int refs;
	int epoll_fd;	 /* of the JDK's selector */
	int own_fd;	 /* a copy of st_sleep_begin()'s of the thread that slept last, or -1 */
	uint64_t thread; /* that thread's number */
	bool registered; /* it sleeps */
	struct st_wait *wait;
	struct jnio_slot *slots;
	int count, size, next;
};

static inline void *jnio_ptr(jlong address)
{
	return (void *)(uintptr_t)address;
}

uint64_t jnio_now_ns(void);
struct timespec jnio_in_ns(uint64_t ns);

/* The wait object of the set that the stream was in first, or NULL. */
struct st_wait *jnio_wait_for(struct jnio_stream *t);
void jnio_set_get(struct jnio_set *set);
void jnio_set_put(struct jnio_set *set);

extern uint32_t jnio_spin_us;

#endif
