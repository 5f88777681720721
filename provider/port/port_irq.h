/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupts.  All ports of a host interrupt one place; a process waits there for its doorbell
 * bits.  (A back end may have another place for bits that only agents use; emu: agent_bits.)  The
 * protocol that loses no wake-up:
 *
 *	ticket = port_irq_ticket(irq);
 *	clear the doorbells, then check them and everything that they announce;
 *	if nothing: port_irq_wait(irq, ticket, bits, timeout_ns);
 *
 * A process of the host that overwrites its interrupt word can keep others asleep, but not beyond
 * timeout_ns.
 */
#ifndef PORT_IRQ_H
#define PORT_IRQ_H

#include <stdatomic.h>
#include <stdint.h>

struct port_irq;

/* The beginning of every struct port_irq. */
struct port_irq_head {
	const _Atomic uint32_t *word; /* counts interrupts of this host */
};

/**
 * port_irq_ticket() - how many interrupts has this host had?
 *
 * Called before the doorbells are checked.  One load, ordered before later ones: cheap enough for
 * every poll.
 *
 * Return: the ticket for port_irq_wait().
 */
static inline uint32_t port_irq_ticket(const struct port_irq *irq)
{
	const struct port_irq_head *head = (const struct port_irq_head *)irq;

	return atomic_load_explicit(head->word, memory_order_acquire);
}

/**
 * port_irq_wait() - sleep until a doorbell bit is rung on any port of this host.
 * @ticket:	returns at once if any doorbell of the host was rung since it was taken.
 * @bits:	a mask, not 0.
 * @timeout_ns:	nanoseconds; below 0: no limit.
 *
 * Blocks, using no processor time.  Any number of threads may wait, for the same bits or others.
 *
 * Return: 0 when something may have been rung, also after a signal; -ETIMEDOUT; -EINVAL when @bits is 0.
 */
int port_irq_wait(struct port_irq *irq, uint32_t ticket, uint32_t bits, int64_t timeout_ns);

/**
 * port_irq_kick() - wake the threads of this host that wait for some bits, without a doorbell.
 * @bits:	a mask; 0 does nothing.
 *
 * For new work of this process.  Does not block.
 */
void port_irq_kick(struct port_irq *irq, uint32_t bits);

#endif
