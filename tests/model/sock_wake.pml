/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sleep and wake of a stream (sock/stream): a writer that fills a ring in its peer's memory and a reader that
 * empties it, each of which may sleep.  An end that is going to sleep writes a number into the arm word in
 * the other end's memory, reads it back, checks once more, and sleeps until a wake comes.  The other end
 * checks the word in its memory after each record, or each credit, and rings once for each number.
 *
 * Everything sent from one host to the other arrives in the order in which it left.  A thread's store leaves
 * its processor when the thread passes a fence, or at any time before.  The answer to a read is sent by
 * another thread, the library's, which does not empty that thread's store buffer.  With -DSLOTS a record may
 * also wait in the send queue for want of slots; an answer can overtake it there, so the arm word is checked
 * again when the record has left.
 *
 * With -DBUSY an end may find a record or credit just after it has armed, and goes on; its arm
 * stays, and the wake for it arrives at some later time.
 *
 * With -DSOON a sleeper does not wait for the answer of its read: it checks, and sleeps until a
 * wake or the answer comes.  Its checks also take wakes and answers that have come, which then
 * cannot wake it any more, so it checks again if it took one.  With -DFEW an end may find no
 * descriptors to arm with; it sends nothing, and checks again when a send has completed.
 *
 * Proved: the reader gets every record and neither end sleeps for ever (no invalid end state); no more wakes than one
 * for each kind lie at an end (a wake takes a posted receive).  Variants that must be refuted:
 *   NO_FENCE	the writer checks its arm word while its record is still in the store buffer
 *   NO_READ	the sleeper does not read its arm word back
 *   NO_CHECK	the sleeper does not check again after that
 *   CHECK_FIRST	the writer checks the arm word before it writes the record
 *   NO_SETTLE	with SLOTS: the arm word is not checked again when the record has left
 *   ARM_AGAIN	a sleeper arms again while an arm is not rung for: more wakes than receives
 *   KEEP_ARM	the wake does not end the arm: the next sleep does not arm
 *   ALWAYS_RING	the writer does not note for which number it has rung
 *   TAKE_WAKE	with SOON: the check took a wake, and the sleeper does not check again
 *   TAKE_ANSWER	with SOON: the check took the answer, and the sleeper does not check again
 *   ARM_HALF	with FEW: the number is sent although no descriptor is left for the read, and used a second time
 */
#ifndef RECORDS
#define RECORDS 3
#endif
#define ROOM 1

#define W 0
#define R 1

mtype = { STORE, ARM, READ, ANSWER, WAKE }

/* Messages on their way to end i; then the state of end i. */
chan net[2] = [8] of { mtype, byte };
byte stored[2];		/* the count that the other end stored: records at R, credit at W */
byte arm_word[2];	/* the number by which the other end asked to be rung for */
bool answered[2];
byte answers[2];	/* with SOON: answers not taken yet; one may be for an earlier arm, whose wake came first */
byte wakes[2], outstanding_wakes[2];
byte rung[2];		/* the number for which end i has rung */

byte buffered[2];	/* the count that is in the store buffer of end i's thread */
byte queued[2];		/* with SLOTS: records or credit in its send queue */
byte sent[2];		/* the count that has left */
bool unsettled[2];

byte count[2];		/* records written by W, read by R */
bool armed[2];		/* end i has an arm that was not rung for */
byte number[2];

/* A store leaves the processor: into the send queue or onto the net. */
inline leave(i)
{
	if
	:: buffered[i] != sent[i] && queued[i] == 0 ->
		sent[i] = buffered[i];
		net[1 - i]!STORE(sent[i])
	:: else
	fi
}

/* End i checks its arm word, and rings if it has to. */
inline ring(i)
{
	d_step {
		if
		:: arm_word[i] != rung[i] ->
#ifndef ALWAYS_RING
			rung[i] = arm_word[i];
#endif
			outstanding_wakes[1 - i]++;
			assert(outstanding_wakes[1 - i] <= 1);
			net[1 - i]!WAKE(0)
		:: else
		fi
	}
}

/* One more record, or credit for one. */
inline publish(i)
{
#ifdef CHECK_FIRST
	ring(i);
#endif
	count[i]++;
#ifdef SLOTS
	if
	:: atomic { !unsettled[i] -> buffered[i] = count[i] }
	:: atomic { queued[i] = count[i]; unsettled[i] = true }
	fi;
#else
	buffered[i] = count[i];
#endif
#ifndef NO_FENCE
	atomic { leave(i) }
#endif
#ifndef CHECK_FIRST
	ring(i)
#endif
}

#define THERE(i) (i == R -> stored[R] > count[R] : count[W] < stored[W] + ROOM)

inline take_wake(i)
{
	wakes[i]--;
	outstanding_wakes[i]--;
#ifndef KEEP_ARM
	armed[i] = false
#endif
}

/* The end has checked, and goes to sleep. */
inline doze(i)
{
	d_step {
		took = false;
		if
		:: wakes[i] > 0 ->
			take_wake(i);
#ifndef TAKE_WAKE
			took = true
#endif
		:: else
		fi;
		if
		:: answers[i] > 0 ->
			answers[i] = 0;
#ifndef TAKE_ANSWER
			took = true
#endif
		:: else
		fi
	}
	if
	:: took
	:: !took ->
		if
		:: wait_wake(i)
		:: atomic { answers[i] > 0 -> answers[i] = 0 }
		fi
	fi
}

inline sleep(i)
{
	if
#ifdef ARM_AGAIN
	:: true ->
#else
	:: !armed[i] ->
#endif
		d_step {
			number[i]++;
			armed[i] = true;
			answered[i] = false;
			net[1 - i]!ARM(number[i]);
		}
#ifndef NO_READ
		net[1 - i]!READ(0);
#ifndef SOON
		answered[i];
#endif
#endif
#ifdef FEW
	:: !armed[i] ->
#ifdef ARM_HALF
		net[1 - i]!ARM(number[i] + 1);
#endif
		goto awake
#endif
#ifndef ARM_AGAIN
	:: else
#endif
	fi;
	if
#ifdef SOON
	:: THERE(i)
	:: !THERE(i) -> doze(i)
#else
#ifndef NO_CHECK
	:: THERE(i)
	:: !THERE(i) -> wait_wake(i)
#else
	:: wait_wake(i)
#endif
#endif
#if defined(BUSY) || defined(FEW)
	:: atomic { wakes[i] > 0 -> take_wake(i) }
#endif
	fi;
awake:	skip
}

inline wait_wake(i)
{
	atomic {
		wakes[i] > 0 ->
		take_wake(i)
	}
}

#ifdef SLOTS
inline settle(i)
{
	atomic {
		queued[i] != 0 ->
		buffered[i] = queued[i];
		sent[i] = queued[i];
		net[1 - i]!STORE(sent[i]);
		queued[i] = 0;
	}
#ifndef NO_SETTLE
	ring(i);
#endif
	unsettled[i] = false
}
#endif

proctype side(byte me)
{
	bool took;

	do
	:: count[me] == RECORDS -> break
	:: count[me] < RECORDS && THERE(me) -> publish(me)
	:: count[me] < RECORDS && !THERE(me) -> sleep(me)
#ifdef BUSY
	/* The end goes on polling. */
	:: count[me] < RECORDS && !THERE(me) -> THERE(me)
#endif
	od
}

/* The net delivers, the library's thread answers, and store buffers and queues empty themselves. */
active proctype fabric()
{
	byte v;

	stored[W] = 0;
	run side(W);
	run side(R);
end:	do
	:: atomic { net[W]?STORE(v) -> stored[W] = v }
	:: atomic { net[R]?STORE(v) -> stored[R] = v }
	:: atomic { net[W]?ARM(v) -> arm_word[W] = v }
	:: atomic { net[R]?ARM(v) -> arm_word[R] = v }
	:: atomic { net[W]?READ(_) -> net[R]!ANSWER(0) }
	:: atomic { net[R]?READ(_) -> net[W]!ANSWER(0) }
#ifdef SOON
	:: atomic { net[W]?ANSWER(_) -> answers[W]++ }
	:: atomic { net[R]?ANSWER(_) -> answers[R]++ }
#else
	:: atomic { net[W]?ANSWER(_) -> answered[W] = true }
	:: atomic { net[R]?ANSWER(_) -> answered[R] = true }
#endif
	:: atomic { net[W]?WAKE(_) -> wakes[W]++ }
	:: atomic { net[R]?WAKE(_) -> wakes[R]++ }
	:: atomic { buffered[W] != sent[W] && queued[W] == 0 -> leave(W) }
	:: atomic { buffered[R] != sent[R] && queued[R] == 0 -> leave(R) }
#ifdef SLOTS
	:: settle(W)
	:: settle(R)
#endif
	od
}
