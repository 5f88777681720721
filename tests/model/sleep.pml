/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping application threads, the parked engine, and credit: nvi_arm(), nvi_sleep(),
 * nvi_scan(), nvi_arm_polled(), nvi_engine_kick() and the engine's loop, on one channel.
 *
 * An application thread polls or waits for the last message (sleep_until() in
 * vi_wait.c).  It may leave at any round by its deadline, or compute ever after; the engine
 * then serves alone.  Slots before the last complete no descriptor, so no thread is told of
 * them.  The peer's processor has a store buffer, and so has the thread of ours that
 * publishes `rx_seq` or `tx_waiting` and the completion; the queue's lock is biased, so that
 * dropping it empties no buffer (the lock itself is in biased.pml).  A waiting thread checks for the
 * completion without that lock, as at a completion queue.  With -DCREDIT that thread sends
 * through a fifo of one slot, and the peer returns credit; otherwise the peer sends slots.  With
 * -DINLINE too, a descriptor is complete when it is out, and no thread waits for the credit of
 * the last; otherwise it is complete when the peer has acknowledged it.
 *
 * With -DASK a thread that arms may ask the peer for fences of its own, or stop asking, at any time
 * (W_NOTIFY_FENCE); while it is known to fence, no barrier is passed in its name.
 *
 * With -DTWO a second thread sleeps until it is told, whether the first one stays or not.
 * Memory is then sequentially consistent and each pass of a thread (arming, scanning,
 * making progress, kicking) is one step, which the other runs show to be made of smaller ones that hold.
 *
 * Proved: whatever is interleaved, all is taken in, and each waiting thread is told (no invalid
 * end state).  Ends of sleeps by time are possible at any moment and relied on nowhere, but
 * for the engine's tick.  The variants that must be found to lose a wake-up:
 *   NO_BARRIER		no membarrier and no fences
 *   HALF_FENCED	no membarrier: the peer fences, our thread that begins to wait does not
 *   NO_RECHECK		arming does not check once more
 *   NO_STALE		nor for slots that were consumed meanwhile
 *   NO_CREDIT_BIT	nor for a thread that began to wait for credit meanwhile
 *   NO_POST_DISARM	a sender that has to wait leaves the request as it is
 *   NO_KICK		a poll that disarms wakes no thread
 *   NO_SCAN_KICK	nor does a scan
 *   NO_SLEEP_CHECK	a thread sleeps without a check of `polled`
 *   NO_DEEP_CHECK	so does the engine
 *   NO_PARK_CHECK	the engine parks without a check of `sleepers`
 *   NO_LEAVE_KICK	the last sleeper leaves without waking the engine
 *   COUNT_EARLY	arming counts a channel as armed before it has checked once more
 *   LATE_TICKET	the ticket is taken after arming
 *   NO_COMPLETE_FENCE	without membarrier: no fence between a completion and the check for waiters
 *   ASK_EARLY		the first word that asks for fences has no barrier behind it
 *   ASK_FOREVER		a peer that was told to fence no more is relied on
 *   ASK_ONCE		the peer fences, but does not load the request again
 *   NO_OWN_BARRIER	with a peer that fences no barrier is passed by our threads either
 *   NO_ANNOUNCE	a thread that completes a descriptor does not wake the threads that wait for it
 */
#define MESSAGES 2
#define APPS 2
#define ENGINE APPS
#define NOBODY 9

#define AWAKE 0
#define DEEP 1
#define PARKED 2

/* What the peer wrote, slots or credit: in our memory, and in its store buffer. */
byte visible = 0, buffered = 0;
byte notify = 0;		/* 0 polled, 1 + the slot waited for; bit 7: credit, bit 6: fence */
byte polled_notify = 0;	/* what it is while polled: nothing, or to fence */
#define W_FENCE 64
byte rx_seq = 0;	/* consumed in (slots, or tx_credit), as all threads see it */
byte consumed = 0;		/* the same, as the thread that holds vi_lock has it */
bool done = false;	/* the last descriptor is complete, as all threads see it */
bool finished = false;	/* the same, as the thread that holds vi_lock has it */
byte waiters = 0;	/* vi_cq.sleepers, which are told without the lock of the waiting thread */

bool vi_lock = false;	/* rx_lock or tx_lock, a biased lock */
byte last = NOBODY;	/* the thread that held it last: its stores may still be in its buffer */
bool chan_lock = false;
bool armed = false, armed_credit = false;
byte armed_slot = 0;
byte polled = 1;

byte sleepers = 0, deep = AWAKE;
bool current[3] = false;	/* nothing rang since thread i took its ticket */
bool park_current = false;	/* nor was engine_park bumped */

#ifdef CREDIT
byte posted = 0, sent = 0;
bool waiting = false;		/* tx_waiting, as the holder of vi_lock has it */
bool tx_waiting = false;	/* as all see it */
#define W_CREDIT 128
#endif

/* When the last descriptor completes: as it goes out, or with the peer's acknowledgement. */
#ifdef INLINE
#define OVER (sent == MESSAGES)
#define WAITS (sent < posted)
#else
#define OVER (consumed == MESSAGES)
#define WAITS (consumed < posted)
#endif

/* A thread sees its own stores at once. */
#define RX_SEQ (last == me -> consumed : rx_seq)
#define DONE (last == me -> finished : done)
#ifdef CREDIT
#define TX_WAITING (last == me -> waiting : tx_waiting)
#define DRAINED (rx_seq == consumed && done == finished && tx_waiting == waiting)
#else
#define DRAINED (rx_seq == consumed && done == finished)
#endif

#ifdef NO_CREDIT_BIT
#define MISSES_CREDIT false
#else
#define MISSES_CREDIT !armed_credit
#endif

#ifdef CREDIT
#define READY (TX_WAITING)
#define CAME (TX_WAITING && (visible != RX_SEQ || MISSES_CREDIT))
#else
#define READY (visible > RX_SEQ)
#ifdef NO_STALE
#define CAME (visible > RX_SEQ)
#else
#define CAME (visible > RX_SEQ || RX_SEQ != armed_slot)
#endif
#endif

#ifdef TWO
#define STEP atomic
#else
#define STEP
#endif

/*
 * Taking a lock and the first step under it are one step, as are the last and
 * dropping it: nothing that may come between them makes a difference.
 */

/*
 * Dropping vi_lock is a store like any other: another thread finds it free when what was
 * stored before has reached memory.  Nothing but that empties the buffer.
 */
#define FREE (!vi_lock && (last == me || DRAINED))

inline drop()
{
#ifdef TWO
	drain_own();
#endif
	vi_lock = false
}

/* The store buffer of the thread that held vi_lock last: all it stored reaches the others. */
inline drain_own()
{
	rx_seq = consumed;
	done = finished
#ifdef CREDIT
	; tx_waiting = waiting
#endif
}

inline raise()
{
	d_step { current[0] = false; current[1] = false; current[ENGINE] = false }
}

/* The same by a thread of ours: a locked operation, behind all it stored. */
inline wake()
{
	d_step {
		if
		:: last == me -> drain_own()
		:: else
		fi;
		current[0] = false; current[1] = false; current[ENGINE] = false
	}
}

inline kick()
{
	STEP {
		seen = deep;
		yes = false;
		if
		:: sleepers != 0 -> yes = (polled != 0)
		:: else
		fi;
		if
		:: yes -> wake()
		:: !yes && seen != AWAKE ->
			d_step {
				yes = (deep == seen);
				if
				:: yes -> deep = AWAKE
				:: else
				fi
			};
			if
			:: yes && seen == DEEP -> wake()
			:: yes && seen == PARKED -> park_current = false
			:: else
			fi
		:: else
		fi;
		d_step { yes = false; seen = 0 }
	}
}

/* The rest of nvi_make_polled(), after armed = false, under chan_lock. */
inline make_polled()
{
	d_step { polled++; notify = polled_notify; chan_lock = false }
}

#ifdef ASK
/* Under chan_lock. */
inline choose_fences()
{
	atomic {
		if
		:: d_step { fences = (polled_notify != 0); polled_notify = W_FENCE }
		:: d_step { fences = false; polled_notify = 0 }
		fi;
#ifdef ASK_EARLY
		fences = (polled_notify != 0)
#endif
	}
}

inline stop_fences()
{
	if
	:: atomic { !chan_lock && !armed && polled_notify != 0 ->
		notify = 0;
#ifndef ASK_FOREVER
		polled_notify = 0
#endif
	   }
	:: true
	fi
}
#endif

inline disarm()
{
	if
	:: armed -> STEP {
		atomic {
			!chan_lock;
			if
			:: armed -> chan_lock = true; armed = false; yes = true
			:: else -> yes = false
			fi
		};
		if
		:: yes -> make_polled()
		:: else
		fi;
#ifndef NO_KICK
		kick()
#else
		skip
#endif
		}
	:: else
	fi
}

/* vi_wq_complete() of a descriptor for which a thread waits. */
inline complete()
{
	if
	:: OVER -> STEP {
		finished = true;
#if defined(TWO) || defined(FENCES) && !defined(NO_COMPLETE_FENCE)
		d_step { drain_own() };
#endif
#ifndef NO_ANNOUNCE
		if
		:: waiters != 0 -> wake()
		:: else
		fi
#endif
		}
	:: else
	fi
}

inline own_fence()
{
#if defined(TWO) || defined(FENCES) && !defined(HALF_FENCED)
	d_step { drain_own() }
#else
	skip
#endif
}

#ifdef CREDIT
/* nvi_tx_run() and nvi_tx_update_waiting(). */
inline tx_run()
{
	d_step {
		if
		:: posted > sent && sent == consumed -> sent++
		:: else
		fi;
		waiting = WAITS
	}
}
#endif

inline progress()
{
	STEP {
	mine = false;
	if
#ifdef CREDIT
	:: TX_WAITING ->
#else
	:: true ->
#endif
		atomic {
			if
			:: FREE && visible > consumed ->
				vi_lock = true;
				last = me;
				mine = true;
				moved = true;
#ifdef CREDIT
				consumed = visible
#else
				if
				:: consumed++
				:: consumed = visible
				fi
#endif
			:: else	/* busy, or nothing there */
			fi
		}
#ifdef CREDIT
	:: else
#endif
	fi;
	if
	:: mine ->
#ifdef CREDIT
		disarm();
#ifndef INLINE
		complete();
#endif
		tx_run();
#ifdef INLINE
		complete();
#endif
#else
		complete();
		own_fence();
		disarm();
#endif
		d_step { drop(); mine = false }
	:: else
	fi
	}
}

inline arm_polled()
{
	came = false;
	if
	:: polled != 0 -> STEP {
		atomic {
			!chan_lock;
			if
			:: !armed ->
				chan_lock = true;
				yes = true;
#ifdef CREDIT
				credit = TX_WAITING
#else
				armed_slot = RX_SEQ
#endif
			:: else -> yes = false
			fi
		};
		if
		:: yes ->
#ifdef ASK
			choose_fences();
#endif
			d_step {
				armed = true;
#ifdef CREDIT
				armed_credit = credit;
				notify = polled_notify + 1 + (credit -> W_CREDIT : 0);
#else
				notify = polled_notify + 1 + armed_slot;
#endif
#ifdef COUNT_EARLY
				polled--;
#endif
#if !defined(NO_BARRIER) && !defined(FENCES)
				if
				:: !fences -> visible = visible + buffered; buffered = 0
				:: else
				fi;
#ifdef NO_OWN_BARRIER
				if
				:: !fences -> drain_own()
				:: else
				fi;
#else
				drain_own();
#endif
#endif
				fences = false
			};
			d_step {
#ifndef NO_RECHECK
				came = CAME;
#endif
				if
				:: came ->
					armed = false;
					notify = polled_notify
#ifdef COUNT_EARLY
					; polled++
#endif
				:: else
#ifndef COUNT_EARLY
					-> polled--
#endif
				fi;
				chan_lock = false;
				yes = false
			}
		:: else
		fi
		}
	:: else
	fi
}

inline scan()
{
	STEP {
	atomic {
		!chan_lock;
		moved = false;
		hit = (armed && CAME);
		work = (hit || (!armed && READY));
		if
		:: hit -> chan_lock = true; armed = false
		:: else
		fi
	};
	if
	:: hit -> make_polled()
	:: else
	fi
	};
	if
	:: work -> progress()
	:: else
	fi;
#ifndef NO_SCAN_KICK
	if
	:: hit -> kick()
	:: else
	fi;
#endif
	d_step { hit = false; work = false }
}

active proctype peer()
{
	byte out = 0, rung = 0, word;

	do
	:: out < MESSAGES ->
#ifdef CREDIT
		sent > out;
#endif
#ifdef TWO
		d_step { visible++; out++ };
#else
		d_step { buffered++; out++ };
#endif
#ifdef FENCES
		d_step { visible = visible + buffered; buffered = 0 };
#endif
		word = notify;
#ifdef ASK
		if
		:: (word & W_FENCE) ->
			d_step { visible = visible + buffered; buffered = 0 };
#ifndef ASK_ONCE
			word = notify
#endif
		:: else
		fi;
#endif
		if
#ifdef CREDIT
		:: word >= W_CREDIT ->
#else
		:: (word & (W_FENCE - 1)) != 0 && out >= (word & (W_FENCE - 1)) && word != rung ->
			rung = word;
#endif
			/* the doorbell is a locked operation: it drains the buffer */
			d_step { visible = visible + buffered; buffered = 0; raise() }
		:: else
		fi
	:: else -> break
	od
}

#ifndef TWO
/* Store buffers drain by themselves, eventually. */
active proctype drain()
{
enddrain:
	do
	:: d_step { buffered > 0 -> visible++; buffered-- }
	:: d_step { !DRAINED -> drain_own() }
	od
}
#endif

#ifdef CREDIT
inline post()
{
	atomic { FREE -> vi_lock = true; last = me };
	posted++;
	if
	:: sent != consumed && visible > consumed ->
		consumed = visible;
		disarm();
#ifndef INLINE
		complete()
#endif
	:: else
	fi;
	tx_run();
#ifdef INLINE
	complete();
#endif
#ifndef NO_POST_DISARM
	if
	:: waiting -> own_fence(); disarm()
	:: else
	fi;
#endif
	d_step { drop() }
}
#endif

proctype app(byte me)
{
	bool mine, moved, came, hit, work, yes, credit, left, fences;
	byte seen;

#ifdef CREDIT
	if
	:: me == 0 ->
		do
		:: posted < MESSAGES -> post()
		:: else -> break
		od
	:: else
	fi;
#endif
	if				/* it may poll, and compute ever after */
	:: me == 0 -> progress(); goto out
	:: me == 0 -> goto out
	:: true
	fi;
	waiters++;
#if !defined(NO_WAIT_BARRIER) && !defined(FENCES)
	d_step { drain_own() };
#endif
	do
	:: true ->
		do			/* nvi_arm() */
		:: true ->
#ifndef LATE_TICKET
			current[me] = true;
#endif
			arm_polled();
			if
			:: !came -> break
			:: else ->
				scan()
			fi
		od;
		moved = false;
		if			/* try() */
		:: DONE -> break
		:: else
		fi;
		progress();
		if
		:: DONE -> break
		:: else
		fi;
		scan();			/* nvi_progress() */
		if
		:: DONE -> break
		:: else
		fi;
		moved = false;
		if
		:: me == 0 -> break	/* the deadline */
		:: true
		fi;
#ifdef LATE_TICKET
		current[me] = true;
#endif
		sleepers++;		/* nvi_sleep() */
		if
#ifndef NO_SLEEP_CHECK
		:: polled != 0
#endif
		:: else ->
			if
			:: true -> !current[me]
#ifndef TWO
			:: true		/* its end by time */
#endif
			fi
		fi;
		d_step { sleepers--; left = (sleepers == 0) };
		scan();
		moved = false;
#ifndef NO_LEAVE_KICK
		if
		:: left -> left = false; kick()
		:: else
		fi
#else
		left = false
#endif
	od;
	waiters--;
out:	skip
}

proctype engine()
{
	bool mine, moved, came, hit, work, yes, credit, fences;
	byte me = ENGINE, seen;

	do
	:: OVER -> break
	:: else ->
		if
		:: sleepers != 0 ->	/* engine_park() */
			if
			:: true		/* a short one: by the tick */
			:: park_current = true;
			   deep = PARKED;
			   if
#ifndef NO_PARK_CHECK
			   :: sleepers == 0
#endif
			   :: else ->
				if
				:: true -> !park_current || OVER
#ifndef TWO
				:: true
#endif
				fi
			   fi;
			   deep = AWAKE
			fi
		:: else ->
			current[ENGINE] = true;
			scan();
#ifdef ASK
			stop_fences();
#endif
			if
			:: !moved ->
				arm_polled();
				if
				:: came -> scan()
				:: !came && polled == 0 ->	/* engine_deep_sleep() */
					deep = DEEP;
					if
#ifndef NO_DEEP_CHECK
					:: polled != 0
#endif
					:: else ->
						if
						:: true -> !current[ENGINE] || OVER
#ifndef TWO
						:: true
#endif
						fi
					fi;
					deep = AWAKE
				:: else
				fi
			:: else
			fi
		fi
	od
}

init
{
	atomic {
		run app(0);
#ifdef TWO
		run app(1);
#endif
		run engine()
	}
}
