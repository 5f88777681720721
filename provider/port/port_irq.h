/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Interrupts.  All ports of a host interrupt one place; a process waits there for its doorbell
 * bits.  (A back end may have another one for bits that are the agents' alone; emu: agent_bits.)
 * The protocol that loses no wake-up:
 *
 *	ticket = port_irq_ticket(irq);
 *	clear and look at the doorbells and everything they announce;
 *	if nothing: port_irq_wait(irq, ticket, bits, timeout_ns);
 *
 * A process of the host that scribbles over its interrupt can keep others asleep, but not beyond
 * timeout_ns.
 */
#ifndef PORT_IRQ_H
#define PORT_IRQ_H

#include <stdatomic.h>
#include <stdint.h>

struct port_irq;

/* How every struct port_irq begins. */
struct port_irq_head {
	const _Atomic uint32_t *word; /* counts interrupts of this host */
};

/**
 * port_irq_ticket() - how many interrupts has this host had?
 *
 * Taken before the doorbells are looked at.  One load, ordered before later ones: cheap enough for
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
 * @timeout_ns:	nanoseconds; below 0 without limit.
 *
 * Blocks, using no processor time.  Any number of threads may wait, for the same bits or others.
 *
 * Return: 0 when something may have been rung; -ETIMEDOUT; -EINVAL for no @bits.
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
