/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The helper thread of sock/stream does not poll a stream on which nothing moves (st_quiet.h).  It
 * waits for the descriptor of the completion queue; each time that it adds the descriptor to its
 * set reports it once.  A thread of the program arms the same queue and takes entries at any time,
 * and sends records.  A record that cannot leave at once (no slot is free) leaves by itself later,
 * and the helper has to check the arm word after that.
 *
 * The helper's check and a send both hold the lock tx, so each is one step.
 *
 * Proved: all messages are handled, and the arm word is checked after every record (no invalid end state).
 * Variants that must be refuted:
 *   NO_REARM	the helper does not ask for the descriptor again after it was readable once
 *   NO_DUE	a thread of the program that takes entries does not tell the helper
 *   NO_POST	a send does not tell the helper that it is under way
 *   QUIET_LATE	the helper decides under the lock, and stores its decision after it has dropped the lock
 */
#define MESSAGES 2
#define RECORDS 2

byte entries = 0;		/* in the completion queue */
byte inbox = 0, handled = 0;	/* messages taken; handled by the helper */
bool armed = false, readable = false, wanted = false;
bool quiet = false, due = true;	/* due: what st_look_after() sets */
bool under_way = false, unseen = false; /* a record has not left; the arm word was not checked after one */

inline take(tells)
{
	d_step {
		if
		:: entries > 0 ->
			inbox = inbox + entries;
			entries = 0;
			if
			:: tells -> due = true
			:: else
			fi
		:: else
		fi
	}
}

/* VipxCQArm(): clears the descriptor, which is readable at once if there are entries. */
inline arm()
{
	d_step { readable = entries > 0; armed = entries == 0 }
}

active proctype helper()
{
	bool still;

end:	do
	:: due ->
		due = false;
		quiet = false;
		/* The check: messages, and records that have left since. */
		d_step {
			handled = handled + inbox;
			inbox = 0;
			still = under_way;
			if
			:: !under_way -> unseen = false
			:: else
			fi;
#ifndef QUIET_LATE
			quiet = !still
#endif
		}
#ifdef QUIET_LATE
		quiet = !still;
#endif
		if
		:: still -> due = true /* again, later */
		:: else ->
			if
			:: wanted
			:: else -> wanted = true; arm(); take(true)
			fi
		fi
	:: wanted && readable && !due ->
		wanted = false;
		take(true);
#ifndef NO_REARM
		wanted = true;
		arm();
		take(true)
#endif
	od
}

/* Sends, and polls the queue, any number of times. */
active proctype program()
{
	byte sent = 0;

end:	do
	:: sent < RECORDS ->
		sent++;
		/* Under tx: the record leaves at once, or stays for the moment. */
		atomic {
			if
			:: true -> skip
			:: !under_way -> under_way = true; unseen = true
			fi;
#ifndef NO_POST
			if
			:: under_way && quiet -> due = true
			:: else
			fi
#endif
		}
#ifdef NO_DUE
	:: take(false)
#else
	:: take(true)
#endif
	:: arm()
	:: break
	od
}

active proctype peer()
{
	byte i;

	for (i : 1 .. MESSAGES) {
		d_step {
			entries++;
			if
			:: armed -> readable = true; armed = false
			:: else
			fi
		}
	}
}

active proctype library()
{
end:	do
	:: under_way -> under_way = false
	od
}

/* When all have come to rest, nothing is left. */
active proctype check()
{
	timeout;
	assert(handled == MESSAGES && !unseen)
}
