/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Every PE serves one address, that of its host with a discriminator of job and PE.  One PE connects a
 * VI to another for its own operations, and neither ever waits for the other to want one.  `osh-serve`
 * takes what others ask for, and has each accepted by a thread of its own, `osh-accept`: that takes as
 * long as the other end needs to confirm it, which is seconds where it is stopped.  Two far PEs that use
 * each other have two connections; of two near ones the second maps the memory of the first over the
 * connection that this one made.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "osh_env.h"
#include "osh_limit.h"
#include "osh_link.h"
#include "osh_wait.h"

#define REMEDY                                                                                     \
	"; lower VIADUCT_RING_BYTES, or raise VIADUCT_WINDOW_BYTES or ulimit -n, of the agent"
#define PATIENCE_S 30  /* for a way to another host */
#define ACCEPTS_MAX 32 /* at a time; with more the next is accepted by osh-serve itself */
#define WAKES_MAX 20

struct discriminator {
	char kind[4];
	uint32_t pe;
	uint64_t job;
};

union address {
	VIP_NET_ADDRESS addr;
	uint8_t room[sizeof(VIP_NET_ADDRESS) + 64 + sizeof(struct discriminator)];
};

/* A connection, in a list. */
struct mapping {
	VIP_VI_HANDLE vi;
	int pe; /* at the other end */
	struct mapping *next;
};

/* A connection that a thread is about to accept. */
struct accept {
	VIP_CONN_HANDLE conn;
	int pe;
};

static struct {
	union address here;
	pthread_t serve;
	bool serving;
	atomic_bool ending;   /* of `serve` */
	pthread_mutex_t lock; /* of the lists and of `mapping` of the peers */
	pthread_cond_t mapped;
	struct mapping *maps,
		*accepted; /* those with mappings; of the others those that other PEs made */
	int accepts;	   /* threads that accept, under `lock` */
	pthread_cond_t no_accepts;
} link_ = { .lock = PTHREAD_MUTEX_INITIALIZER,
	    .mapped = PTHREAD_COND_INITIALIZER,
	    .no_accepts = PTHREAD_COND_INITIALIZER };

static const VIP_VI_ATTRIBUTES vi_attrs = {
	.ReliabilityLevel = VIP_SERVICE_RELIABLE_DELIVERY,
	.MaxTransferSize = 1u << 30,
	.EnableRdmaWrite = VIP_TRUE,
	.EnableRdmaRead = VIP_TRUE,
};

static void address_of(union address *a, const uint8_t *host, size_t len, int pe)
{
	struct discriminator d = { { 'o', 's', 'h', 0 }, (uint32_t)pe, osh_pe.job.id };

	memset(a, 0, sizeof(*a));
	a->addr.HostAddressLen = (VIP_UINT16)len;
	a->addr.DiscriminatorLen = sizeof(d);
	memcpy(a->addr.HostAddress, host, len);
	memcpy(a->addr.HostAddress + len, &d, sizeof(d));
}

/* ---- accepting ------------------------------------------------------------------------------- */

/* The PE that asks; -1: only PEs of this job are let in. */
static int pe_of(const union address *from)
{
	struct discriminator d;

	if (from->addr.DiscriminatorLen != sizeof(d))
		return -1;
	memcpy(&d, from->addr.HostAddress + from->addr.HostAddressLen, sizeof(d));
	if (memcmp(d.kind, "osh", 4) != 0 || d.job != osh_pe.job.id || d.pe >= (uint32_t)osh_pe.n)
		return -1;
	return (int)d.pe;
}

/* VIs whose other end has gone are given back. */
static void sweep(void)
{
	struct mapping **at = &link_.accepted, *m;
	VIP_VI_ATTRIBUTES attrs;
	VIP_BOOLEAN send, recv;
	VIP_VI_STATE state;

	while ((m = *at) != NULL) {
		if (VipQueryVi(m->vi, &state, &attrs, &send, &recv) == VIP_SUCCESS &&
		    state == VIP_STATE_ERROR) {
			*at = m->next;
			osh_link_disconnect(m->vi);
			free(m);
		} else {
			at = &m->next;
		}
	}
}

static void accept_one(VIP_CONN_HANDLE conn, int pe)
{
	VIP_VI_ATTRIBUTES attrs = vi_attrs;
	VIP_RETURN rc = VIP_ERROR_RESOURCE;
	struct mapping *m;

	pthread_mutex_lock(&link_.lock);
	sweep();
	pthread_mutex_unlock(&link_.lock);
	m = malloc(sizeof(*m));
	if (m != NULL)
		rc = VipCreateVi(osh_pe.nic, &attrs, NULL, NULL, &m->vi);
	if (rc == VIP_SUCCESS) {
		rc = VipConnectAccept(conn, m->vi);
		if (rc == VIP_SUCCESS) {
			m->pe = pe;
			pthread_mutex_lock(&link_.lock);
			m->next = link_.accepted;
			link_.accepted = m;
			pthread_mutex_unlock(&link_.lock);
			return;
		}
		VipDestroyVi(m->vi);
	}
	free(m);
	if (rc == VIP_ERROR_RESOURCE) /* the PE that asks learns only that it is refused */
		osh_warn("no room for a connection of PE %d here" REMEDY, pe);
	VipConnectReject(conn);
}

static void accept_ended(void)
{
	pthread_mutex_lock(&link_.lock);
	if (--link_.accepts == 0)
		pthread_cond_broadcast(&link_.no_accepts);
	pthread_mutex_unlock(&link_.lock);
}

static void *accept_thread(void *arg)
{
	struct accept a = *(struct accept *)arg;

	free(arg);
	pthread_setname_np(pthread_self(), "osh-accept");
	accept_one(a.conn, a.pe);
	accept_ended();
	return NULL;
}

/* Detached: the program may call exit() at any time, and a thread that nobody joins is then one that was forgotten. */
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

static bool may_start_accept(void)
{
	bool may;

	pthread_mutex_lock(&link_.lock);
	may = link_.accepts < ACCEPTS_MAX;
	link_.accepts += may;
	pthread_mutex_unlock(&link_.lock);
	return may;
}

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

static void await_accepts(void)
{
	pthread_mutex_lock(&link_.lock);
	while (link_.accepts > 0)
		pthread_cond_wait(&link_.no_accepts, &link_.lock);
	pthread_mutex_unlock(&link_.lock);
}

static _Noreturn void agent_is_gone(VIP_RETURN rc)
{
	osh_fatal("the agent of this host is gone (VipConnectWait: %s)", VipxErrorString(rc));
}

/* An address of this host that no PE has, and none asks for. */
static union address nobody_here(void)
{
	union address nobody = link_.here;
	uint8_t *discriminator = nobody.addr.HostAddress + nobody.addr.HostAddressLen;

	discriminator[0] ^= 1;
	return nobody;
}

void osh_link_check_agent(void)
{
	union address nobody = nobody_here(), from;
	VIP_VI_ATTRIBUTES attrs;
	VIP_CONN_HANDLE conn;
	VIP_RETURN rc;

	rc = VipConnectWait(osh_pe.nic, &nobody.addr, 0, &from.addr, &attrs, &conn);
	if (rc == VIP_ERROR_RESOURCE)
		agent_is_gone(rc);
}

static void *serve(void *unused)
{
	VIP_VI_ATTRIBUTES attrs;
	union address from;
	VIP_CONN_HANDLE conn;
	VIP_RETURN rc;
	int state, pe;

	while (!link_.ending) {
		rc = VipConnectWait(osh_pe.nic, &link_.here.addr, VIP_INFINITE, &from.addr, &attrs,
				    &conn);
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
		pe = rc == VIP_SUCCESS ? pe_of(&from) : -1;
		if (pe >= 0)
			accept_apart(conn, pe);
		else if (rc == VIP_SUCCESS)
			VipConnectReject(conn);
		else if (rc != VIP_TIMEOUT)
			agent_is_gone(rc);
		pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
	}
	return NULL;
}

/* ---- connecting ------------------------------------------------------------------------------ */

static void nap_ms(void)
{
	struct timespec t = { 0, 1000000 };

	nanosleep(&t, NULL);
}

/*
 * The other PE may accept many connections at a time, be short of a processor or be stopped, as by a
 * debugger, for any time.  One that has ended ends the job.
 */
static bool is_late(VIP_RETURN rc)
{
	return rc == VIP_NO_MATCH || rc == VIP_TIMEOUT;
}

/* Of what a connection needs: here, or at the other PE, which rejects it then. */
static bool is_short(VIP_RETURN rc)
{
	return rc == VIP_ERROR_RESOURCE || rc == VIP_REJECT;
}

VIP_VI_HANDLE osh_link_connect(const char *fn, int pe)
{
	const struct osh_peer *p = &osh_pe.peers[pe];
	VIP_VI_ATTRIBUTES attrs = vi_attrs, theirs;
	time_t end = time(NULL) + PATIENCE_S;
	union address there, mine = link_.here;
	VIP_VI_HANDLE vi;
	VIP_RETURN rc;

	rc = VipCreateVi(osh_pe.nic, &attrs, NULL, NULL, &vi);
	if (rc != VIP_SUCCESS) {
		osh_link_check_agent();
		osh_fatal("%s: no VI for a connection to PE %d (%s)", fn, pe, VipxErrorString(rc));
	}
	address_of(&there, p->host, p->host_len, pe);
	osh_wait_show(fn, NULL, pe);
	while ((rc = VipConnectRequest(vi, &mine.addr, &there.addr, 2000, &theirs)) !=
	       VIP_SUCCESS) {
		if (!is_late(rc) && (rc != VIP_NOT_REACHABLE || time(NULL) > end)) {
			osh_link_check_agent();
			osh_fatal_lost("%s: no connection to PE %d: VipConnectRequest says %s%s",
				       fn, pe, VipxErrorString(rc), is_short(rc) ? REMEDY : "");
		}
		nap_ms();
	}
	osh_wait_shown_end();
	return vi;
}

void osh_link_disconnect(VIP_VI_HANDLE vi)
{
	VIP_DESCRIPTOR *desc;

	VipDisconnect(vi);
	while (VipSendDone(vi, &desc) != VIP_NOT_DONE && desc != NULL)
		;
	VipDestroyVi(vi);
}

/* ---- mapping --------------------------------------------------------------------------------- */

void osh_link_publish(struct osh_peer *p, int s)
{
	if (!osh_env.debug)
		atomic_store_explicit(&p->span[s], osh_pe.seg[s].len, memory_order_release);
}

static void map_segment(const char *fn, VIP_VI_HANDLE vi, int pe, int s)
{
	struct osh_peer *p = &osh_pe.peers[pe];
	char limit[OSH_LIMIT_TEXT] = "";
	VIP_PVOID at;
	VIP_RETURN rc;

	rc = VipxMapRemote(vi, p->seg[s].base, osh_pe.seg[s].len, p->seg[s].handle, &at);
	if (rc != VIP_SUCCESS) {
		osh_link_check_agent();
		if (rc == VIP_ERROR_RESOURCE)
			osh_limit_find(osh_pe.seg[s].len, limit);
		osh_fatal_lost("%s: the memory of PE %d cannot be mapped (%s)%s%s", fn, pe,
			       VipxErrorString(rc), limit[0] != '\0' ? ": " : "", limit);
	}
	p->at[s] = at;
	osh_link_publish(p, s);
}

/* The connection that a near PE made, if it made one. */
static struct mapping *take_accepted(int pe)
{
	struct mapping **at = &link_.accepted, *m;

	while ((m = *at) != NULL && m->pe != pe)
		at = &m->next;
	if (m != NULL)
		*at = m->next;
	return m;
}

/* Over that connection, or over a new one. */
static struct mapping *map_peer(const char *fn, int pe, struct mapping *m)
{
	if (m == NULL) {
		m = malloc(sizeof(*m));
		if (m == NULL)
			osh_fatal("%s: out of memory", fn);
		m->pe = pe;
		m->vi = osh_link_connect(fn, pe);
	}
	for (int s = OSH_DATA; osh_pe.peers[pe].same_program && s < osh_pe.segments; s++)
		map_segment(fn, m->vi, pe, s);
	map_segment(fn, m->vi, pe, OSH_HEAP);
	return m;
}

bool osh_link_map(const char *fn, int pe)
{
	struct osh_peer *p = &osh_pe.peers[pe];
	struct mapping *m;

	if (pe == osh_pe.me)
		return true;
	if (!p->near)
		return false;
	pthread_mutex_lock(&link_.lock);
	while (p->mapping)
		pthread_cond_wait(&link_.mapped, &link_.lock);
	if (p->at[OSH_HEAP] == NULL) {
		p->mapping = true;
		m = take_accepted(pe);
		pthread_mutex_unlock(&link_.lock);
		m = map_peer(fn, pe, m);
		pthread_mutex_lock(&link_.lock);
		p->mapping = false;
		m->next = link_.maps;
		link_.maps = m;
		pthread_cond_broadcast(&link_.mapped);
	}
	pthread_mutex_unlock(&link_.lock);
	return true;
}

/* ---- beginning and end ------------------------------------------------------------------------ */

int osh_link_begin(const uint8_t *host, size_t host_len)
{
	int rc;

	address_of(&link_.here, host, host_len, osh_pe.me);
	link_.ending = false;
	rc = pthread_create(&link_.serve, NULL, serve, NULL);
	if (rc != 0)
		return -rc;
	link_.serving = true;
	pthread_setname_np(link_.serve, "osh-serve");
	return 0;
}

static void close_list(struct mapping **list)
{
	struct mapping *m;

	while ((m = *list) != NULL) {
		*list = m->next;
		osh_link_disconnect(m->vi);
		free(m);
	}
}

static bool has_pending_signals(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_SIGPENDING, &limit) != 0 || limit.rlim_cur > 0;
}

/*
 * A connection of nobody's, which is refused, wakes the thread.  pthread_cancel() would have to queue a signal, which a
 * limit may forbid (ulimit -i), and behind one that could not be queued the thread never ends; so it is for an agent
 * that does not answer.
 */
static void end_serve(void)
{
	union address there = link_.here, nobody = nobody_here();
	VIP_VI_ATTRIBUTES attrs = vi_attrs, theirs;
	VIP_VI_HANDLE vi;

	link_.ending = true;
	for (int i = 0; pthread_tryjoin_np(link_.serve, NULL) != 0; i++) {
		if (i == WAKES_MAX && has_pending_signals())
			pthread_cancel(link_.serve);
		if ((i < WAKES_MAX || !has_pending_signals()) &&
		    VipCreateVi(osh_pe.nic, &attrs, NULL, NULL, &vi) == VIP_SUCCESS) {
			VipConnectRequest(vi, &nobody.addr, &there.addr, 100, &theirs);
			VipDestroyVi(vi);
		}
		nap_ms();
	}
}

void osh_link_end(void)
{
	if (link_.serving) {
		end_serve();
		link_.serving = false;
	}
	await_accepts();
	close_list(&link_.maps);
	close_list(&link_.accepted);
}
