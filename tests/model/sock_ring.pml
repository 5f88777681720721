/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring of a stream (sock/stream): a writer puts records into memory at its peer, a reader takes
 * them in order and returns the count that it has read (credit).  Positions are never reset; a
 * record's place is its position modulo the ring, and its header contains the position, so that
 * bytes left there from an earlier lap are not taken for a record.
 *
 * A writer that has passed the first places, and sees by the credit that all was read, may write a
 * record that skips the rest of the ring: both ends continue at the ring's beginning.  The skipped
 * places count as used until the reader's credit covers them.  The reader returns credit at any
 * time, at the latest when it has read all.
 *
 * Proved: the reader gets each value once and in order, no record that was not read is written over, and
 * nobody waits for ever (no invalid end state).  After a record that skips places there is room for more at
 * once.  Variants that must be refuted:
 *   STEP	the reader goes on at the next place
 *   REFUSE	the writer skips the rest before it has passed the first places, which a reader refuses
 *   UNREAD	the writer skips the rest although something was not read: then there is no room after that
 *   NO_ROOM	the skipped places do not count as used
 *   NO_LAP	a header does not name its lap
 */
#define PLACES 4
#define CALM 2		/* the first places */
#define VALUES 7
#define LAPS 8
#define ANEW 99

#define AT(p) ((p) % PLACES)
#define BEGINNING(p) ((p) / PLACES * PLACES + PLACES)
#ifdef NO_LAP
#define NAME(p) (AT(p) + 1)
#else
#define NAME(p) ((p) + 1)
#endif

byte name[PLACES], value[PLACES];	/* the record at each place */
bool unread[PLACES];
byte credit = 0;
byte got = 0;

active proctype writer()
{
	byte position = 0, next = 0, left_out = 0, acked = 0;
	bool again = false;

	do
	:: next == VALUES -> break
	:: next < VALUES && acked != credit -> atomic {
		acked = credit;
#ifdef NO_ROOM
		left_out = 0
#endif
	}
	:: atomic {
		next < VALUES && position - acked - left_out < PLACES ->
		assert(!unread[AT(position)]);
		value[AT(position)] = next;
		name[AT(position)] = NAME(position);
		unread[AT(position)] = true;
		position++;
		next++;
		again = false
	}
	/* Everything else waits until the record is read. */
	:: atomic {
		next < VALUES && !again && position < (LAPS - 2) * PLACES && AT(position) != 0 &&
#ifndef REFUSE
		AT(position) >= CALM &&
#endif
#ifdef UNREAD
		position - acked < PLACES ->
#else
		position == acked ->
#endif
		value[AT(position)] = ANEW;
		name[AT(position)] = NAME(position);
		unread[AT(position)] = true;
#ifdef NO_ROOM
		left_out = left_out + BEGINNING(position) - position;
#endif
		position = BEGINNING(position);
		again = true;
		assert(position - acked - left_out < PLACES)
	}
	od
}

active proctype reader()
{
	byte position = 0;

end:	do
	:: atomic {
		name[AT(position)] == NAME(position) ->
		unread[AT(position)] = false;
		if
		:: value[AT(position)] == ANEW ->
			assert(AT(position) >= CALM);
#ifdef STEP
			position++
#else
			position = BEGINNING(position)
#endif
		:: else ->
			assert(value[AT(position)] == got);
			got++;
			position++
		fi
	}
	:: atomic { credit != position -> credit = position }
	od
}
