/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Messages that are stored into the receive that they are for.  docs/protocol.md, section 5, «Placed
 * messages».
 *
 * The sender has MESSAGES messages, and each takes a receive.  The receiver posts RECEIVES receives, at
 * any moment, each with a buffer of its own, and advertises a receive in one of ADVERTS adverts under the
 * number of the message that it will take.  A message that finds the advert of its number may be stored
 * into that buffer, or be carried by its slot, as any may.  With -DMIXED every second receive is not in
 * window memory.  Slots, bytes and the words of an advert may arrive at any moment after they were
 * stored, in any order, but those stored after a fence arrive after those stored before it.
 *
 * With -DDROPS a message that finds no receive is dropped.  With -DREVOKES the right to the window ends
 * once, at any moment: the receiver asks for the grant back, waits until it is given up, and uses the
 * memory for something else.  With -DLOSSES the path is lost once, at any moment, with all that is on it,
 * and the connection continues over another: with a new slice and without adverts, and slots that were
 * not consumed are published again.  The new path may have a relay; then nothing is advertised and
 * nothing granted.
 *
 * Proved: a receive completes with all of its message; a placed message is for a receive that was
 * advertised for it; no bytes arrive in a buffer whose receive is complete or whose right has ended; and
 * when no step is possible any more, all messages for which there are receives were received.
 *
 * Variants that must be refuted:
 *	NO_TAG		the sender does not compare the number of the advert with that of its message
 *	TAG_FIRST	the tag is not stored after the other words of the advert
 *	NO_COUNT	the receiver does not count messages that it drops
 *	NO_FENCE	no fence between storing the bytes and publishing the slot
 *	NO_FLUSH	the slot is published before it is known that the path stood until the bytes arrived
 *	NO_DRAIN	the sender gives the grant up before its bytes have arrived
 *	NO_WAIT		the receiver does not wait until the grant is given up
 *	NO_ADVERTS	the receiver forgets adverts of the old path, by which slots published again are placed
 */
#ifndef MESSAGES
#define MESSAGES 4
#endif
#ifndef RECEIVES
#define RECEIVES 4
#endif
#ifndef ADVERTS
#define ADVERTS 2
#endif
#define NONE 255
#ifdef MIXED
#define IN_WINDOW(r) ((r) % 2 == 0)
#else
#define IN_WINDOW(r) 1
#endif

/* The sender's slice: number of a message, and its receive; a receive that has not arrived yet. */
byte tag[ADVERTS] = NONE, to_receive[ADVERTS] = NONE, late[ADVERTS] = NONE;

/* The receiver. */
byte buffer[RECEIVES];		  /* message in it, plus 1 */
bool closed[RECEIVES];		  /* complete: its bytes belong to the program */
byte advertised[RECEIVES] = NONE; /* for this message */
byte posted, next;		  /* receives */
byte consumed, dropped;		  /* messages */
bool ended;			  /* the right */

/* The slots: which have arrived, and which announce a placed message. */
bool arrived[MESSAGES], placed[MESSAGES];

/* The sender. */
byte sent;
bool busy;		       /* it holds its lock */
bool granted = 1, taking, gone;
byte bytes_to = NONE, bytes_of; /* bytes on the path: into this buffer, of this message */
byte slot_of = NONE;	       /* slot on the path */

bool down, lost, relayed; /* the path */

#ifdef NO_COUNT
#define NUMBER(r) (consumed - dropped + (r) - next)
#else
#define NUMBER(r) (consumed + (r) - next)
#endif

inline advertise(r)
{
	if
	:: IN_WINDOW(r) && !ended && !down && !relayed ->
		advertised[r] = NUMBER(r);
		tag[NUMBER(r) % ADVERTS] = NUMBER(r);
#ifdef TAG_FIRST
		late[NUMBER(r) % ADVERTS] = r
#else
		to_receive[NUMBER(r) % ADVERTS] = r
#endif
	:: else
	fi
}

/* The words of an advert, bytes and slots arrive. */
active proctype path()
{
end:	do
	:: atomic { late[0] != NONE -> to_receive[0] = late[0]; late[0] = NONE }
	:: atomic { ADVERTS > 1 && late[ADVERTS - 1] != NONE ->
		to_receive[ADVERTS - 1] = late[ADVERTS - 1]; late[ADVERTS - 1] = NONE }
	:: atomic { bytes_to != NONE ->
		assert(!closed[bytes_to]);
		buffer[bytes_to] = bytes_of + 1;
		bytes_to = NONE }
	:: atomic { slot_of != NONE &&
#ifdef NO_FENCE
		true
#else
		bytes_to == NONE	/* the slot was stored after a fence */
#endif
		-> arrived[slot_of] = 1; slot_of = NONE }
#ifdef LOSSES
	:: atomic { !lost ->
		lost = 1; down = 1; granted = 0;
		bytes_to = NONE; slot_of = NONE;
		late[0] = NONE; late[ADVERTS - 1] = NONE }
#endif
	od
}

active proctype receiver()
{
	byte m, r;

end:	do
	:: atomic { posted < RECEIVES ->
		posted++;
		if
		:: posted - next <= ADVERTS -> advertise(posted - 1)
		:: else
		fi }
#ifdef DROPS
	:: atomic { consumed < MESSAGES && arrived[consumed] && next == posted ->
		assert(!placed[consumed]);
		consumed++;
		dropped++ }
#endif
	:: atomic { consumed < MESSAGES && arrived[consumed] && next < posted ->
		m = consumed;
		r = next;
		consumed++;
		next++;
		if
		:: placed[m] -> assert(advertised[r] == m)
		:: !placed[m] && !(ended && IN_WINDOW(r)) -> buffer[r] = m + 1
		:: else
		fi;
		assert((ended && IN_WINDOW(r)) || buffer[r] == m + 1);
		closed[r] = 1;
		if
		:: next + ADVERTS <= posted && advertised[next + ADVERTS - 1] == NONE ->
			advertise(next + ADVERTS - 1)
		:: else
		fi }
#ifdef REVOKES
	:: atomic { !taking -> taking = 1 }
	:: atomic { taking && !ended &&
#ifdef NO_WAIT
		true
#else
		gone
#endif
		-> ended = 1;
		r = 0;
		do
		:: r < RECEIVES -> closed[r] = closed[r] || IN_WINDOW(r); r++
		:: else -> break
		od }
#endif
#ifdef LOSSES
	/* Both ends have noticed, and there is a new path. */
	:: atomic { down && !busy ->
		down = 0;
		if
		:: relayed = 1
		:: granted = !taking
		fi;
		r = 0;
		do
		:: r < ADVERTS ->
			tag[r] = NONE;
			to_receive[r] = NONE;
			r++
		:: else -> break
		od;
		m = consumed;
		do
		:: m < sent -> arrived[m] = 1; m++
		:: else -> break
		od;
		r = next;
		do
		:: r < posted && r < next + ADVERTS ->
#ifdef NO_ADVERTS
			advertised[r] = NONE;
#endif
			advertise(r);
			r++
		:: else -> break
		od }
#endif
	od
}

active proctype sender()
{
	byte to;
	bool put;

end:	do
	/* Modelling one message at a time on the path is enough: each is for a receive of its own. */
	:: atomic { sent < MESSAGES && slot_of == NONE && bytes_to == NONE ->
		busy = 1;
		put = 0;
		to = to_receive[sent % ADVERTS];
		if
#ifdef NO_TAG
		:: granted && to != NONE && tag[sent % ADVERTS] != NONE -> put = 1
#else
		:: granted && to != NONE && tag[sent % ADVERTS] == sent -> put = 1
#endif
		:: true
		fi };
		if
		:: put -> atomic {
			if
			:: !down -> bytes_to = to; bytes_of = sent
			:: else	/* the bytes vanish */
			fi }
		:: else
		fi;
#if defined(LOSSES) && !defined(NO_FLUSH)
		bytes_to == NONE;	/* a flush: the bytes arrived, or the path is lost */
#endif
		atomic {
#if defined(LOSSES) && !defined(NO_FLUSH)
			put = put && !down;
#endif
			placed[sent] = put;
			if
			:: !down -> slot_of = sent
			:: else	/* the slot has a retransmit copy, and is published on the next path */
			fi;
			sent++;
			busy = 0
		}
	:: atomic { taking && !gone && !busy &&
#ifdef NO_DRAIN
		true
#else
		bytes_to == NONE
#endif
		-> granted = 0; gone = 1 }
	od
}

active proctype observer()
{
	timeout ->
	assert(sent == MESSAGES && !down);
#ifdef DROPS
	assert(consumed == MESSAGES);
#else
	assert(consumed == (MESSAGES < RECEIVES -> MESSAGES : RECEIVES))
#endif
}
