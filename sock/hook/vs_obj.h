/* SPDX-License-Identifier: BSD-2-Clause */
/* The object of one or more descriptors: an open file description of the kernel that this library knows. */
#ifndef VS_OBJ_H
#define VS_OBJ_H

#include <pthread.h>
#include <stdbool.h>

#include "vs_auto.h"
#include "vs_base.h"
#include "vs_rules.h"
#include "vs_stat.h"

struct st_stream;
struct vs_epoll;
struct vs_item;

enum vs_state {
	VS_FRESH,      /* of socket() */
	VS_CONNECTING, /* connect() has said EINPROGRESS */
	VS_CONNECTED,  /* both addresses are known */
	VS_KERNEL,     /* the kernel's for ever: it listens, or is no stream */
};

/* The part of a TCP socket. */
struct vs_sock {
	_Atomic int state; /* enum vs_state */
	struct st_stream *_Atomic stream;
	_Atomic uint32_t owner; /* the process that counts it */
	int late_fd;		/* a copy until it is closed late */
	bool accepted;
	bool barred; /* `why` keeps it with the kernel */
	enum vs_why why;
	enum vs_policy policy;
	struct vs_addr peer, local;
	_Atomic bool nonblock;
	_Atomic int low_water;
	_Atomic uint64_t receive_ns, send_ns; /* SO_RCVTIMEO, SO_SNDTIMEO; 0: none */
	_Atomic int receive_buffer;	      /* the kernel's, in bytes; 0: the program set none */
	_Atomic int send_buffer;
	_Atomic bool asked;	/* st_promote() was called */
	_Atomic bool waited;	/* for an eager promotion */
	_Atomic bool was_on_vi; /* some byte went over a VI, or could have */
	_Atomic bool demoted;	/* it is counted as demoted */
	_Atomic bool shut;	/* for sending, by shutdown() */
	_Atomic bool cork;	/* TCP_CORK */
	_Atomic bool lingers;	/* SO_LINGER was set, or may have been */
	_Atomic int error;	/* met after bytes were moved: the next call tells it */
	struct vs_auto traffic;
	_Atomic uint64_t since; /* CLOCK_MONOTONIC, ns: when it was connected */
};

struct vs_obj {
	_Atomic uint32_t refs;			/* first: see vs_obj_create() */
	_Atomic uint32_t fds;			/* descriptors of the table */
	struct vs_obj *next_free;		/* or the next that ends late */
	bool (*_Atomic late)(struct vs_obj *o); /* vs_late.h */
	void (*end)(struct vs_obj *o);		/* frees what it has: the last reference is gone */
	enum vs_kind kind;
	struct vs_item *items; /* of epoll sets that hold this */
	union {
		struct vs_sock sock;
		struct vs_epoll *epoll;
	};
};

static inline bool vs_is_socket(const struct vs_obj *o)
{
	return o->kind == VS_SOCKET;
}

#endif
