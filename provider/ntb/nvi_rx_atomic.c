/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Atomic operations of the peer.  The thread that consumes the request executes it, by an instruction of the
 * processor: so it is atomic with respect to all threads that have access to the memory, in this process and in
 * others.
 *
 * It is executed once: the slot is consumed before the lock is dropped under which it was executed, and slots are
 * published again over another path only from the first that was not consumed.  The answer is an ordinary slot, or
 * waits in the queue of answers, which outlives the path.
 */
#include "nvi_rx_atomic.h"
#include "nvi_publish.h"
#include "nvi_rx_read.h"
#include "vi_wq_hot.h"

/*
 * operate32() and operate64() execute the operation at `at`, and return the value that was there before.  A message
 * of another process orders this operation and the program's accesses to the memory.
 */
#define DEFINE_OPERATE(bits)                                                                       \
	U_ORDERED_OUTSIDE                                                                          \
	static uint##bits##_t operate##bits(uint##bits##_t *at, const struct w_atomic *a)          \
	{                                                                                          \
		uint##bits##_t operand = (uint##bits##_t)a->operand;                               \
		uint##bits##_t old = (uint##bits##_t)a->compare;                                   \
                                                                                                   \
		switch (a->op) {                                                                   \
		case W_ATOMIC_SWAP:                                                                \
			return __atomic_exchange_n(at, operand, __ATOMIC_SEQ_CST);                 \
		case W_ATOMIC_COMPARE_SWAP:                                                        \
			__atomic_compare_exchange_n(at, &old, operand, false, __ATOMIC_SEQ_CST,    \
						    __ATOMIC_SEQ_CST);                             \
			return old;                                                                \
		case W_ATOMIC_ADD:                                                                 \
			return __atomic_fetch_add(at, operand, __ATOMIC_SEQ_CST);                  \
		case W_ATOMIC_AND:                                                                 \
			return __atomic_fetch_and(at, operand, __ATOMIC_SEQ_CST);                  \
		case W_ATOMIC_OR:                                                                  \
			return __atomic_fetch_or(at, operand, __ATOMIC_SEQ_CST);                   \
		case W_ATOMIC_XOR:                                                                 \
			return __atomic_fetch_xor(at, operand, __ATOMIC_SEQ_CST);                  \
		default:                                                                           \
			return __atomic_load_n(at, __ATOMIC_SEQ_CST);                              \
		}                                                                                  \
	}
DEFINE_OPERATE(32)
DEFINE_OPERATE(64)

/* Returns the memory, or NULL: the VI or the region does not allow the operation. */
static void *find_target(struct nvi_chan *ch, const struct w_rdma *rdma)
{
	struct vi_vi *vi = ch->vi;

	if (!vi->rdma_write || !vi->rdma_read)
		return NULL;
	return vi_tpt_check(vi->nic, vi->ptag, rdma->addr, rdma->length, rdma->handle,
			    VI_REMOTE_WRITE | VI_REMOTE_READ);
}

/* Sends the answer at once if nothing has to go before it, else queues it.  Takes tx_lock. */
static void send_answer(struct nvi_chan *ch, const struct nvi_answer *answer)
{
	bool sent;

	u_biased_take(&ch->vi->tx_lock);
	sent = nvi_publish_read_answer(ch, &answer->value, answer->rdma.length);
	u_biased_drop(&ch->vi->tx_lock);
	if (!sent)
		nvi_rx_queue_answer(ch, answer);
}

void nvi_rx_atomic_request(struct nvi_chan *ch, const struct nvi_rx_slot *s)
{
	struct nvi_answer answer = { .rdma = s->rdma, .is_value = true, .slot = s->number };
	void *at;

	if (!nvi_rx_reliable(ch) || nvi_rx_answers_full(ch)) {
		nvi_rx_protocol_error(ch, s);
		return;
	}
	at = find_target(ch, &s->rdma);
	if (at == NULL) {
		nvi_rx_refuse_request(ch, s, VIP_ERROR_RDMAW_PROT);
		return;
	}
	answer.value = s->rdma.length == sizeof(uint32_t) ? operate32(at, &s->atomic)
							  : operate64(at, &s->atomic);
	if (!s->atomic.fetch)
		answer.rdma.length = 0;
	send_answer(ch, &answer);
}
