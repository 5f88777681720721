/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The lock of a stream, st_lock() and st_unlock() in sock/stream/st_sys.h: to give it back takes no fence.  The holder
 * stores to `word`, loads `waiters`, and wakes one thread if there are any; a thread that is to sleep is counted there,
 * passes a membarrier, looks at `word` again, and sleeps on its value.
 *
 * Three threads take and give back one lock ROUNDS times each.  Each thread has a store buffer of one entry for `word`,
 * which empties by itself at any time; a locked instruction, a call of the kernel and the end of the thread empty it.  A
 * membarrier waits until that of each other thread has been empty once.  A sleep compares `word` in memory with the
 * value seen, and may end without a wake.  The spins before the sleep are not modelled.
 *
 * Proved: two threads never hold the lock at once, and all threads finish (no invalid end state).  Variants that must be
 * refuted:
 *   NO_BARRIER	a thread that is to sleep passes no membarrier
 *   BARRIER_FIRST	the thread passes the membarrier before it is counted
 *   LOAD_FIRST	the holder loads `waiters` before it stores to `word`
 *   NO_COMPARE	the sleep does not compare `word` with the value seen
 *   LEAVE_EARLY	a thread that was woken is no longer counted, also if it sleeps again
 */
#define THREADS 3
#ifndef ROUNDS
#define ROUNDS 2
#endif

byte word = 0; /* in memory: 0 free, else 1 + the holder */
bool stored[THREADS]; /* the thread's store of 0 is still in its buffer */
byte waiters = 0;
bool asleep[THREADS];
byte holders = 0;

/* The store buffers empty by themselves. */
active proctype drain()
{
end:	do
	:: atomic { stored[0] -> stored[0] = false; word = 0 }
	:: atomic { stored[1] -> stored[1] = false; word = 0 }
	:: atomic { stored[2] -> stored[2] = false; word = 0 }
	od
}

inline settle(t)
{
	atomic {
		if
		:: stored[t] -> stored[t] = false; word = 0
		:: else
		fi
	}
}

/* Waits until the buffer of each other thread has been empty once. */
inline membarrier()
{
	!stored[0];
	!stored[1];
	!stored[2]
}

/* The compare and exchange of st_trylock(); a locked instruction empties the caller's buffer. */
inline try()
{
	atomic {
		settle(me);
		if
		:: word == 0 -> word = me + 1; got = true
		:: else -> got = false
		fi
	}
}

inline sleep_on(value)
{
	atomic {
		if
#ifndef NO_COMPARE
		:: word == value -> asleep[me] = true
#else
		:: asleep[me] = true
#endif
		:: else
		fi
	};
	!asleep[me]
}

inline wake_one()
{
	atomic {
		settle(me); /* a call of the kernel */
		if
		:: asleep[0] -> asleep[0] = false
		:: asleep[1] -> asleep[1] = false
		:: asleep[2] -> asleep[2] = false
		:: else
		fi
	}
}

inline take()
{
	try();
	if
	:: got
	:: else ->
#ifdef BARRIER_FIRST
		membarrier();
#endif
		waiters++;
#if !defined(NO_BARRIER) && !defined(BARRIER_FIRST)
		membarrier();
#endif
		try();
		do
		:: got -> break
		:: else ->
			seen = word;
			if
			:: seen != 0 ->
				sleep_on(seen);
#ifdef LEAVE_EARLY
				atomic { waiters > 0 -> waiters-- }
#endif
			:: else
			fi;
			try()
		od;
#ifdef LEAVE_EARLY
		atomic {
			if
			:: waiters > 0 -> waiters--
			:: else
			fi
		}
#else
		waiters--
#endif
	fi;
	holders++;
	assert(holders == 1)
}

inline give_back()
{
	holders--;
#ifdef LOAD_FIRST
	seen = waiters;
	stored[me] = true;
#else
	stored[me] = true;
	seen = waiters;
#endif
	if
	:: seen != 0 -> wake_one()
	:: else
	fi
}

active [THREADS] proctype thread()
{
	byte me = _pid - 1, round = 0, seen;
	bool got;

	do
	:: round < ROUNDS ->
		take();
		give_back();
		round++
	:: else -> break
	od;
	settle(me)
}
