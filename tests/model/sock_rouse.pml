/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sleep of an epoll set none of whose connections has a VI, in the kernel's call, and its end when another thread
 * promotes a connection of the set or adds one that is promoted (sock/hook/vs_rouse.c, quiet() and sleep_quietly() in
 * vs_epoll.c).  Two threads wait in the set.  With OUTER the second one waits in a set that contains this one.
 *
 * A thread that is about to call the kernel is counted, under the lock that protects changes of the
 * set.  A thread that changes the set adds a descriptor that is always readable to the kernel's
 * set, if some thread is counted, and wakes the registered sleepers.  The last thread that returns
 * from the kernel removes the descriptor.  The kernel wakes one sleeper of a set at a time; a
 * sleeper that finds an entry which stays ready wakes the next.
 *
 * A thread may leave the kernel's call by itself, by its time limit, and with an event it may leave
 * for good, so that only the other thread can take the next event.  A promotion may be refused,
 * after which the set is as before.
 *
 * Proved: no thread sleeps while a connection of the set has an event on a VI (no invalid end state).  Variants that must
 * be refuted:
 *   UNLOCKED	quiet() checks the set, drops the lock, and counts the thread when it has the lock again
 *   LAST_FIRST	the first thread that returns removes the descriptor, not the last one
 *   TWICE	a thread that has returned remains noted as inside, and is counted as returned once more
 *   KEEP_FLAG	the descriptor is removed, but `roused` says that the set holds it
 *   EDGE	the entry of the descriptor is edge-triggered, so that one sleeper is woken
 *   MARK_LATE	the threads are woken before the connection is marked to be checked, and may have returned by then
 *   ONE_KIND	a change wakes the threads that are counted, and not those that are registered
 *   ARM_FIRST	a thread registers after it has armed and checked
 *   ADD_SILENT	epoll_ctl() marks a promoted connection that is added, and wakes nobody
 *   PROMOTE_LATE	the sets of a connection are told before it is promoted
 *   OUTER,NO_OUTSIDE	a change wakes only the threads of the set itself
 */
#define THREADS 2

/* The two connections of the set; the second one is added while the other thread promotes it. */
bool added[2], promoted[2], hot[2], armed[2], rung[2], event[2];

bool lock;
byte quiet;
bool roused;
bool inside[THREADS];

/* The kernel's set: the descriptor that is always readable, that of the completion queue, the sleepers. */
bool held, held_ready, queue_fd;
bool asleep[THREADS], woken[THREADS];

bool registered[THREADS], kicked[THREADS];
bool outside;

byte alive = THREADS, makers = 2;
byte limits = 1; /* calls that may still end by their time limit */

#define HAS(i) (added[i] && promoted[i] && event[i])
#define READY (held_ready || queue_fd)
#define OVER (makers == 0 && !HAS(0) && !HAS(1))

#ifdef OUTER
#define IS_OUTER (me == 1)
#else
#define IS_OUTER false
#endif

inline take_lock()
{
	atomic { !lock -> lock = true }
}

inline kernel_wakes_one()
{
	if
	:: asleep[0] -> asleep[0] = false; woken[0] = true
	:: asleep[1] -> asleep[1] = false; woken[1] = true
	:: else
	fi
}

/* st_wake(); a thread of the outer set has that set's tag. */
inline wake(who)
{
	if
	:: registered[who] -> kicked[who] = true
	:: else
	fi
}

inline wake_registered()
{
	d_step {
		wake(0);
#ifdef NO_OUTSIDE
		skip
#elif defined(OUTER)
		if
		:: outside -> wake(1)
		:: else
		fi
#else
		wake(1)
#endif
	}
}

/* vs_rouse(), under the lock. */
inline rouse()
{
	atomic {
		if
		:: quiet > 0 && !roused ->
			held = true;
			held_ready = true;
			roused = true;
			kernel_wakes_one()
		:: else
		fi
	};
#ifndef ONE_KIND
	wake_registered()
#endif
}

/* vs_rouse_leave(), under the lock. */
inline leave()
{
	d_step {
		if
		:: inside[me] ->
#ifndef TWICE
			inside[me] = false;
#endif
			if
			:: quiet > 0 -> quiet--
			:: else
			fi;
			if
#ifdef LAST_FIRST
			:: roused ->
#else
			:: quiet == 0 && roused ->
#endif
				held = false;
				held_ready = false;
#ifndef KEEP_FLAG
				roused = false
#endif
			:: else
			fi
		:: else
		fi
	}
}

/* vs_rouse_enter(), under the lock. */
inline count()
{
	if
	:: calls -> quiet++; inside[me] = true
	:: else
	fi
}

/* epoll_pwait2() of the kernel. */
inline kernel_call()
{
	do
	:: atomic {
		READY ->
#ifdef EDGE
		held_ready = false;
#endif
		if
		:: READY -> kernel_wakes_one()
		:: else
		fi;
		break
		}
	:: atomic { !READY -> asleep[me] = true };
		if
		:: atomic { woken[me] -> woken[me] = false }
		:: atomic { asleep[me] && limits > 0 -> limits--; asleep[me] = false; over = true; break }
		:: atomic { asleep[me] && OVER -> asleep[me] = false; goto gone }
		fi
	od
}

/* The entries of the completion queue, under the lock; other sleepers are told. */
inline take_entries(any)
{
	d_step {
		if
		:: queue_fd ->
			queue_fd = false;
			any = true;
			if
			:: rung[0] -> rung[0] = false; armed[0] = false; hot[0] = true
			:: else
			fi;
			if
			:: rung[1] -> rung[1] = false; armed[1] = false; hot[1] = true
			:: else
			fi;
			if
			:: registered[1 - me] -> kicked[1 - me] = true
			:: else
			fi
		:: else
		fi
	}
}

/* Checks a marked connection, under the lock; one event is enough. */
inline look(i)
{
	d_step {
		if
		:: hot[i] && !promoted[i] -> hot[i] = false
		:: hot[i] && event[i] && !found -> found = true;
			if
			:: !IS_OUTER -> event[i] = false
			:: else
			fi
		:: else
		fi
	}
}

/* Arms a connection before a sleep, under the lock; then it is not checked until its peer rings. */
inline arm(i)
{
	if
	:: hot[i] && !again ->
		armed[i] = true;
		d_step {
			if
			:: event[i] -> again = true
			:: else -> hot[i] = false
			fi
		}
	:: else
	fi
}

inline registers()
{
	d_step { registered[me] = true; kicked[me] = false }
}

proctype thread(byte me)
{
	bool calls, over, found, again;

	do
	:: calls = false;
		over = false;
		found = false;
		again = false;
		/* quiet() */
		atomic {
			!lock ->
			leave();
			calls = !IS_OUTER && !hot[0] && !hot[1] && !(added[0] && promoted[0]) && !(added[1] && promoted[1]);
#ifndef UNLOCKED
			count()
#endif
		};
#ifdef UNLOCKED
		atomic { !lock -> count() };
#endif
		/* sleep_quietly() */
		if
		:: calls ->
			kernel_call();
			atomic { !lock -> leave() };
			if
			:: over -> goto next
			:: else
			fi
		:: else
		fi;
		/* gather() */
		atomic {
			!lock ->
			take_entries(again);
			look(0);
			look(1);
			again = false
		};
		if
		:: found -> goto gone
		:: found && !IS_OUTER -> goto next
		:: else
		fi;
		/* doze() */
#ifndef ARM_FIRST
		registers();
#endif
		take_lock();
		if
		:: IS_OUTER -> outside = true
		:: else
		fi;
		arm(0);
		arm(1);
		take_entries(again);
		lock = false;
#ifdef ARM_FIRST
		registers();
#endif
		if
		:: again
		:: !again ->
			if
			:: kicked[me] || queue_fd
			:: atomic { OVER && !kicked[me] && !queue_fd -> goto gone }
			fi
		fi;
		registered[me] = false;
next:
		skip
	od;
gone:
	registered[me] = false;
	alive--
}

/* The other end writes through the VI, and rings if it was asked to. */
inline arrives(i)
{
	event[i] = true;
	atomic {
		if
		:: armed[i] && !rung[i] -> rung[i] = true; queue_fd = true; kernel_wakes_one()
		:: else
		fi
	}
}

/* vs_epoll_promoting() */
inline tells_sets(i)
{
	take_lock();
#ifdef MARK_LATE
	if
	:: added[i] -> rouse(); lock = false; take_lock(); hot[i] = true
	:: else
	fi;
#else
	if
	:: added[i] -> hot[i] = true; rouse()
	:: else
	fi;
#endif
	lock = false
}

/* vs_sock_promote() */
inline promote(i)
{
#ifdef PROMOTE_LATE
	tells_sets(i);
	promoted[i] = true
#else
	promoted[i] = true;
	tells_sets(i)
#endif
}

/* A promotion that failed is counted as a change, and told to registered sleepers. */
inline refuse(i)
{
	d_step { promoted[i] = false; armed[i] = false; kicked[0] = registered[0]; kicked[1] = registered[1] }
}

proctype promoter()
{
	promote(0);
	if
	:: refuse(0)
	:: arrives(0);
		if
		:: !HAS(0)
		:: alive == 0
		fi
	fi;
	if
	:: promoted[0] -> arrives(0)
	:: promote(1);
		arrives(1)
	fi;
	makers--
}

/* epoll_ctl() */
proctype adder()
{
	take_lock();
	added[1] = true;
	if
	:: promoted[1] -> hot[1] = true;
#ifndef ADD_SILENT
		rouse()
#endif
	:: else
	fi;
	lock = false;
	makers--
}

init {
	atomic {
		added[0] = true;
		run thread(0);
		run thread(1);
		run promoter();
		run adder()
	}
}
