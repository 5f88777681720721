/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Answers to RDMA reads that are stored into the memory that is read into.  docs/protocol.md, section 5,
 * «Placed answers».
 *
 * The reader asks for READS reads, at any moment, all into one place of two pieces.  Each is
 * offered or not; a request contains the number of slots that the reader had consumed when it was
 * made.  The answering end answers in order: if the read was offered and the right is held it may
 * store the answer, piece by piece, and publish a slot after that; else the slot carries the
 * answer, and the reader copies it when it consumes the slot.  Slots and bytes may arrive at any
 * moment after they were stored, but those stored after a fence arrive after those stored before
 * it.
 *
 * With -DREVOKES the right ends once, at any moment: the reader asks for the grant back, waits until it
 * is given up, and has the memory for itself.  With -DLOSSES the path is lost once, at any moment, with
 * all that is on it, and slots that were not consumed are published again over a new path, for which
 * the right may be granted again or not.
 *
 * Proved: when a read is complete its bytes are there, or those of a later one; no bytes of an
 * earlier read overwrite those of a later one; none are stored after the right has ended; an answer
 * that is marked as placed answers a read that was offered; and all reads are answered.
 *
 * Variants that must be refuted:
 *	NO_ORDER	an answer is stored though an earlier answer, carried by a slot, was not consumed
 *	NO_TOLD		all slots of reads that were asked for count as consumed, in place of the request's count
 *	NO_OFFER	answers to reads that were not offered are stored, too
 *	NO_FENCE	no fence between storing the bytes and publishing the slot
 *	NO_FLUSH	the slot is published before it is known that the path stood until the bytes arrived
 *	NO_ANEW		an answer that is under way when the path is lost continues from the piece reached
 *	NO_CHECK	the right is checked for the first piece only
 *	NO_DRAIN	the grant is given up before its bytes have arrived
 *	NO_WAIT		the reader does not wait until the grant is given up
 */
#ifndef READS
#define READS 3
#endif
#define PIECES 2
#define NONE 255

/* The reader. */
byte piece[PIECES];		/* the read that its bytes belong to, plus 1 */
bool offered[READS];
byte told[READS];		/* slots consumed when the read was asked for */
byte asked, consumed;
bool ended;			/* the right */
bool arrived[READS], placed[READS]; /* slots */

/* The state of the answering end. */
byte sent;			/* answers published */
byte stored;			/* pieces of the next answer */
bool placing;
byte credit;			/* slots that it knows to be consumed */
byte carried;			/* number after the last slot that carried an answer */
bool busy;			/* it holds its lock */
bool granted = 1, taking, gone;
byte bytes_to = NONE, bytes_of;	/* bytes on the path: into this piece, of this read */
byte slot_of = NONE;		/* slot on the path */

bool down, lost;		/* the path */

#ifdef NO_ORDER
#define IN_ORDER 1
#else
#ifdef NO_TOLD
#define IN_ORDER (credit >= carried || asked >= carried)
#else
#define IN_ORDER (credit >= carried || told[sent] >= carried)
#endif
#endif

/* Bytes and slots arrive. */
active proctype path()
{
end:	do
	:: atomic { bytes_to != NONE ->
		assert(!ended);
		assert(piece[bytes_to] <= bytes_of + 1);
		piece[bytes_to] = bytes_of + 1;
		bytes_to = NONE }
	:: atomic { slot_of != NONE &&
#ifdef NO_FENCE
		true
#else
		bytes_to == NONE	/* the slot was stored behind a fence */
#endif
		-> arrived[slot_of] = 1; slot_of = NONE }
	:: atomic { !down && credit != consumed -> credit = consumed }
#ifdef LOSSES
	:: atomic { !lost ->
		lost = 1; down = 1; bytes_to = NONE; slot_of = NONE }
#endif
	od
}

active proctype reader()
{
	byte i;

end:	do
	:: atomic { asked < READS ->
		told[asked] = consumed;
		if
		:: offered[asked] = !ended
		:: true
		fi;
		asked++ }
	:: atomic { consumed < READS && arrived[consumed] ->
		i = 0;
		do
		:: i < PIECES ->
			if
			:: placed[consumed] -> skip
			:: else ->
				assert(piece[i] <= consumed + 1);
				piece[i] = consumed + 1
			fi;
			assert(piece[i] >= consumed + 1);
			i++
		:: else -> break
		od;
		assert(!placed[consumed] || offered[consumed]);
		consumed++ }
#ifdef REVOKES
	:: atomic { !taking -> taking = 1 }
	:: atomic { taking && !ended &&
#ifdef NO_WAIT
		true
#else
		gone
#endif
		-> ended = 1 }
#endif
#ifdef LOSSES
	/* Both ends have noticed, and there is a new path. */
	:: atomic { down && !busy ->
		down = 0;
		credit = consumed;
#ifndef NO_ANEW
		stored = 0;
		placing = 0;
#endif
		if
		:: granted = 0
		:: granted = !taking
		fi;
		i = consumed;
		do
		:: i < sent -> arrived[i] = 1; i++
		:: else -> break
		od }
#endif
	od
}

active proctype answerer()
{
	bool put;

end:	do
	/* Whether an answer is placed or carried is chosen when it is begun. */
	:: atomic { sent < asked && !placing && slot_of == NONE && bytes_to == NONE && stored == 0 ->
		if
#ifdef NO_OFFER
		:: granted && IN_ORDER -> placing = 1
#else
		:: granted && offered[sent] && IN_ORDER -> placing = 1
#endif
		:: true ->		/* the read is not offered, or the grant was not asked for yet */
			placed[sent] = 0;
			if
			:: !down -> slot_of = sent
			:: else		/* the slot has a retransmit copy, and is published on the next path */
			fi;
			sent++;
			carried = sent
		fi }
	/* The right has ended: the answer begins again, and is carried by slots. */
#ifndef NO_CHECK
	:: atomic { placing && !granted -> placing = 0; stored = 0 }
#endif
	:: atomic { placing && bytes_to == NONE && stored < PIECES &&
#ifdef NO_CHECK
		(granted || stored > 0)
#else
		granted
#endif
		->
		if
		:: !down -> bytes_to = stored; bytes_of = sent
		:: else			/* the bytes vanish */
		fi;
		stored++;
		busy = stored == PIECES };
		if
		:: busy ->
			put = 1;
#if defined(LOSSES) && !defined(NO_FLUSH)
			bytes_to == NONE;	/* a flush: the bytes arrived, or the path is lost */
#endif
			atomic {
#if defined(LOSSES) && !defined(NO_FLUSH)
				put = !down;
#endif
				busy = 0;
				placing = 0;
				stored = 0;
				if
				:: put ->
					placed[sent] = 1;
					if
					:: !down -> slot_of = sent
					:: else
					fi;
					sent++
				:: else ->	/* carried by a slot, which has a retransmit copy */
					placed[sent] = 0;
					sent++;
					carried = sent
				fi
			}
		:: else
		fi
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
	assert(consumed == READS && !down && piece[0] == READS && piece[1] == READS)
}
