/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Two threads that sleep with one wait object (sock/stream): one wants data, the other room.
 * Entries of the completion queue make its descriptor readable once it is armed; a thread that arms
 * it clears it and takes the entries, so the other thread could sleep on.  Therefore each sleeper
 * registers, with a descriptor of its own, and a thread that takes entries writes to the
 * descriptors of all others.  poll() checks the descriptors when it begins and whenever one
 * changes.
 *
 * Proved: each thread sees what it waits for (no invalid end state).  Variants that must be refuted:
 *   NO_KICK	a thread that takes entries wakes no other
 *   LATE_BEGIN	a sleeper registers after it has checked and armed
 *   CLEAR_LATE	a sleeper clears its own descriptor after its checks
 *   NO_CHECK	a sleeper does not check again when arming took entries
 */
bool there[2];		/* data, room */
byte entries = 0;	/* wakes in the completion queue */
bool armed = false, readable = false;
bool registered[2], kicked[2];

inline take()
{
	d_step {
		took = entries > 0;
		entries = 0;
#ifndef NO_KICK
		if
		:: took && registered[1 - me] -> kicked[1 - me] = true
		:: else
		fi
#endif
	}
}

/* VipxCQArm(): clears the descriptor, which is readable at once if there are entries. */
inline arm()
{
	d_step { readable = entries > 0; armed = entries == 0 }
}

active [2] proctype thread()
{
	byte me = _pid;
	bool took;

	do
	:: there[me] -> break
	:: else ->
#ifndef LATE_BEGIN
		atomic {
			registered[me] = true;
#ifndef CLEAR_LATE
			kicked[me] = false
#endif
		}
#endif
		if
		:: there[me] -> registered[me] = false; break
		:: else
		fi;
		arm();
		take();
		if
#ifndef NO_CHECK
		:: took -> registered[me] = false
#endif
		:: else ->
#ifdef LATE_BEGIN
			atomic { registered[me] = true; kicked[me] = false }
#endif
#ifdef CLEAR_LATE
			kicked[me] = false;
#endif
			readable || kicked[me];
			registered[me] = false;
			take()
		fi
	od
}

/* The library: makes data, then room available, and after each an entry that wakes. */
active proctype peer()
{
	byte i;

	for (i : 0 .. 1) {
		there[i] = true;
		d_step {
			entries++;
			if
			:: armed -> readable = true; armed = false
			:: else
			fi
		}
	}
}
