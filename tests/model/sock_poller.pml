/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A poller of an epoll set (sock/stream/st_poller.c), threads of the program that sleep with that set, and sockets.
 *
 * A thread gives a socket to the poller, which polls it.  When bytes have come the poller puts the
 * socket into the list of those that it gives back.  A thread that is going to sleep sets `wanted`,
 * checks the list, and sleeps on the waker, a descriptor that the poller writes to if, after it has
 * put a socket into the list, it finds `wanted` set.  The thread that empties the list wakes the
 * others by descriptors of their own.  The poller arms a socket that was idle for long (as in
 * sock_wake.pml; here one step), checks it, and gives it back: from then on the peer announces
 * bytes by an entry of the completion queue, for which the poller does not write to the waker.  A
 * thread may take that entry while the poller still has the socket; so after the poller has listed
 * the socket it checks whether the arm was used up, and so does the thread that empties the list.
 *
 * TWO: there are two pollers, which have a socket each and write to the same waker: a thread gives its socket to the
 * poller of its own core.
 *
 * DOZE: a poller without sockets sleeps likewise.  It sets `dozes` and checks for given sockets; a
 * thread that gives one wakes it.
 *
 * Stores to the list, `given`, `wanted` and `dozes` may be delayed until the next fence of the
 * thread that made them.  The threads take turns by a lock.
 *
 * Proved: each thread gets a socket that has bytes; no thread, and no poller, sleeps for ever (no invalid end state).
 * Variants that must be refuted:
 *   NO_LIST_FENCE	the poller does not fence between its store to the list and its check of `wanted`
 *   NO_WANT_FENCE	the thread does not fence between its store of `wanted` and its check of the list
 *   NO_CHECK		the thread does not check the list after it has set `wanted`
 *   WANT_LATE		the thread sets `wanted` after its last check
 *   CLEAR_LATE		the thread clears the waker after its checks
 *   UNWANT_LATE	the poller clears `wanted` after it has written to the waker
 *   NO_KICK		the thread that empties the list does not wake the other
 *   ARM_BLIND		the poller gives an armed socket back without a check after arming it
 *   ARM_ONCE		nobody checks whether the arm was used up before the socket was in the list
 *   DOZE,NO_GIVE_FENCE	  the thread does not fence between giving a socket and its check of `dozes`
 *   DOZE,NO_DOZE_FENCE	  the poller does not fence between its store of `dozes` and its check for given sockets
 *   DOZE,NO_DOZE_CHECK	  the poller does not check for given sockets after it has set `dozes`
 */
#ifdef DOZE
#define THREADS 1
#else
#define THREADS 2
#endif
#define N THREADS	/* sockets */
#ifdef TWO
#define POLLERS 2
#define HAS(p, i) ((p) == (i))
#else
#define POLLERS 1
#define HAS(p, i) true
#endif

bool bytes[N], armed[N];
bool ours[N] = true;	/* the threads poll it themselves */
bool given[N], given_late[N], mine[N] /* the poller's */, list[N], list_late[N];
bool idle[N], idle_late[N];	/* in the list, armed */
bool left[N];			/* it came back armed, and is not given again */
bool wanted, wanted_late, dozes, dozes_late;
bool waker, woken;	/* the set's descriptor; the poller's */
bool entry;		/* of the completion queue: for all armed sockets that have bytes */
bool kicked[THREADS];
bool lock;

/* The stores of poller `p`. */
inline flush_poller(p)
{
	d_step {
		for (x : 0 .. N - 1) {
			if
			:: HAS(p, x) ->
				list[x] = list[x] || list_late[x];
				list_late[x] = false;
				idle[x] = idle[x] || idle_late[x];
				idle_late[x] = false
			:: else
			fi
		}
		x = 0;
		dozes = dozes || dozes_late;
		dozes_late = false
	}
}

inline flush_threads()
{
	d_step {
		for (x : 0 .. N - 1) {
			given[x] = given[x] || given_late[x];
			given_late[x] = false
		}
		x = 0;
		wanted = wanted || wanted_late;
		wanted_late = false
	}
}

/* Delayed stores become visible at any time, in order, as from a store buffer. */
active proctype memory()
{
	byte x;
end:	do
	:: atomic { list_late[0] || idle_late[0] || dozes_late -> flush_poller(0) }
#if N > 1
	:: atomic { list_late[1] || idle_late[1] -> flush_poller(POLLERS - 1) }
#endif
	:: atomic { given_late[0] || given_late[N - 1] || wanted_late -> flush_threads() }
	od
}

active proctype peer()
{
	byte i;

	for (i : 0 .. N - 1) {
		d_step {
			bytes[i] = true;
			if
			:: armed[i] -> armed[i] = false; entry = true
			:: else
			fi
		}
	}
}

inline write_waker()
{
	if
	:: wanted ->
#ifdef UNWANT_LATE
		waker = true;
		wanted = false
#else
		d_step { wanted = false; wanted_late = false };
		waker = true
#endif
	:: else
	fi
}

inline give_back(i)
{
	d_step { mine[i] = false; list_late[i] = true };
#ifndef NO_LIST_FENCE
	flush_poller(me);
#endif
	write_waker()
}

inline give_armed(i)
{
	d_step { mine[i] = false; idle_late[i] = true };
	flush_poller(me);
#ifndef ARM_ONCE
	if
	:: !armed[i] -> write_waker()
	:: else
	fi
#endif
}

/* The poller turns to one of its sockets, or to one that is given. */
inline turn(i)
{
	if
	:: d_step { given[i] -> given[i] = false; mine[i] = true }
	:: mine[i] && bytes[i] -> give_back(i)
	:: mine[i] && !bytes[i] ->
		armed[i] = true;
		if
#ifdef ARM_BLIND
		:: give_armed(i)
#else
		:: bytes[i] -> give_back(i)
		:: !bytes[i] -> give_armed(i)
#endif
		fi
	fi
}

active [POLLERS] proctype poller()
{
	byte me = _pid - 2, x;

end:	do
	:: HAS(me, 0) && (given[0] || mine[0]) -> turn(0)
#if N > 1
	:: HAS(me, 1) && (given[1] || mine[1]) -> turn(1)
#endif
#ifdef DOZE
	:: !given[0] && !mine[0] ->
		dozes_late = true;
#ifndef NO_DOZE_FENCE
		flush_poller(me);
#endif
		if
#ifndef NO_DOZE_CHECK
		:: given[0] -> skip
		:: !given[0] ->
#else
		:: true ->
#endif
end_doze:		woken
		fi;
		d_step { woken = false; dozes = false; dozes_late = false }
#endif
	od
}

/* Empties the list and the completion queue. */
inline take()
{
	d_step {
		took = entry;
		for (x : 0 .. N - 1) {
			if
			:: list[x] -> list[x] = false; took = true; ours[x] = true; left[x] = false
			:: idle[x] ->
				idle[x] = false;
				ours[x] = true;
				left[x] = armed[x];
#ifndef ARM_ONCE
				took = took || !armed[x]
#endif
			:: else
			fi
		}
		x = 0;
		entry = false;
#ifndef NO_KICK
		if
		:: took -> kicked[THREADS - 1 - me] = true
		:: else
		fi
#endif
	}
}

/* Checks for an event for this thread. */
inline look()
{
	d_step {
		for (x : 0 .. N - 1) {
			if
			:: !got && ours[x] && bytes[x] -> got = true; ours[x] = false
			:: else
			fi
		}
		x = 0
	}
}

inline give(i)
{
	if
	/* The thread arms the socket and checks again. */
	:: !got && ours[i] && left[i] ->
		armed[i] = true;
		look()
	:: d_step { !got && ours[i] && !left[i] -> ours[i] = false; given_late[i] = true }
#ifdef DOZE
#ifndef NO_GIVE_FENCE
		flush_threads();
#endif
		if
		:: dozes -> woken = true
		:: else
		fi
#endif
	:: else
	fi
}

inline want()
{
	wanted_late = true;
#ifndef NO_WANT_FENCE
	flush_threads();
#endif
}

active [THREADS] proctype thread()
{
	byte me = _pid - 2 - POLLERS, x;
	bool took, got;

	do
	:: atomic { !lock -> lock = true; took = false; kicked[me] = false };
	   take();
	   look();
#ifndef WANT_LATE
	   want()
#endif
	   give(0);
#if N > 1
	   give(1);
#endif
#ifndef NO_CHECK
	   if
	   :: !got -> take()
	   :: else
	   fi;
#endif
#ifdef WANT_LATE
	   want()
#endif
#ifdef CLEAR_LATE
	   waker = false;
#endif
	   lock = false;
	   if
	   :: got -> break
	   :: !got && took -> skip
	   :: !got && !took ->
		waker || kicked[me] || entry
#ifndef CLEAR_LATE
		; waker = false
#endif
	   fi
	od
}
