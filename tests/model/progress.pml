/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One end of a channel whose threads leave work to each other: provider/ntb/nvi_progress.c, nvi_rx_read.c,
 * nvi_credit.c.  The locks of the VI are tried, not awaited, so a thread that finds one held goes on and leaves what
 * it would have done to others.
 *
 * The peer asks for READS reads, and consumes the slots of the answers, both at any moment.  A thread of the program
 * polls for a while, then ends: it receives, queues an answer for each request, and sends answers when it has dropped
 * rx_lock.  Another thread takes tx_lock POSTS times and sends no answer: it does nothing, or takes in credit, as a
 * flush or a write that is stored directly does, or sends a message.  The engine arms the channel, checks it once more and sleeps
 * until the doorbell is rung or a thread wakes it, then makes progress where something came.  What is stored is
 * seen at once: sleep.pml has the order of memory.
 *
 * Proved: all reads are answered (no invalid end state); and tx.more is set only while tx.waiting is, since nothing
 * else would make a thread reset it, and the engine would not sleep again.
 *
 * Variants that must be refuted:
 *	NO_MORE		an answer is queued without setting tx.more
 *	ALWAYS_MORE	queuing sets tx.more, also if another thread has begun the answer by then
 *	UNTOLD		a thread takes in the credit for which answers wait, and does not set tx.more
 *	LATE_MORE	it sets tx.more only after it has made the channel polled
 */
#ifndef READS
#define READS 2
#endif
#ifndef POSTS
#define POSTS 1
#endif
#ifndef SLOTS
#define SLOTS 1
#endif

/* The peer's stores. */
byte requests;
byte credit;

/* This end. */
bool rx_lock, tx_lock;
byte consumed;			/* rx.seq */
byte tail, head;		/* answers */
byte sent;			/* tx.seq */
byte seen;			/* tx.credit */
bool waiting, more;
bool armed, asks_credit;	/* the notify request */
byte arm_slot;
bool rung, woken;		/* of the engine */
byte answered;			/* answers that the peer has consumed */
byte answers[READS + POSTS + 1];	/* slots: 1 is an answer, 0 a message */

#define LEFT (tail != head)

inline disarm()
{
	if
	:: armed -> atomic { armed = false; woken = true }
	:: else
	fi
}

/* nvi_tx_update_waiting(); no other sends than answers wait. */
inline update_waiting()
{
	waiting = LEFT
}

/* nvi_tx_take_credit() */
inline take_credit()
{
	if
	:: credit != seen ->
		seen = credit;
#ifdef LATE_MORE
		disarm();
#endif
#ifndef UNTOLD
		if
		:: LEFT -> more = true
		:: else
		fi;
#endif
#ifndef LATE_MORE
		disarm()
#endif
	:: else
	fi
}

inline publish(is_answer)
{
	atomic { answers[sent] = is_answer; sent++ }
}

/* nvi_tx_progress() */
inline send_answers()
{
	take_credit();
	do
	:: LEFT && sent - seen < SLOTS -> head++; publish(1)
	:: LEFT && sent - seen >= SLOTS && credit != seen -> take_credit()
	:: else -> more = false; break
	od;
	update_waiting()
}

inline take_tx()
{
	atomic { !tx_lock -> tx_lock = true }
}

inline drop_tx()
{
	atomic { assert(!more || waiting); tx_lock = false }
}

/* nvi_rx_read_request(), of which every answer is queued */
inline receive()
{
	tail++;
	take_tx();
	update_waiting();
#ifdef ALWAYS_MORE
	more = true;
#else
#ifndef NO_MORE
	if
	:: LEFT -> more = true
	:: else
	fi;
#endif
#endif
	drop_tx();
	consumed++;
	disarm()
}

/* nvi_progress_chan() */
inline progress()
{
	go_on = waiting;
	if
	:: atomic { !rx_lock -> rx_lock = true };
		if
		:: requests != consumed -> receive()
		:: else
		fi;
		go_on = waiting && (credit != seen || more || LEFT);
		rx_lock = false
	:: rx_lock
	fi;
	if
	:: go_on ->
		if
		:: atomic { !tx_lock -> tx_lock = true }; send_answers(); drop_tx()
		:: tx_lock
		fi
	:: else
	fi;
	go_on = false
}

active proctype peer()
{
	do
	:: requests < READS ->
		requests++;
		atomic { if
		:: armed -> rung = true
		:: else
		fi }
	:: credit < sent ->
		atomic { answered = answered + answers[credit]; credit++ };
		atomic { if
		:: armed && asks_credit -> rung = true
		:: else
		fi }
	:: requests == READS && answered == READS -> break
	od
}

active proctype poller()
{
	bool go_on;

	do
	:: progress()
	:: break
	od
}

active proctype poster()
{
	byte posts;

	do
	:: posts < POSTS ->
		posts++;
		take_tx();
		if
		:: true
		:: take_credit()
		:: !LEFT && sent - seen < SLOTS -> publish(0)
		fi;
		update_waiting();
		/* await_credit(), which a flush does not call */
		if
		:: waiting -> disarm()
		:: true
		fi;
		drop_tx()
	:: else -> break
	od
}

/* nvi_chan_came() */
#define CAME (requests != consumed || consumed != arm_slot || more || \
	      (waiting && (!asks_credit || credit != seen)))

active proctype engine()
{
	bool go_on;

	do
	:: !armed ->
		atomic { woken = false; armed = true; asks_credit = waiting; arm_slot = consumed };
		if
		:: CAME -> atomic { armed = false }; progress()
		:: else
		fi
	:: armed ->
end:		atomic { rung || woken || !armed -> rung = false; woken = false };
		if
		:: armed && CAME -> atomic { armed = false }; progress()
		:: else
		fi
	od
}
