/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every PE serves one address, that of its host with a discriminator of job and PE.  One PE connects a
 * VI to another for its own operations, and neither ever waits for the other to want one.  `osh-serve`
 * takes what others ask for, and has each accepted by a thread of its own, `osh-accept`: that takes as
 * long as the agent of the other end needs, which is seconds where that is overloaded.  Two far PEs that use
 * each other have two connections; of two near ones the second maps the memory of the first over the
 * connection that this one made (osh_map.c).
 */
#include <stdlib.h>
#include <sys/resource.h>

#include "osh_accept.h"

#define ACCEPTS_MAX 32 /* at a time; with more the next is accepted by osh-serve itself */
#define WAKES_MAX 20

/* A connection that another PE made and that maps nothing. */
struct accepted {
	VIP_VI_HANDLE vi;
	int pe; /* at the other end */
	struct accepted *next;
};

/* A connection that a thread is about to accept. */
struct accept {
	VIP_CONN_HANDLE conn;
	int pe;
};

static struct {
	pthread_t serve;
	bool serving;
	atomic_bool ending;   /* of `serve` */
	pthread_mutex_t lock; /* of the list and the count */
	struct accepted *list;
	int accepts; /* threads that accept */
	pthread_cond_t no_accepts;
} accepting = { .lock = PTHREAD_MUTEX_INITIALIZER, .no_accepts = PTHREAD_COND_INITIALIZER };

/* Closes VIs whose other end has gone. The caller has the lock. */
static void sweep(void)
{
	struct accepted **at = &accepting.list, *m;
	VIP_VI_ATTRIBUTES attrs;
	VIP_BOOLEAN send, recv;
	VIP_VI_STATE state;

	while ((m = *at) != NULL) {
		if (VipQueryVi(m->vi, &state, &attrs, &send, &recv) == VIP_SUCCESS &&
		    state == VIP_STATE_ERROR) {
			*at = m->next;
			osh_conn_close(m->vi);
			free(m);
		} else {
			at = &m->next;
		}
	}
}

/*
 * Accepts a connection of PE `pe` and puts it on the list, or rejects it; may take seconds. Closes VIs whose other end
 * has gone before. Takes the lock itself.
 */
static void accept_one(VIP_CONN_HANDLE conn, int pe)
{
	VIP_VI_ATTRIBUTES attrs = osh_conn_attrs;
	VIP_RETURN rc = VIP_ERROR_RESOURCE;
	struct accepted *m;

	pthread_mutex_lock(&accepting.lock);
	sweep();
	pthread_mutex_unlock(&accepting.lock);
	m = malloc(sizeof(*m));
	if (m != NULL)
		rc = VipCreateVi(osh_pe.nic, &attrs, NULL, NULL, &m->vi);
	if (rc == VIP_SUCCESS) {
		rc = VipConnectAccept(conn, m->vi);
		if (rc == VIP_SUCCESS) {
			m->pe = pe;
			pthread_mutex_lock(&accepting.lock);
			m->next = accepting.list;
			accepting.list = m;
			pthread_mutex_unlock(&accepting.lock);
			return;
		}
		VipDestroyVi(m->vi);
	}
	free(m);
	if (rc == VIP_ERROR_RESOURCE) /* the PE that asks learns only that it is refused */
		osh_warn("no room for a connection of PE %d here" OSH_CONN_REMEDY, pe);
	VipConnectReject(conn);
}

/* Counts one thread less that accepts. */
static void accept_ended(void)
{
	pthread_mutex_lock(&accepting.lock);
	if (--accepting.accepts == 0)
		pthread_cond_broadcast(&accepting.no_accepts);
	pthread_mutex_unlock(&accepting.lock);
}

/* The body of a thread: accepts or rejects one connection, and counts itself off; frees `arg`, a struct accept. */
static void *accept_thread(void *arg)
{
	struct accept a = *(struct accept *)arg;

	free(arg);
	pthread_setname_np(pthread_self(), "osh-accept");
	accept_one(a.conn, a.pe);
	accept_ended();
	return NULL;
}

/*
 * Starts a thread that accepts *a and frees it. 0, or an errno, and then *a is still the caller's. Detached: the
 * program may call exit() at any time, and a thread that nobody joins is then one that was forgotten.
 */
static int accept_start(struct accept *a)
{
	pthread_attr_t attrs;
	pthread_t thread;
	int rc = pthread_attr_init(&attrs);

	if (rc != 0)
		return rc;
	pthread_attr_setdetachstate(&attrs, PTHREAD_CREATE_DETACHED);
	rc = pthread_create(&thread, &attrs, accept_thread, a);
	pthread_attr_destroy(&attrs);
	return rc;
}

/* Counts one thread more that accepts; false, and it counts none: ACCEPTS_MAX accept already. */
static bool may_start_accept(void)
{
	bool may;

	pthread_mutex_lock(&accepting.lock);
	may = accepting.accepts < ACCEPTS_MAX;
	accepting.accepts += may;
	pthread_mutex_unlock(&accepting.lock);
	return may;
}

/* Accepts or rejects a connection in a thread of its own, or in this one where none can be started. */
static void accept_apart(VIP_CONN_HANDLE conn, int pe)
{
	struct accept *a;

	if (may_start_accept()) {
		a = malloc(sizeof(*a));
		if (a != NULL) {
			*a = (struct accept){ .conn = conn, .pe = pe };
			if (accept_start(a) == 0)
				return;
		}
		free(a);
		accept_ended();
	}
	accept_one(conn, pe);
}

/* Waits until no thread accepts; takes the lock itself. */
static void await_accepts(void)
{
	pthread_mutex_lock(&accepting.lock);
	while (accepting.accepts > 0)
		pthread_cond_wait(&accepting.no_accepts, &accepting.lock);
	pthread_mutex_unlock(&accepting.lock);
}

/*
 * The thread osh-serve: serves requests of PEs of this job, rejects others, and ends the job when the agent is gone.
 */
static void *serve(void *unused)
{
	union osh_address here = *osh_conn_here(), from;
	VIP_VI_ATTRIBUTES attrs;
	VIP_CONN_HANDLE conn;
	VIP_RETURN rc;
	int state, pe;

	while (!accepting.ending) {
		rc = VipConnectWait(osh_pe.nic, &here.addr, VIP_INFINITE, &from.addr, &attrs,
				    &conn);
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
		pe = rc == VIP_SUCCESS ? osh_conn_pe_of(&from) : -1;
		if (pe >= 0)
			accept_apart(conn, pe);
		else if (rc == VIP_SUCCESS)
			VipConnectReject(conn);
		else if (rc != VIP_TIMEOUT)
			osh_conn_agent_gone(rc);
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	}
	return NULL;
}

int osh_accept_begin(void)
{
	int rc;

	accepting.ending = false;
	rc = pthread_create(&accepting.serve, NULL, serve, NULL);
	if (rc != 0)
		return -rc;
	accepting.serving = true;
	pthread_setname_np(accepting.serve, "osh-serve");
	return 0;
}

/* Closes all connections of the list, and leaves it empty. Without the lock: no other thread may use it any more. */
static void close_list(struct accepted **list)
{
	struct accepted *m;

	while ((m = *list) != NULL) {
		*list = m->next;
		osh_conn_close(m->vi);
		free(m);
	}
}

/* May a signal be queued for this process? Also true where its limit is not known. */
static bool has_pending_signals(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_SIGPENDING, &limit) != 0 || limit.rlim_cur > 0;
}

/*
 * Makes osh-serve end, and joins it. A connection of nobody's, which is refused, wakes the thread. pthread_cancel()
 * would have to queue a signal, which a limit may forbid (ulimit -i), and after one that could not be queued the
 * thread never ends; so it is for an agent that does not answer.
 */
static void end_serve(void)
{
	union osh_address there = *osh_conn_here(), nobody = osh_conn_nobody();
	VIP_VI_ATTRIBUTES attrs = osh_conn_attrs, theirs;
	VIP_VI_HANDLE vi;

	accepting.ending = true;
	for (int i = 0; pthread_tryjoin_np(accepting.serve, NULL) != 0; i++) {
		if (i == WAKES_MAX && has_pending_signals())
			pthread_cancel(accepting.serve);
		if ((i < WAKES_MAX || !has_pending_signals()) &&
		    VipCreateVi(osh_pe.nic, &attrs, NULL, NULL, &vi) == VIP_SUCCESS) {
			VipConnectRequest(vi, &nobody.addr, &there.addr, 100, &theirs);
			VipDestroyVi(vi);
		}
		osh_conn_nap();
	}
}

void osh_accept_end(void)
{
	if (accepting.serving) {
		end_serve();
		accepting.serving = false;
	}
	await_accepts();
	close_list(&accepting.list);
}

bool osh_accept_take(int pe, VIP_VI_HANDLE *vi)
{
	struct accepted **at = &accepting.list, *m;

	pthread_mutex_lock(&accepting.lock);
	while ((m = *at) != NULL && m->pe != pe)
		at = &m->next;
	if (m != NULL)
		*at = m->next;
	pthread_mutex_unlock(&accepting.lock);
	if (m == NULL)
		return false;
	*vi = m->vi;
	free(m);
	return true;
}
