/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Threads that wait until the peer has consumed what was sent: nvi_tx_consumed() in provider/ntb/nvi_publish.c, for
 * flushes, disconnects and descriptors that wait to be refused.
 *
 * A thread sends MESSAGES messages, none of which asks for credit.  WAITERS threads wait, each from any moment on, until
 * the slots are consumed that were published by then; one of them may give up at any moment.  The peer consumes slots at
 * any moment.  It returns credit for a slot that asks for it, and for a full fifo; it rings if the notify request that
 * it reads asks for credit.  Threads that wait arm the channel, look once more, and sleep until the doorbell is rung or
 * the channel becomes polled.  What is stored is seen at once: sleep.pml has the order of memory.
 *
 * Proved: each wait ends (no invalid end state), and when it ends its slots are consumed.
 *
 * Variants that must be refuted:
 *	NO_DISARM	a thread begins to wait for credit, and leaves a channel armed that did not ask for it
 *	NO_ASK		a full fifo gives credit in any case, so no thread waits for that
 *	ONE_MARK	a thread that finds a mark of another one, which may have given up, takes it for its own
 */
#ifndef MESSAGES
#define MESSAGES 3
#endif
#define WAITERS 2
#define SLOTS 2
#define MOST (MESSAGES + WAITERS)	/* slots that are ever published */

bool tx_lock;
byte seq, asked, seen;		/* tx.seq, tx.asked, tx.credit */
bool asks[MOST];		/* slots */
bool drains, waiting;
byte drain_end;
bool armed = true, notify_credit;	/* the notify request: all sleep before anything is sent */
bool wake[WAITERS];

byte consumed, credit;		/* at the peer, and what it stored here */
byte over;			/* waits */

inline wake_all()
{
	wake[0] = true;
	wake[1] = true
}

inline disarm()
{
	atomic {
		if
		:: armed -> armed = false; wake_all()
		:: else
		fi
	}
}

inline publish(ask)
{
	atomic {
		asks[seq] = ask;
		seq++;
		if
		:: ask -> asked = seq
		:: else
		fi
	}
}

/* nvi_tx_take_credit(), then nvi_tx_update_waiting() */
inline take_credit()
{
	if
	:: credit != seen ->
		seen = credit;
		disarm();
		if
		:: asked < seen -> asked = seen
		:: else
		fi;
#ifndef ONE_MARK
		if
		:: drains && seen >= drain_end -> drains = false
		:: else
		fi
#endif
	:: else
	fi;
	waiting = drains
}

inline take_tx()
{
	atomic { !tx_lock -> tx_lock = true }
}

/* nvi_tx_consumed() */
inline look(end)
{
	take_tx();
	take_credit();
#ifdef ONE_MARK
	mark = (drains -> drain_end : end);
#else
	mark = end;
#endif
	if
	:: seen >= mark ->
		done = true
#ifdef ONE_MARK
		;
		drains = false;
		waiting = false
#endif
#ifdef NO_ASK
	:: seen < mark && seq - seen == SLOTS && asked < mark
	:: seen < mark && !(seq - seen == SLOTS && asked < mark) ->
#else
	:: else ->
#endif
		if
		:: asked < mark && seq - seen < SLOTS ->
			publish(true);
			mark = seq;
			later = true
		:: else -> later = !drains || mark > drain_end
		fi;
		if
		:: later ->
			drains = true;
			drain_end = mark;
			waiting = true;
#ifndef NO_DISARM
			disarm()
#endif
		:: else
		fi;
		later = false
	fi;
	tx_lock = false
}

/* nvi_arm_polled(): leaves an armed channel as it is; else checks once more after it has armed. */
inline arm()
{
	if
	:: atomic { !armed -> armed = true; notify_credit = waiting };
		if
		:: waiting && (!notify_credit || credit != seen) -> disarm()
		:: else
		fi
	:: armed
	fi
}

proctype waiter(byte me)
{
	byte end, mark;
	bool done, later;

	end = seq;
	look(end);
	do
	:: done -> assert(consumed >= end); break
	:: !done && me == 0 ->
		break		/* its time is over */
	:: !done ->
		wake[me] = false;
		arm();
		look(end);
		if
		:: !done -> wake[me] || !armed
		:: else
		fi
	od;
	over++
}

active proctype sender()
{
	byte sent;

	do
	:: sent < MESSAGES ->
		take_tx();
		take_credit();
		if
		:: seq - seen < SLOTS -> publish(false); sent++
		:: else
		fi;
		tx_lock = false
	:: sent == MESSAGES || over == WAITERS -> break
	od
}

active proctype peer()
{
	bool gives;

end:	do
	:: consumed < seq ->
		atomic {
			gives = asks[consumed] || consumed + 1 - credit == SLOTS;
			consumed++
		}
		if
		:: gives ->
			credit = consumed;
			atomic {
				if
				:: armed && notify_credit -> wake_all()
				:: else
				fi
			}
		:: else
		fi
	od
}

init
{
	atomic { run waiter(0); run waiter(1) }
}
