/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contract of a provider, which connects VIs and moves their messages.
 *
 * It has two tables.  vi_provider_ops is cold: opening, connections, memory, waiting. vi_fast_ops is
 * hot and const, one per kind of path; it is chosen when a connection completes and cached in the VI.
 * vi_provider_fill() completes a sparse table: an operation that the provider lacks returns
 * -EOPNOTSUPP, never success.
 *
 * Return values: 0 or -errno of the table in vi_status.h.
 */
#ifndef VI_PROVIDER_H
#define VI_PROVIDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vipl.h"
#include "vipl_ext.h"

struct u_affinity;
struct u_place_decision;
struct vi_conn;
struct vi_nic;
struct vi_vi;

/* A copy of a VIP_NET_ADDRESS, checked. */
struct vi_addr {
	uint16_t host_len, disc_len;
	uint8_t host[32];
	uint8_t disc[64];
};

struct vi_provider_ops {
	const char *name;
	bool atomics; /* executes VIPX_CONTROL_OP_ATOMIC, on the levels that have RDMA reads */

	/*
	 * Opens the device into `nic`: sets nic->prov, nic->attrs, nic->address.
	 * -ENODEV when this provider does not know the device name.
	 */
	int (*nic_open)(struct vi_nic *nic, const char *device);
	void (*nic_close)(struct vi_nic *nic);

	/* The provider's part of a VI, for the life of the VI. */
	int (*vi_create)(struct vi_vi *vi);
	void (*vi_destroy)(struct vi_vi *vi);

	/*
	 * Connections.  All may block up to `deadline` (u_time.h) without holding locks.
	 * The provider moves the VI: Idle -> Connect Pending -> Connected or Idle again.
	 */
	int (*connect_wait)(struct vi_nic *nic, const struct vi_addr *local, int64_t deadline,
			    struct vi_addr *remote_out, struct vi_conn *conn);
	int (*connect_accept)(struct vi_conn *conn, struct vi_vi *vi);
	int (*connect_reject)(struct vi_conn *conn);
	int (*connect_request)(struct vi_vi *vi, const struct vi_addr *local,
			       const struct vi_addr *remote, int64_t deadline,
			       VIP_VI_ATTRIBUTES *remote_attrs_out);
	int (*peer_request)(struct vi_vi *vi, const struct vi_addr *local,
			    const struct vi_addr *remote, int64_t deadline);
	/* -EAGAIN while it is pending and the deadline `until` has not passed (0: just checked). */
	int (*peer_done)(struct vi_vi *vi, int64_t until, VIP_VI_ATTRIBUTES *remote_attrs_out);
	/* From any state to Idle; flushes both queues; the peer is told. */
	int (*disconnect)(struct vi_vi *vi);

	/*
	 * Allocates window memory (VipxAllocMem); *window_out is the record vi_mem_register() keeps.
	 * `sealed`: memory of a memfd, which can be mapped again (VipxAdoptMem).
	 */
	int (*window_alloc)(struct vi_nic *nic, uint64_t len, bool sealed, void **addr_out,
			    void **window_out);
	/* Frees a window, whose handle is no longer valid. May block; no locks held. */
	void (*window_free)(struct vi_nic *nic, void *window);
	/*
	 * The attributes of window memory have changed: on return no peer uses rights of the old ones.
	 * May block; no locks held.  The window may have been freed since the change.
	 */
	void (*window_revoke)(struct vi_nic *nic, void *window);
	/*
	 * Maps window memory of the other end, on this host, for loads and stores.  Waits for the other
	 * process, for a bounded time.  -EOPNOTSUPP: not in a window, or on another host; -EINVAL: there is
	 * no such memory, or its rights forbid it; -EISCONN: not connected; -ETIMEDOUT.  No locks held.
	 */
	int (*remote_map)(struct vi_vi *vi, uint64_t addr, uint64_t len, uint32_t handle,
			  void **out);
	/* -EINVAL: nothing is mapped there.  No locks held. */
	int (*remote_unmap)(struct vi_vi *vi, void *at);

	/*
	 * Waits until all that was posted on the VI's send queue before has been executed at the other
	 * end.  1: done; 0: the deadline has passed; -EISCONN: not connected, or no longer.  The
	 * caller holds only vi->ref, and may be cancelled as in vi_wait().
	 */
	int (*flush)(struct vi_vi *vi, int64_t deadline);

	/* Waiting: see vi_wait(). */
	int (*progress)(struct vi_nic *nic); /* moves packets of all VIs; returns how many moved */
	/* A slot or credit that comes from here on ends sleep() with this ticket. */
	uint32_t (*arm)(struct vi_nic *nic);
	void (*sleep)(struct vi_nic *nic, uint32_t ticket, int64_t deadline);
	/*
	 * Ends sleep() of every thread of this process on `nic` whose ticket is older than this
	 * call.  Rare; any lock may be held.
	 */
	void (*wake)(struct vi_nic *nic);
	/*
	 * Did the doorbell ring since the last such check?  Every empty poll calls it, so it is cheap;
	 * progress() then serves the connections that rang.  Does not block; any lock may be held.
	 */
	bool (*doorbell_rung)(struct vi_nic *nic);

	/* Binds the threads that move packets for this NIC only to the processors of the decision. */
	int (*place)(struct vi_nic *nic, const struct u_affinity *a,
		     const struct u_place_decision *d);

	/* Adds the provider's counters of the whole NIC. */
	void (*counters)(struct vi_nic *nic, VIPX_COUNTERS *sum);

	/* Names and routes.  host_out, host: nic->attrs.NicAddressLen bytes. */
	int (*name_to_host)(struct vi_nic *nic, const char *name, uint32_t index,
			    uint8_t *host_out);
	int (*host_to_name)(struct vi_nic *nic, const uint8_t *host, char *name_out, size_t size);
	int (*route)(struct vi_nic *nic, const struct vi_addr *remote, VIPX_ROUTE *out);
	/* The i-th host of the fabric (for autodiscovery): -ENOENT past the last. */
	int (*host_list)(struct vi_nic *nic, uint32_t i, uint8_t *host_out, uint32_t *hops_out);
};

#define VI_LONG_RECV 4096u /* no recv_posted() for shorter receives */

#define VI_POLL_MOVED 1
#define VI_POLL_PROGRESS 2

/* Something came for a receive queue when *word is `value`. */
struct vi_watch {
	const _Atomic uint32_t *word;
	uint32_t value;
};

#define VI_PACKED_MOST 112u /* messages of one vi_fast_ops.send_packed() */

/* Short plain sends of one length that go together in one packet. */
struct vi_packed {
	VIP_DESCRIPTOR *const *descs;
	VIP_MEM_HANDLE handle; /* of the memory of all descriptors */
	uint32_t count, length;
	uint8_t *at[VI_PACKED_MOST]; /* the data of each, checked under the `tpt_version` of the queue */
};

struct vi_fast_ops {
	uint32_t unqueued_max; /* the longest message for send_unqueued(), 0: none */
	/*
	 * Sends the message of a plain descriptor, `length` bytes at `at`, 1 to vi->unqueued_max, if it can
	 * be sent at once and is complete with that, and appends the descriptor to the queue, complete
	 * (vi_sq_append_done(), vi_sq_announce_done()).  The VI is Connected and nothing is before it
	 * on its queue.  `control` is 0 or VIP_CONTROL_IMMEDIATE.  Caller holds tx_lock.
	 */
	bool (*send_unqueued)(struct vi_vi *vi, VIP_DESCRIPTOR *desc, const uint8_t *at,
			      uint32_t length, uint16_t control);
	uint32_t packed_max; /* the most bytes of send_packed() together, 0: none */
	/*
	 * Sends two messages or more, of one byte or more each, together, and appends their descriptors to
	 * the queue, which has room for them, as started or complete.  The VI is Connected, and nothing on
	 * its queue has still to be started.  False: nothing was done.  Caller holds tx_lock.
	 */
	bool (*send_packed)(struct vi_vi *vi, const struct vi_packed *all);
	/*
	 * Stores a plain RDMA write, to `addr` in the peer's region `handle`, as send_unqueued() does, but
	 * the caller appends the descriptor.
	 */
	bool (*write_unqueued)(struct vi_vi *vi, const uint8_t *at, uint32_t length, uint64_t addr,
			       uint32_t handle);
	/*
	 * A descriptor was appended to the send queue of a Connected VI.  Sends it
	 * now if it can.  Caller holds tx_lock.
	 */
	void (*post_send)(struct vi_vi *vi);
	/*
	 * A plain receive of VI_LONG_RECV bytes or more, in window memory, was appended to
	 * the receive queue.  Caller holds rx_lock.
	 */
	void (*recv_posted)(struct vi_vi *vi);
	/*
	 * Consumes slots that came for this VI, whose rx_lock the caller holds.  Returns VI_POLL_MOVED
	 * if anything moved, and VI_POLL_PROGRESS if progress() has more to do once the lock is
	 * dropped.  Short and bounded.
	 */
	int (*poll_recv)(struct vi_vi *vi);
	/*
	 * Moves packets of this VI both ways.  Returns nonzero if anything moved.  Caller holds none
	 * of its locks, but may hold a cq->lock; a VI busy in another thread is skipped.  May be
	 * called for a VI that has just been disconnected or destroyed: then there is nothing to do.
	 */
	int (*progress)(struct vi_vi *vi);
	/*
	 * A CQ that polled this VI no longer does so: from now on arrivals must ring.
	 * Locks as for progress().  May be NULL.
	 */
	void (*unpolled)(struct vi_vi *vi);
	/*
	 * Tells which word a CQ can load, without lock, to learn that poll_recv() has something to do.
	 * False: there is no such word now, or sends wait, and the VI has to be polled.  If nothing
	 * can come *out stays as it is.  Caller holds rx_lock.  The provider calls vi_cq_unwatch()
	 * before the word's memory goes, and when it has consumed slots but completed nothing.
	 */
	bool (*watch)(struct vi_vi *vi, struct vi_watch *out);
};

/*
 * Fills a complete table: `in`, and for each missing operation one that does nothing and returns -EOPNOTSUPP.  Others
 * return: nic_open() -ENODEV, remote_unmap() -EINVAL, progress() and arm() 0, doorbell_rung() false; sleep() sleeps,
 * one millisecond at most.
 */
void vi_provider_fill(struct vi_provider_ops *out, const struct vi_provider_ops *in);

/* The providers, in order of trying; NULL-terminated (provider/providers.c). */
extern const struct vi_provider_ops *const vi_providers[];

/* The fast ops of a VI that is not connected: nothing moves. */
extern const struct vi_fast_ops vi_fast_none;

#endif
