/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Relaying by circuits round a ring of HOSTS: RIGHTS circuits of HOPS hops to the right and LEFTS
 * to the left, each beginning at hosts 0, 1, 2 and so on.  docs/ring.md has the argument.
 *
 * A circuit has a fifo of N slots of its own at each relay and at the receiver.  The sender writes
 * slot n into the first fifo once the credit that it has read says that the receiver consumed slot
 * n-N.  A relay copies slot by slot into the next fifo without checking for room, and copies the
 * word of credit one host back.  Slots are not cleared: slot n is there when its sequence word is
 * that of n. The receiver consumes a slot, and returns credit, at any moment; with -DSTOPS it may
 * stop consuming for good at any moment.  Each host has THREADS transfer threads, each with
 * circuits of its own.
 *
 * Proved: no slot is written before the slot whose place it takes was read, slots are consumed once, in
 * order, as they were sent, and when no step is possible any more all slots of all circuits are
 * consumed and all credit is returned, except those of circuits whose receiver stopped.  Variants that
 * must be refuted:
 *   NO_CREDIT	the sender does not check the credit
 *   ONE_MORE	the sender writes slot n when n-N-1 was consumed
 *   EARLY_CREDIT	the receiver gives credit for a slot before it has read it
 *   HOP_CREDIT	a relay gives credit for slots that it copied itself, even if the next fifo has no room
 *   LAZY_CREDIT	a relay passes credit back only with a slot that it copies
 *   ONE_SEQ	the sequence word does not tell one round of a fifo from the next
 *   SEQ_FIRST	the sequence word is stored before the payload
 *   NARROW		a relay's fifo has a slot less than the receiver's
 *   NO_OWNER	any thread of a relay copies for any circuit
 *   SHARED	circuits share one fifo of a relay for each direction, with a check for room hop by
 *		hop: each host waits for the next.  It holds where circuits form no circle
 */
#ifndef HOSTS
#define HOSTS 4
#endif
#ifndef HOPS
#define HOPS 2
#endif
#ifndef RIGHTS
#define RIGHTS 4
#endif
#ifndef LEFTS
#define LEFTS 0
#endif
#ifndef N
#define N 1
#endif
#ifndef MESSAGES
#define MESSAGES (N + 1)
#endif
#ifndef THREADS
#define THREADS 1
#endif
#define CIRCUITS (RIGHTS + LEFTS)
#if CIRCUITS > 4 || HOPS > 3
#error there are at most four circuits of three hops
#endif
#define RIGHT(c) ((c) < RIGHTS)
#define FROM(c) (RIGHT(c) -> (c) : (c) - RIGHTS)

/* The host after k hops of circuit c, and its fifo there; words of credit lie at hops 0..HOPS-1. */
#define AT(c, k) (RIGHT(c) -> (FROM(c) + (k)) % HOSTS : (FROM(c) + HOSTS - (k)) % HOSTS)
#define FIFO(c, k) ((c) * HOPS + (k) - 1)
#define SLOT(c, k, n) (FIFO(c, k) * N + (n) % SLOTS(k))
#define CREDIT(c, k) credit[(c) * HOPS + (k)]

#ifdef ONE_SEQ
#define SEQ(n) 1
#else
#define SEQ(n) ((n) + 1)
#endif
#ifdef NARROW
#define SLOTS(k) ((k) < HOPS -> N - 1 : N)
#else
#define SLOTS(k) N
#endif
#ifdef ONE_MORE
#define OPEN (N + 1)
#else
#define OPEN N
#endif

byte payload[CIRCUITS * HOPS * N];
byte seq[CIRCUITS * HOPS * N];
byte consumed[CIRCUITS * HOPS];	/* slots read from a fifo */
byte credit[CIRCUITS * HOPS];
bool stopped[CIRCUITS];

/* A slot is written in two steps, the sequence word last. */
#ifdef SEQ_FIRST
#define FIRST(c, k, n, value) seq[SLOT(c, k, n)] = SEQ(n)
#define LAST(c, k, n, value) payload[SLOT(c, k, n)] = value
#else
#define FIRST(c, k, n, value) payload[SLOT(c, k, n)] = value
#define LAST(c, k, n, value) seq[SLOT(c, k, n)] = SEQ(n)
#endif
#define ROOM(c, k, n) assert((n) < consumed[FIFO(c, k)] + SLOTS(k))

#ifdef SHARED
/* At host h, for slots from the left and from the right. */
chan shared[2 * HOSTS] = [N] of { byte, byte };
#define INTO(host, d) shared[2 * ((d) == 0 -> ((host) + 1) % HOSTS : ((host) + HOSTS - 1) % HOSTS) + (d)]
#define FIRST_FIFO(c) INTO(FROM(c), (RIGHT(c) -> 0 : 1))
#endif

#ifdef NO_CREDIT
#define MAY_SEND true
#else
#define MAY_SEND (n < CREDIT(c, 0) + OPEN)
#endif

proctype sender(byte c)
{
	byte n;

end:	do
#ifdef SHARED
	:: atomic { n < MESSAGES && MAY_SEND && nfull(FIRST_FIFO(c)) -> FIRST_FIFO(c)!c, n; n++ }
#else
	:: atomic { n < MESSAGES && MAY_SEND -> ROOM(c, 1, n); FIRST(c, 1, n, n) };
		atomic { LAST(c, 1, n, n); n++ }
#endif
	:: n == MESSAGES -> break
	od
}

proctype receiver(byte c)
{
	byte n;

end:	do
#ifdef EARLY_CREDIT
	:: seq[SLOT(c, HOPS, n)] == SEQ(n) -> CREDIT(c, HOPS - 1) = n + 1
#endif
	:: atomic {
		seq[SLOT(c, HOPS, n)] == SEQ(n) ->
		assert(payload[SLOT(c, HOPS, n)] == n);
		n++;
		consumed[FIFO(c, HOPS)] = n
	}
	:: CREDIT(c, HOPS - 1) < n -> CREDIT(c, HOPS - 1) = n
#ifdef STOPS
	:: true -> stopped[c] = true; break
#endif
	od
}

#ifdef NO_OWNER
#define OWNED(c) true
#else
#define OWNED(c) ((c) % THREADS == t)
#endif
#define RELAYS(c, k) ((c) < CIRCUITS && (k) < HOPS && AT(c, k) == h && OWNED(c))

#define THERE(c, k, n) (seq[SLOT(c, k, n)] == SEQ(n))

inline forward(c, k)
{
	atomic {
		RELAYS(c, k) && THERE(c, k, consumed[FIFO(c, k)]) ->
		n = consumed[FIFO(c, k)];
		ROOM(c, (k) + 1, n);
		held = payload[SLOT(c, k, n)];
		FIRST(c, (k) + 1, n, held)
	};
	atomic {
		LAST(c, (k) + 1, n, held);
		consumed[FIFO(c, k)]++;
#ifdef LAZY_CREDIT
		CREDIT(c, (k) - 1) = CREDIT(c, k);
#endif
		n = 0;
		held = 0
	}
}

#ifdef HOP_CREDIT
#define RETURNED(c, k) consumed[FIFO(c, k)]
#else
#define RETURNED(c, k) CREDIT(c, k)
#endif

inline pass_credit(c, k)
{
	atomic {
		RELAYS(c, k) && CREDIT(c, (k) - 1) < RETURNED(c, k) ->
		CREDIT(c, (k) - 1) = RETURNED(c, k)
	}
}

#ifdef SHARED
/* The first slot of a shared fifo goes to its receiver, which has room, or to the next relay. */
proctype mover(byte h; byte d)
{
	byte c, n;

end:	do
	:: shared[2 * h + d]?<c, n> ->
		if
		:: AT(c, HOPS) == h ->
			atomic { shared[2 * h + d]?c, n; ROOM(c, HOPS, n); FIRST(c, HOPS, n, n) };
			LAST(c, HOPS, n, n)
		:: atomic {
			AT(c, HOPS) != h && nfull(INTO(h, d)) ->
			shared[2 * h + d]?c, n;
			INTO(h, d)!c, n
		}
		fi;
		c = 0;
		n = 0
	od
}
#endif

proctype relay(byte h; byte t)
{
	byte n, held;

end:	do
#ifndef SHARED
	:: forward(0, 1)
	:: forward(1, 1)
	:: forward(2, 1)
	:: forward(3, 1)
#if HOPS > 2
	:: forward(0, 2)
	:: forward(1, 2)
	:: forward(2, 2)
	:: forward(3, 2)
#endif
#endif
#ifndef LAZY_CREDIT
	:: pass_credit(0, 1)
	:: pass_credit(1, 1)
	:: pass_credit(2, 1)
	:: pass_credit(3, 1)
#if HOPS > 2
	:: pass_credit(0, 2)
	:: pass_credit(1, 2)
	:: pass_credit(2, 2)
	:: pass_credit(3, 2)
#endif
#endif
	od
}

#define THROUGH(c) \
	(stopped[c] || (consumed[FIFO(c, HOPS)] == MESSAGES && CREDIT(c, 0) == MESSAGES))

init
{
	byte i, j;

	atomic {
		for (i : 0 .. CIRCUITS - 1) {
			run sender(i);
			run receiver(i)
		}
		for (i : 0 .. HOSTS - 1) {
			for (j : 0 .. THREADS - 1) {
				run relay(i, j)
			}
#ifdef SHARED
			;
			run mover(i, 0);
			run mover(i, 1)
#endif
		}
		i = 0;
		j = 0
	};
	timeout ->
	for (i : 0 .. CIRCUITS - 1) {
		assert(THROUGH(i))
	}
}
