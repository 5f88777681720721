/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * One direction of a TCP connection that moves to a VI and back (sock/stream): the sender's side,
 * the reader's, and the VI, which may be lost at any moment; each side notices that at a moment of
 * its own.
 *
 * The sender's request has the count of bytes that it has sent on TCP and half a token.  When the reader
 * agrees, both halves follow on TCP.  The reader takes TCP's bytes up to that count, compares the token, and
 * returns its second half over the VI.  Now each knows that the VI and the TCP connection have the same other
 * end, and the sender writes into the ring.  By a record in the ring it announces that it goes on with TCP,
 * where its bytes follow after a mark, the count of its records.
 *
 * When the VI is lost the sender writes the mark, too, and goes on with TCP.  The reader reads the ring to
 * its end, then the mark, and resets the connection when records are missing.  With -DANEW the sender may
 * skip the rest of the ring by a record that says so (sock_ring.pml): then the mark counts places in the ring
 * and not records.
 *
 * Proved: the reader gets the bytes in order, each once, and all of them unless the connection was reset,
 * which happens only if records were lost; no token or mark is taken for bytes; no side waits for ever.  With
 * -DTHIEF the VI's other end is a process that has nothing to do with the TCP connection and answers
 * anything: the sender writes nothing into its ring.  With -DFORGER such a process sends the request to a
 * reader whose TCP peer knows nothing of VIs: the reader takes nothing from the ring, and loses nothing.
 * Variants that must be refuted:
 *   TOKEN_EARLY	the token follows the request at once
 *   NO_COUNT		the reader expects the token wherever it is
 *   NO_PROOF		the sender writes into the ring as soon as it has sent the token
 *   NO_COMPARE		the reader takes any 16 bytes for the token
 *   KEEP_TOKEN		a reader that has lost the VI does not expect the token
 *   RING_EARLY		the reader reads the ring before it has read the token
 *   JUST_SEND		with STEADY, which loses no VI: the sender goes back to TCP without a record
 *   NO_MARK		no mark precedes the bytes on TCP
 *   ANY_MARK		the reader does not compare the mark
 *   TCP_FIRST		a reader that has lost the VI ignores the records in the ring
 *   NO_END		a reader that has lost the VI waits for more in the ring
 *   COUNT_ALL		with ANEW: the reader counts a record that skips the rest of the ring as one place
 */
#define BYTES 4
#define TOKEN 100	/* both halves */
#define RESET 101
#define DEMOTE 102
#define ANEW_AT 103	/* the next record lies at the ring's beginning */
#define LAP 4		/* records in a ring */
#define BEGINNING(n) ((n) / LAP * LAP + LAP)
#define MARK 150	/* and the count of records */

mtype = { SWITCH, YES, NO, PROOF }
mtype = { TCP, ASKED, PROVING, RING, DRAIN, MARKED, OVER }

chan tcp = [8] of { byte };
chan ring = [8] of { byte };		/* in the reader's memory */
chan flying = [8] of { byte };		/* records on their way */
chan forth = [4] of { mtype, byte };
chan back = [8] of { mtype, byte };

bool up = true;
mtype sends = TCP, reads = TCP;
byte next = 0, tcp_sent = 0;		/* bytes of the program */
byte written = 0;			/* records */
byte got = 0, tcp_read = 0, until = 0, taken = 0;
bool sender_lost = false, reader_lost = false;	/* each side has noticed */
bool was_reset = false, dropped = false, sender_done = false;

/* ---- the sender ---------------------------------------------------------------------------------------------- */

inline send_tcp()
{
	tcp!next;
	next++;
	tcp_sent++
}

inline leave_ring()
{
#ifndef NO_MARK
	tcp!MARK + written;
#endif
	sends = TCP
}

inline lose_sender()
{
	sender_lost = true;
	if
	:: sends == RING || sends == PROVING -> leave_ring()
	:: else -> sends = TCP
	fi
}

proctype sender()
{
	byte n;
	bool back_again = false;

	do
	:: atomic { sends == TCP && next == BYTES -> break }
	:: sends == OVER -> break
	:: atomic { sends == TCP && next < BYTES -> send_tcp() }
	:: atomic {
		sends == TCP && !sender_lost && !back_again ->
		sends = ASKED;
		forth!SWITCH(tcp_sent);
		back_again = true;
#ifdef TOKEN_EARLY
		tcp!TOKEN
#endif
	}
	:: atomic {
		sends == ASKED && nempty(back) ->
		if
		:: back?YES(n) ->
#ifndef TOKEN_EARLY
			tcp!TOKEN;
#endif
#ifdef NO_PROOF
			sends = RING
#else
			sends = PROVING
#endif
		:: back?NO(n) -> sends = TCP
		:: back?PROOF(n) -> sends = TCP; sender_lost = true	/* against the protocol */
		fi
	}
	:: atomic {
		sends == PROVING && back?[PROOF(n)] ->
		back?PROOF(n);
		if
		:: n == TOKEN -> sends = RING
		:: else -> sends = OVER; was_reset = true; tcp!RESET
		fi
	}
	:: atomic { sends == RING && next < BYTES && !sender_lost -> flying!next; next++; written++ }
#ifdef ANEW
	:: atomic {
		sends == RING && !sender_lost && written % LAP != 0 && taken == written ->
		flying!ANEW_AT;
		written = BEGINNING(written)
	}
#endif
	:: atomic {
		sends == RING && !sender_lost ->
#ifndef JUST_SEND
		flying!DEMOTE;
		written++;
#endif
		leave_ring()
	}
#ifdef NO_PROOF
	:: atomic { sends != ASKED && back?[PROOF(n)] -> back?PROOF(n) }
#endif
	:: atomic { !up && !sender_lost -> lose_sender() }
	od;
	sender_done = true
}

/* ---- the reader ---------------------------------------------------------------------------------------------- */

inline deliver(v)
{
	assert(v == got);
	got++
}

#ifdef NO_MARK
#define LEFT TCP
#else
#define LEFT MARKED
#endif

inline read_ring()
{
	atomic {
		ring?n ->
#ifndef COUNT_ALL
		taken = (n == ANEW_AT -> BEGINNING(taken) : taken + 1);
#else
		taken++;
#endif
		if
		:: n == DEMOTE -> reads = LEFT
		:: n == ANEW_AT
		:: else -> deliver(n)
		fi
	}
}

proctype reader()
{
	byte n;

end:	do
	:: atomic {
		reads == TCP && tcp?[n] ->
		tcp?n;
		if
		:: n == RESET -> reads = OVER
		:: else -> deliver(n); tcp_read++
		fi
	}
	:: atomic {
		reads == TCP && forth?[SWITCH(n)] && !reader_lost ->
		forth?SWITCH(until);
		if
		:: until >= tcp_read ->
			if
			:: up -> back!YES(0)
			:: else
			fi;
#ifdef RING_EARLY
			reads = RING
#else
			reads = DRAIN
#endif
		:: true ->
			if
			:: up -> back!NO(0)
			:: else
			fi
		fi
	}
	/* Reads up to the count, then the token. */
#ifdef NO_COUNT
	:: atomic {
		reads == DRAIN && nempty(tcp) ->
		tcp?n;
		if
		:: n == RESET -> reads = OVER
		:: n == TOKEN -> reads = RING
		:: else -> reads = RING;
			if
			:: up -> back!PROOF(TOKEN)
			:: else
			fi
		fi
	}
#else
	:: atomic {
		reads == DRAIN && nempty(tcp) ->
		tcp?n;
		if
		:: n == RESET -> reads = OVER
#ifdef NO_COMPARE
		:: tcp_read == until && n != RESET ->
#else
		:: tcp_read == until && n == TOKEN ->
#endif
			if
			:: up -> back!PROOF(TOKEN)
			:: else
			fi;
			reads = RING
#ifndef NO_COMPARE
		/* The other end went on with TCP, or is not the VI's other end. */
		:: tcp_read == until && n < BYTES -> reads = TCP; deliver(n); tcp_read++; reader_lost = true
#endif
		:: tcp_read < until && n != RESET -> deliver(n); tcp_read++
		fi
	}
#endif
#ifdef KEEP_TOKEN
	:: atomic { reads == DRAIN && !up -> reads = TCP; reader_lost = true }
#endif
	:: atomic {
		reads == MARKED && nempty(tcp) ->
		tcp?n;
		if
		:: n == RESET -> reads = OVER
#ifdef ANY_MARK
		:: else -> reads = TCP
#else
		:: n == MARK + taken -> reads = TCP
		:: else -> reads = OVER; was_reset = true; assert(dropped || nempty(flying))
#endif
		fi
	}
#ifdef RING_EARLY
	:: reads == RING && nempty(ring) -> read_ring()
	:: atomic { reads == RING && tcp?[TOKEN] -> tcp?n; back!PROOF(TOKEN) }
#else
	:: reads == RING && nempty(ring) -> read_ring()
#endif
#ifndef NO_END
#ifdef TCP_FIRST
	:: atomic { reads == RING && !up -> reader_lost = true; reads = LEFT }
#else
	:: atomic { reads == RING && !up && empty(ring) -> reader_lost = true; reads = LEFT }
#endif
#endif
	od
}

/* ---- the VI and others ------------------------------------------------------------------------------------------ */

proctype vi()
{
	byte n;
	mtype m;

end:	do
	:: atomic { up && nempty(flying) -> flying?n; ring!n }
#ifndef STEADY
	/* The VI is lost: the first of the records under way may still arrive. */
	:: atomic {
		up ->
		up = false;
		do
		:: nempty(flying) -> flying?n; ring!n
		:: do :: nempty(flying) -> flying?n; dropped = true :: empty(flying) -> break od; break
		od;
		do
		:: nempty(forth) -> forth?m(n)
		:: break
		od;
		if
		:: do :: nempty(back) -> back?m(n) :: empty(back) -> break od
		:: true
		fi
	}
#endif
	od
}

#ifdef THIEF
proctype thief()
{
	byte n;

end:	do
	:: forth?SWITCH(n) -> back!YES(0)
	:: len(back) < 4 -> back!PROOF(0)
	:: nempty(ring) -> assert(false)
	od
}
#endif

#ifdef FORGER
proctype forger()
{
	byte t;

	select (t : 0 .. 5);
	forth!SWITCH(t);
	flying!77;
	/* The real end of the TCP connection knows nothing of the VI. */
	do
	:: atomic { next < BYTES -> send_tcp() }
	:: next == BYTES -> break
	od;
	sender_done = true;
end:	do
	:: atomic { nempty(back) -> back?_(_) }
	:: atomic { up -> up = false }
	od
}
#endif

init
{
	atomic {
		run vi();
#ifdef THIEF
		run thief();
		run sender();
#elif defined(FORGER)
		run forger();
		run reader();
#else
		run sender();
		run reader();
#endif
	}
	sender_done || was_reset;
#ifndef THIEF
	got == BYTES || was_reset;
#endif
	}
