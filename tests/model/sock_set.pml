/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An epoll set that arms only the streams that it has checked (sock/hook/vs_epoll.c).  The model
 * has one stream of many: it is armed and rests, until the thread of its set learns that it has to
 * check again.  The arm itself is that of sock_wake.pml: either the thread's check after it finds
 * the event, or the other end rings.
 *
 * News of a resting stream comes in three ways.  An entry of the completion queue says that the other end has
 * rung; the thread that takes it, the set's or another one, puts the stream into the list of the wait object.
 * A thread that finds no room to send puts it there, too, since the set may have armed it for bytes alone.
 * And a change of its path, or an error, is counted for the process; the set compares the count, and if it
 * has changed checks all its streams.  The thread registers before it checks list and count; a thread that
 * lists or counts writes to the descriptors of registered threads afterwards.
 *
 * Proved: the thread does not sleep while the stream has an event (no invalid end state).  Variants that must be
 * refuted:
 *   NO_LIST	another thread takes the entry and wakes the sleeper, but does not list the stream
 *   NO_CHECK	the thread does not check the list after it has armed the queue
 *   NO_COUNT	a change wakes the sleeper, but is not counted
 *   COUNT_FIRST	a change is counted before it has happened
 *   COUNT_LATE	a change is counted after the sleeper has been woken
 *   EARLY	the thread compares the count, and checks the list, before it registers
 *   UNLOCKED	a thread of poll() takes the list and tells the set later, without the set's lock
 *   FULL_SILENT	a send that finds no room is not listed
 */
#define BYTES 0
#define ROOM 1

bool event[2];	/* bytes are there; room has come back */
bool no_room;	/* a send found none */
bool odd;	/* an event for which nobody rings: a change of path, an error */
bool armed[2];
bool entry[2];	/* in the completion queue: the other end has rung */
bool queue_armed, queue_fd;
bool told;	/* the wait object's list */
bool hot;	/* the set checks it */
byte changes, seen;
bool registered, kicked;
bool set_lock;
byte makers = 4;

#define EVENT (event[BYTES] || event[ROOM] || odd)

inline kick()
{
	d_step {
		if
		:: registered -> kicked = true
		:: else
		fi
	}
}

/* After an event the other end rings if it was asked to. */
inline ring(kind)
{
	d_step {
		if
		:: armed[kind] && !entry[kind] ->
			entry[kind] = true;
			if
			:: queue_armed -> queue_armed = false; queue_fd = true
			:: else
			fi
		:: else
		fi
	}
}

/* Under the wait object's lock; true in `took` if there were any. */
inline take_entries()
{
	if
	:: entry[BYTES] -> entry[BYTES] = false; armed[BYTES] = false; took = true
	:: else
	fi;
	if
	:: entry[ROOM] -> entry[ROOM] = false; armed[ROOM] = false; took = true
	:: else
	fi
}

inline take_told()
{
	if
	:: told -> told = false; hot = true; took = true
	:: else
	fi
}

/* Under the set's lock, which is held throughout. */
inline gather()
{
	atomic {
		!set_lock ->
		took = false;
		take_entries();
		told = told || took;
		take_told();
		if
		:: seen != changes -> seen = changes; hot = true
		:: else
		fi;
		if
		:: hot && EVENT -> event[BYTES] = false; event[ROOM] = false; odd = false
		:: else
		fi
	}
}

inline compare()
{
	atomic {
		took = false;
		take_told();
		again = again || took || seen != changes
	}
}

proctype set_thread()
{
	bool took, again;

	do
	:: gather();
		again = false;
#ifdef EARLY
		compare();
#endif
		d_step { registered = true; kicked = false };
		atomic { !set_lock -> set_lock = true };
#ifndef EARLY
		d_step { again = seen != changes };
#endif
		if
		:: hot && !again ->
			d_step {
				armed[BYTES] = true;
				if
				:: no_room -> armed[ROOM] = true
				:: else
				fi
			};
			d_step {
				if
				:: EVENT || (no_room && !armed[ROOM]) -> again = true
				:: else -> hot = false
				fi
			}
		:: else
		fi;
		if
		:: !again ->
			d_step { queue_fd = false; queue_armed = true };
			/* st_wait_arm() */
			d_step {
				took = false;
				take_entries();
				told = told || took;
				again = again || took
			};
#if !defined(NO_CHECK) && !defined(EARLY)
			/* st_wait_take() */
			d_step {
				took = false;
				take_told();
				again = again || took
			}
#endif
		:: else
		fi;
		set_lock = false;
		if
		:: !again ->
			if
			:: queue_fd || kicked
			:: makers == 0 && !EVENT -> break
			fi
		:: else
		fi;
		registered = false
	od
}

proctype peer(byte kind)
{
	if
	:: kind == BYTES -> event[BYTES] = true
	:: kind == ROOM -> atomic { no_room -> no_room = false; event[ROOM] = true }
	fi;
	ring(kind);
	makers--
}

/* A thread that blocks in recv() on this stream, or moves packets: takes an entry. */
proctype other_thread()
{
	bool took;

	if
	:: d_step {
		entry[BYTES] || entry[ROOM] ->
		took = false;
		take_entries();
#ifndef NO_LIST
		told = true
#endif
		};
		kick()
	:: makers == 0
	fi
}

/* A thread that calls poll() for the same stream. */
proctype poll_thread()
{
	bool mine;

	if
#ifdef UNLOCKED
	:: d_step { told -> told = false; mine = true };
		hot = true
#else
	:: atomic { told && !set_lock -> told = false; hot = true }
#endif
	:: makers == 0
	fi
}

proctype sender()
{
	no_room = true;
#ifndef FULL_SILENT
	told = true;
	kick();
#endif
	makers--
}

proctype helper()
{
#ifdef COUNT_FIRST
	changes++;
#endif
	odd = true;
#if !defined(NO_COUNT) && !defined(COUNT_FIRST) && !defined(COUNT_LATE)
	changes++;
#endif
	kick();
#ifdef COUNT_LATE
	changes++;
#endif
	makers--
}

init {
	atomic {
		run set_thread();
		run peer(BYTES);
		run peer(ROOM);
		run other_thread();
		run poll_thread();
		run sender();
		run helper()
	}
}
