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
 *
 * With -DEARLY_DB a link lies between the two, whose doorbells may be seen before stores that had
 * left the sender's processor earlier (docs/memory-order.md, section 9).  The sender passes fences; the
 * side that arms reads across the link, and the answer brings along what had left.
 *   EARLY_DB				must be found to lose a wake-up
 *   EARLY_DB,READ_BACK			the sender's ring waits for a read across the link: none is lost
 *   EARLY_DB,LIMIT			the sleep has a time limit, and each that ends by it finds its slot
 *   EARLY_DB,READ_BACK,EARLY_ANSWER	the answer to the read of the side that arms overtakes stores, too: one is
 *					lost, since a sender that loaded the old request does not ring
 *   EARLY_DB,READ_BACK,EARLY_ANSWER,LIMIT	again the time limit finds what was lost
 * A time limit ends the sleep only when nothing else can happen any more, so the search shows that
 * it was needed; it may end earlier, which is a wake-up like any other.
 */
#define MESSAGES 3

#ifdef EARLY_DB
#define FENCES
#endif

#ifdef NO_STALE
#define STALE false
#else
#define STALE (consumed != wanted)
#endif

byte visible = 0;	/* slots published, as the receiver's memory has them */
byte buffered = 0;	/* slots published, in the sender's store buffer */
#ifdef EARLY_DB
byte flying = 0;	/* slots published, on their way across the link */
#endif
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

/* The sender's stores leave its processor. */
inline leave()
{
#ifdef EARLY_DB
	d_step { flying = flying + buffered; buffered = 0 }
#else
	d_step { visible = visible + buffered; buffered = 0 }
#endif
}

#ifdef EARLY_DB
/* An answer from the other host comes: stores that had left before it are in memory. */
inline land()
{
	d_step { visible = visible + flying; flying = 0 }
}
#endif

active proctype sender()
{
	byte sent = 0, rung = 0, seen;

	do
	:: sent < MESSAGES ->
		atomic { buffered++; sent++ };	/* nvi_publish_plain() */
#ifdef FENCES
		leave();
#endif
		seen = notify;			/* nvi_ring_slots() */
		if
#ifdef NO_SLOT_IN_REQUEST
		:: seen != 0 && seen != rung ->
#else
		:: seen != 0 && sent >= seen && seen != rung ->
#endif
			rung = seen;
#ifdef READ_BACK
			land();			/* vd_window_read_back() */
#endif
			/* ringing is a locked operation: it empties the buffer */
			atomic { leave(); interrupts++ }
		:: else
		fi
	:: else -> break
	od
}

/* The store buffer eventually empties by itself, and what is on its way arrives. */
active proctype drain()
{
endd:	do
#ifdef EARLY_DB
	:: atomic { buffered > 0 -> flying++; buffered-- }
	:: atomic { flying > 0 -> visible++; flying-- }
#else
	:: atomic { buffered > 0 -> visible++; buffered-- }
#endif
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
			leave();
#elif defined(EARLY_DB) && !defined(EARLY_ANSWER)
			land();			/* port_flush() */
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
		if
		:: interrupts != ticket || !armed || consumed == MESSAGES
#ifdef LIMIT
		:: timeout -> assert(visible > consumed)
#endif
		fi;
again:		skip
	od
}
