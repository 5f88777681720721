/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring of a stream (sock/stream): a writer puts records into memory at its peer, a reader takes them in order and tells
 * how far it has read (credit).  Positions count for ever; a record's place is its position within the ring, and its header
 * names the position, so that what lies there from an earlier lap is no record.
 *
 * A writer that has passed the first places, and sees by the credit that all was read, may write a record that leaves out the
 * rest of the ring: both ends go on at the ring's beginning.  The places that are left out count as used until the reader
 * has told that it went on.  The reader tells at any time, and at last when it has read all.
 *
 * Proved: the reader gets each value once and in order, no record that was not read is written over, and nobody waits for
 * ever (no invalid end state).  Behind a record that leaves places out there is room for more at once.  Variants that must
 * be refuted:
 *   STEP	the reader goes on at the next place
 *   REFUSE	the writer leaves out the rest before it has passed the first places, which a reader refuses
 *   UNREAD	the writer leaves out the rest although something was not read: there is no room behind that
 *   NO_ROOM	the places that are left out do not count as used
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

byte name[PLACES], value[PLACES];	/* what lies at each place */
bool unread[PLACES];
byte credit = 0;
byte got = 0;

active proctype writer()
{
	byte position = 0, next = 0, left_out = 0, acked = 0;
	bool anew = false;

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
		anew = false
	}
	/* All else waits until it is read. */
	:: atomic {
		next < VALUES && !anew && position < (LAPS - 2) * PLACES && AT(position) != 0 &&
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
		anew = true;
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
