/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The biased lock, util/u_biased.c: its owner takes it without a fence, a thread that revokes the
 * bias passes a membarrier, and a grace period waits for the threads inside.
 *
 * THREADS threads take and drop one lock ROUNDS times each, the third one time less, by u_biased_take() or
 * u_biased_try().  The holder of the ordinary lock may earn the bias whenever it drops the lock, after any
 * streak.  Every thread has a store buffer, first in first out, which eventually empties by itself; taking
 * the ordinary lock does not empty it, releasing it does.  A membarrier waits until the caller's buffer is
 * empty, then until each other has been empty once.  Each thread has a slot.
 *
 * «Inside» is between taking and dropping the lock.  Proved: two threads are never inside at once,
 * the thread inside would not enter its slot again and sees all that was written inside before it,
 * and all threads finish (no invalid end state).  With -DGRACE a further process replaces an object
 * that the threads use inside, waits for a grace period and frees the old one; no thread uses the
 * old one any more.  Variants that must be refuted:
 *   NO_BARRIER		the bias is revoked without a membarrier
 *   NO_RECHECK		the owner does not check `owner` again after it has made its sequence odd
 *   NO_WAIT		a thread that revokes the bias does not wait for the owner that is inside
 *   ONE_SEQ		one sequence for all owners, instead of one for each
 *   EARLY_ENTERED	the owner says that it entered its slot before it has read `owner` again
 *   KEEP_ENTERED	the holder of the ordinary lock does not say that it entered no slot
 *   EARLY_OWNER	the holder of the ordinary lock earns the bias when it takes the lock
 *   KEEP_OWNER		a thread that revokes the bias leaves `owner` as it is until it is inside
 *   TRY_OWNER		a try takes a biased lock as free while its owner is not inside
 *   GRACE,NO_GRACE_BARRIER	no membarrier at the beginning of the grace period
 *   GRACE,NO_GRACE_SEQ	the grace period does not check the sequences of the owners
 *   GRACE,NO_GRACE_HELD	the grace period does not check whether a thread holds the ordinary lock
 *   GRACE,LATE_HELD	a thread that takes the ordinary lock makes `held` odd only after it has read the object
 */
#ifndef THREADS
#define THREADS 2
#endif
#if THREADS > 2 || defined(GRACE)
#define ROUNDS 2
#else
#define ROUNDS 3
#endif

#define OWNER 0	/* 1 + the thread it is biased to, 0: none */
#define HELD 1	/* odd: the holder holds the ordinary lock */
#define DATA 2	/* written inside */
#define ENTERED 3	/* 1: the thread inside entered its slot, 0: it holds the ordinary lock */
#define SEQ 4	/* one for each slot; odd: its thread is inside, or about to check `owner` */
#define VARS (SEQ + THREADS)

#ifdef ONE_SEQ
#define SEQ_OF(t) SEQ
#else
#define SEQ_OF(t) (SEQ + (t))
#endif

byte memory[VARS];
chan buffer[THREADS] = [4] of { byte, byte };

bool word = false;	/* the ordinary lock; threads that sleep for it on a futex are not modelled */
byte inside = 0, sections = 0, ended = 0;
#ifdef GRACE
bool replaced = false, freed = false;
#endif

/* A thread loads its own stores that are still in its buffer, else memory. */
inline load(var, to)
{
	d_step {
		if
		:: buffer[me]??[eval(var), any] -> to = mine[var]
		:: else -> to = memory[var]
		fi;
		any = 0
	}
}

inline store(var, value)
{
	atomic { buffer[me]!var, value; mine[var] = value }
}

proctype drain(byte whose)
{
	byte var, value;

end:	do
	:: d_step { buffer[whose]?var, value -> memory[var] = value; var = 0; value = 0 }
	od
}

inline membarrier()
{
	empty(buffer[0]);
	empty(buffer[1])
#if THREADS > 2
	; empty(buffer[2])
#endif
}

/* u_biased_enter() */
inline enter()
{
	got = false;
	load(OWNER, owner);
	if
	:: owner == me + 1 ->
		load(SEQ_OF(me), before);
		if
		:: before % 2 == 0 ->
			store(SEQ_OF(me), before + 1);
#ifdef EARLY_ENTERED
			store(ENTERED, 1);
#endif
#ifndef NO_RECHECK
			load(OWNER, owner);
#endif
			if
			:: owner == me + 1 ->
#ifndef EARLY_ENTERED
				store(ENTERED, 1);
#endif
				got = true
			:: else -> store(SEQ_OF(me), before + 2)
			fi
		:: else
#ifndef ONE_SEQ
			/* u_biased_take() does not check this. */
			-> assert(false)
#endif
		fi;
		before = 0
	:: else
	fi;
	owner = 0
}

inline leave()
{
	load(SEQ_OF(me), before);
	store(SEQ_OF(me), before + 1);
	before = 0
}

inline take_bias_away()
{
#ifndef KEEP_OWNER
	store(OWNER, 0);
#endif
#ifndef NO_BARRIER
	empty(buffer[me]);
	membarrier();
#endif
#ifndef NO_WAIT
	before = memory[SEQ_OF(owner - 1)];
	if
	:: before % 2 != 0 -> memory[SEQ_OF(owner - 1)] != before
	:: else
	fi;
	before = 0;
#endif
#ifdef KEEP_OWNER
	store(OWNER, 0)
#else
	skip
#endif
}

inline say_held()
{
	load(HELD, before);
	store(HELD, before + 1);
	before = 0
}

/* For a thread that has just taken `word`. */
inline become_holder()
{
	load(OWNER, owner);
	if
	:: owner != 0 -> take_bias_away()
	:: else
	fi;
	owner = 0;
#ifdef LATE_HELD
	old = !replaced;
#endif
	say_held();
#ifndef KEEP_ENTERED
	store(ENTERED, 0);
#endif
#ifdef EARLY_OWNER
	store(OWNER, me + 1);
#endif
	got = true
}

/* u_biased_try_slow() */
inline try_slow()
{
	load(OWNER, owner);
	if
	:: owner != 0 && memory[SEQ_OF(owner - 1)] % 2 != 0
#ifdef TRY_OWNER
	:: owner != 0 && memory[SEQ_OF(owner - 1)] % 2 == 0 && !word -> got = true; word = true
#endif
	:: else ->
		owner = 0;
		if
		:: atomic { !word -> word = true }; become_holder()
		:: word
		fi
	fi;
	owner = 0
}

inline drop()
{
	load(ENTERED, before);
	if
	:: before == 1 -> before = 0; leave()
	:: else ->
		if
		:: store(OWNER, me + 1)
		:: true
		fi;
		load(HELD, before);
		store(HELD, before + 1);
		empty(buffer[me]);
		word = false
	fi;
	before = 0
}

/* Would u_biased_try() let the thread inside enter again? */
inline try_inside()
{
	load(OWNER, owner);
	load(SEQ_OF(me), before);
	assert(owner != me + 1 || before % 2 != 0);
	owner = 0;
	before = 0
}

inline use()
{
	inside++;
#ifndef GRACE
	try_inside();
#endif
#ifdef GRACE
	old = (old || !replaced);
	assert(!(old && freed));
	old = false;
#else
	assert(inside == 1);
	load(DATA, before);
	assert(before == sections);
	store(DATA, before + 1);
	before = 0;
	sections++;
#endif
	inside--
}

proctype thread(byte me)
{
	byte mine[VARS];
	byte owner, before, any, round;
	bool got;
#ifdef GRACE
	bool old;
#endif

	round = me / 2;		/* the third thread takes the lock one time less */
	do
	:: round < ROUNDS ->
		round++;
		enter();
		if
		:: got
		:: !got -> atomic { !word -> word = true }; become_holder()
		:: !got -> try_slow()
		fi;
		if
		:: got -> use(); drop(); got = false
		:: else
		fi
	:: else -> break
	od;
	ended++
}

#ifdef GRACE
inline wait_odd(var)
{
	seen = memory[var];
	if
	:: seen % 2 != 0 -> memory[var] != seen
	:: else
	fi;
	seen = 0
}

/* u_biased_grace_begin() and u_biased_grace(): every slot, then the holder of the ordinary lock. */
active proctype grace()
{
	byte seen;

	replaced = true;
#ifndef NO_GRACE_BARRIER
	membarrier();
#endif
#ifndef NO_GRACE_SEQ
	wait_odd(SEQ_OF(0));
	wait_odd(SEQ_OF(1));
#if THREADS > 2
	wait_odd(SEQ_OF(2));
#endif
#endif
#ifndef NO_GRACE_HELD
	wait_odd(HELD);
#endif
	freed = true
}
#endif

init
{
	byte t;

	atomic {
		for (t : 0 .. THREADS - 1) {
			run thread(t);
			run drain(t)
		}
	}
	ended == THREADS;
	membarrier();
#ifndef GRACE
	assert(memory[DATA] == sections);
#endif
	assert(!word && inside == 0)
}
