/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The wake-up handshake of provider/ntb/nvi_arm.c, nvi_notify.c, nvi_progress.c and
 * nvi_engine.c: slots, doorbells and the polling thread.  Threads that sleep, credit, and the
 * receivers' own store buffers are in sleep.pml.
 *
 * One sender, two receivers in one process: the application, which polls and
 * may stop polling at any moment, and the engine, which arms and sleeps.  The
 * sender's processor has a store buffer: a published slot becomes visible later,
 * at the latest at a locked operation of its own or at a membarrier of the receivers.
 *
 * Proved: all messages are consumed in every execution, in every interleaving (no invalid end
 * state).  Variants that must be found to lose a wake-up:
 *   NO_BARRIER		no membarrier, and no fence of the sender
 *   NO_DISARM		an armed channel stays armed when the application consumes from it
 *   NO_SCAN_DISARM	an armed channel stays armed when the engine found slots but did not get the lock
 *   NO_STALE		a channel stays armed when another thread consumed just as it was armed
 *   NO_SLOT_IN_REQUEST	the sender may answer the notify request by ringing for a slot from before the arming
 *   NO_TICKET		the engine sleeps without a ticket
 */
#define MESSAGES 3

#ifdef NO_STALE
#define STALE false
#else
#define STALE (consumed != wanted)
#endif

byte visible = 0;	/* slots published, as the receiver's memory has them */
byte buffered = 0;	/* slots published, in the sender's store buffer */
byte consumed = 0;
byte notify = 0;		/* the notify request at the sender: 1 + the slot waited for; 0 polled */
byte interrupts = 0;	/* the interrupt word */
bool armed = false;	/* arm.armed of the channel; changes under chan_lock */
byte wanted = 0;		/* the slot that the notify request waits for */
bool chan_lock = false, rx_lock = false;

inline take(l)
{
	atomic { !l -> l = true }
}

inline drop(l)
{
	l = false
}

inline disarm()
{
#ifndef NO_DISARM
	if
	:: armed -> take(chan_lock);
		    if
		    :: armed -> armed = false; notify = 0
		    :: else
		    fi;
		    drop(chan_lock)
	:: else
	fi
#else
	skip
#endif
}

active proctype sender()
{
	byte sent = 0, rung = 0, seen;

	do
	:: sent < MESSAGES ->
		atomic { buffered++; sent++ };	/* nvi_publish_plain() */
#ifdef FENCES
		atomic { visible = visible + buffered; buffered = 0 };
#endif
		seen = notify;			/* nvi_ring_slots() */
		if
#ifdef NO_SLOT_IN_REQUEST
		:: seen != 0 && seen != rung ->
#else
		:: seen != 0 && sent >= seen && seen != rung ->
#endif
			rung = seen;
			/* ringing is a locked operation: it empties the buffer */
			atomic { visible = visible + buffered; buffered = 0; interrupts++ }
		:: else
		fi
	:: else -> break
	od
}

/* The store buffer eventually empties by itself. */
active proctype drain()
{
endd:	do
	:: atomic { buffered > 0 -> visible++; buffered-- }
	od
}

inline progress()
{
	atomic {
		if
		:: !rx_lock -> rx_lock = true; mine = true
		:: else -> mine = false
		fi
	};
	if
	:: mine ->
		if
		:: visible > consumed -> consumed++; disarm(); moved = true
		:: else
		fi;
		drop(rx_lock)
	:: else
	fi
}

/* Polls a number of times, then never again. */
active proctype application()
{
	bool mine, moved;
	byte polls = 0;

	do
	:: polls < 4 -> progress(); polls++
	:: break
	od
}

active proctype engine()
{
	bool mine, moved;
	byte ticket;

	do
	:: consumed == MESSAGES -> break
	:: else ->
		ticket = interrupts;
		moved = false;
		if
		:: visible > consumed ->	/* nvi_scan() */
#ifndef NO_SCAN_DISARM
			disarm();
#endif
			progress()
		:: visible <= consumed && armed && STALE -> disarm()
		:: else
		fi;
		if
		:: moved -> goto again
		:: else
		fi;
		if
		:: !armed ->
			take(chan_lock);
			wanted = consumed;
			armed = true;
			notify = wanted + 1;
#if !defined(NO_BARRIER) && !defined(FENCES)
			atomic { visible = visible + buffered; buffered = 0 };
#endif
			if
			:: visible > consumed || STALE ->
				armed = false;
				notify = 0;
				drop(chan_lock);
				goto again
			:: else
			fi;
			drop(chan_lock)
		:: else
		fi;
#ifdef NO_TICKET
		ticket = interrupts;
#endif
		/* port_irq_wait(), a kick of a thread that disarms (engine_deep) ends it, too */
		(interrupts != ticket || !armed || consumed == MESSAGES);
again:		skip
	od
}
