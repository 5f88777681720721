/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleeping application threads, the parked engine, and credit: nvi_arm(), nvi_sleep(),
 * nvi_scan(), nvi_arm_polled(), nvi_engine_kick() and the engine's loop, for one channel.
 *
 * An application thread polls or waits until the last message is complete (sleep_until() in
 * vi_wait.c).  It may return in any round because of its deadline, or never poll again; the engine
 * then makes progress alone.  Slots before the last complete no descriptor, so no thread is woken
 * for them.  The peer's processor has a store buffer, and so has the thread of this process that
 * stores `rx_seq` or `tx_waiting` (rx.seq, tx.waiting of the channel) and the completion; the
 * queue's lock is biased, so that dropping it empties no buffer (the lock itself is in biased.pml).
 * A waiting thread checks for the completion without that lock, as at a completion queue.  With
 * -DCREDIT the thread sends through a fifo of one slot, and the peer returns credit; otherwise the
 * peer sends slots.  With -DINLINE in addition, a descriptor is complete when its slot is
 * published, and no thread waits for the credit of the last; otherwise it is complete when the peer
 * has acknowledged it.
 *
 * With -DASK a thread that arms may ask the peer to fence by itself, or stop asking, at any time
 * (W_NOTIFY_FENCE); while the peer is known to fence, no membarrier is passed in its place.
 *
 * With -DTWO a second thread sleeps until it is woken, even if the first one leaves.
 * Memory is then sequentially consistent and each pass of a thread (arming, scanning,
 * making progress, kicking) is one step; the other runs check the smaller steps of which it consists.
 *
 * With -DEARLY_DB a link lies between, whose doorbells may be seen before stores that had left the
 * peer's processor earlier; the peer fences, and the side that arms reads across the link.  READ_BACK,
 * EARLY_ANSWER and LIMIT are as in wake.pml: with LIMIT each sleep ends at the latest when nothing else
 * can happen, and then there is something to find.  TWO and ASK do not go with it.
 *
 * Proved: in every interleaving all slots, or all credit, are consumed, and each waiting thread is
 * woken (no invalid end state).  A sleep may end by its time limit at any moment, but the proof
 * needs that only for the engine's tick.  Variants that must be found to lose a wake-up:
 *   NO_BARRIER		no membarrier and no fences
 *   HALF_FENCED	no membarrier: the peer fences, a thread here that begins to wait does not
 *   NO_RECHECK		arming does not check the channel once more
 *   NO_STALE		arming does not check for slots that were consumed while it armed
 *   NO_CREDIT_BIT	arming does not check for a thread that began to wait for credit while it armed
 *   NO_POST_DISARM	a sender that has to wait leaves the notify request as it is
 *   NO_KICK		a poll that disarms wakes no thread
 *   NO_SCAN_KICK	a scan that disarms wakes no thread
 *   NO_SLEEP_CHECK	a thread sleeps without a check of `polled`
 *   NO_DEEP_CHECK	the engine sleeps without a check of `polled`
 *   NO_PARK_CHECK	the engine parks without a check of `sleepers`
 *   NO_LEAVE_KICK	the last sleeper leaves without waking the engine
 *   COUNT_EARLY	arming counts a channel as armed before it has checked once more
 *   LATE_TICKET	the ticket is taken after arming
 *   NO_COMPLETE_FENCE	without membarrier: no fence between a completion and the check for sleepers
 *   ASK_EARLY		no barrier follows the first notify request that asks for fences
 *   ASK_FOREVER	a peer that was asked to stop fencing is still taken to fence
 *   ASK_ONCE		the peer fences, but does not load the notify request again
 *   NO_OWN_BARRIER	if the peer fences, threads of this process pass no membarrier either
 *   NO_COMPLETE_WAKE	a thread that completes a descriptor does not wake the threads that wait for it
 *   EARLY_DB		a ring overtakes stores, and nothing is read before it
 *   EARLY_DB,READ_BACK,EARLY_ANSWER	the answer to the read of the side that arms overtakes stores, too
 */
#define MESSAGES 2
#define APPS 2
#define ENGINE APPS
#define NOBODY 9

#ifdef EARLY_DB
#define FENCES
#endif

#define AWAKE 0
#define DEEP 1
#define PARKED 2

/* Slots or credit that the peer wrote: in memory of this process, and in the store buffer. */
byte visible = 0, buffered = 0;
#ifdef EARLY_DB
byte flying = 0;	/* the same, on its way across the link */
#endif
byte notify = 0;		/* 0 polled, 1 + the slot waited for; bit 7: credit, bit 6: fence */
byte polled_notify = 0;	/* the word while polled: 0, or W_NOTIFY_FENCE */
#define W_NOTIFY_FENCE 64
byte rx_seq = 0;	/* slots consumed, or tx.credit, as all threads see it */
byte consumed = 0;		/* the same count as rx_seq, as the thread that holds vi_lock sees it */
bool done = false;	/* the last descriptor is complete, as all threads see it */
bool finished = false;	/* the same as done, as the thread that holds vi_lock sees it */
byte waiters = 0;	/* vi_cq.sleepers; they are woken without the lock of the waiting thread */

bool vi_lock = false;	/* rx_lock or tx_lock, a biased lock */
byte last = NOBODY;	/* the thread that held it last: its stores may still be in its buffer */
bool chan_lock = false;
bool armed = false, armed_credit = false;
byte armed_slot = 0;
byte polled = 1;

byte sleepers = 0, deep = AWAKE;
bool current[3] = false;	/* no doorbell or kick since thread i took its ticket */
bool park_current = false;	/* engine_park was not incremented since the engine read it */

#ifdef CREDIT
byte posted = 0, sent = 0;
bool waiting = false;		/* tx.waiting, as the holder of vi_lock sees it */
bool tx_waiting = false;	/* tx.waiting, as all threads see it */
#define W_NOTIFY_CREDIT 128
#endif

/* The last descriptor completes when its slot is published, or when the peer acknowledges it. */
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
 * Taking a lock and the first step under it are one step, as are the last step and
 * dropping it: no step of another thread between them makes a difference.
 */

/*
 * Dropping vi_lock is a store like any other: another thread finds it free when the stores
 * before it have reached memory.  Dropping does not empty the buffer.
 */
#define FREE (!vi_lock && (last == me || DRAINED))

inline drop()
{
#ifdef TWO
	drain_own();
#endif
	vi_lock = false
}

/* Empties the store buffer of the thread that held vi_lock last. */
inline drain_own()
{
	rx_seq = consumed;
	done = finished
#ifdef CREDIT
	; tx_waiting = waiting
#endif
}

/* The doorbell of this process rings: the sleep of every thread ends. */
inline ring()
{
	d_step { current[0] = false; current[1] = false; current[ENGINE] = false }
}

/*
 * nvi_wake(): like ring(), but by a thread of this process: a locked operation, which empties its
 * store buffer.
 */
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

/* The peer's stores leave its processor; in a d_step. */
inline leave()
{
#ifdef EARLY_DB
	flying = flying + buffered;
#else
	visible = visible + buffered;
#endif
	buffered = 0
}

#ifdef EARLY_DB
/* An answer from the other host comes: stores that had left before it are in memory; in a d_step. */
inline land()
{
	visible = visible + flying;
	flying = 0
}
#endif

/* What ends a sleep at the latest: its time limit, when nothing else can happen any more. */
#ifdef LIMIT
#define OR_LIMIT :: timeout -> assert(visible > consumed)
#else
#define OR_LIMIT
#endif

/* nvi_engine_kick() */
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
/* choose_fences() of nvi_arm.c; under chan_lock. */
inline choose_fences()
{
	atomic {
		if
		:: d_step { fences = (polled_notify != 0); polled_notify = W_NOTIFY_FENCE }
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
#ifndef NO_COMPLETE_WAKE
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
				notify = polled_notify + 1 + (credit -> W_NOTIFY_CREDIT : 0);
#else
				notify = polled_notify + 1 + armed_slot;
#endif
#ifdef COUNT_EARLY
				polled--;
#endif
#if !defined(NO_BARRIER) && !defined(FENCES)
				if
				:: !fences -> leave()
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
#elif defined(EARLY_DB) && !defined(EARLY_ANSWER)
				land();		/* port_flush() */
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
		d_step { leave() };
#endif
		word = notify;
#ifdef ASK
		if
		:: (word & W_NOTIFY_FENCE) ->
			d_step { leave() };
#ifndef ASK_ONCE
			word = notify
#endif
		:: else
		fi;
#endif
		if
#ifdef CREDIT
		:: word >= W_NOTIFY_CREDIT ->
#else
		:: (word & (W_NOTIFY_FENCE - 1)) != 0 && out >= (word & (W_NOTIFY_FENCE - 1)) && word != rung ->
			rung = word;
#endif
#ifdef READ_BACK
			d_step { land() };	/* vd_window_read_back() */
#endif
			/* ringing is a locked operation: it empties the buffer */
			d_step { leave(); ring() }
		:: else
		fi
	:: else -> break
	od
}

#ifndef TWO
/* Store buffers eventually drain by themselves, and what is on its way arrives. */
active proctype drain()
{
enddrain:
	do
#ifdef EARLY_DB
	:: d_step { buffered > 0 -> flying++; buffered-- }
	:: d_step { flying > 0 -> visible++; flying-- }
#else
	:: d_step { buffered > 0 -> visible++; buffered-- }
#endif
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
	if				/* it may poll once or not at all, and never again */
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
			:: true ->
				if
				:: !current[me]
				OR_LIMIT
				fi
#ifndef TWO
			:: true		/* the sleep ended by its time limit */
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
			:: true		/* it ends by the tick, and is not seen as parked */
			:: park_current = true;
			   deep = PARKED;
			   if
#ifndef NO_PARK_CHECK
			   :: sleepers == 0
#endif
			   :: else ->
				if
				:: true ->
					if
					:: !park_current || OVER
					OR_LIMIT
					fi
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
						:: true ->
							if
							:: !current[ENGINE] || OVER
							OR_LIMIT
							fi
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
