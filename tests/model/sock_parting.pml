/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The end of a connection (st_parting_due() of sock/stream) whose closer has sent over TCP, so that bytes and the end
 * lie in its kernel until the other end reads, while the other end sends over a VI, or is about to.  A kernel answers
 * what comes for a closed socket by a reset, and drops what it has not sent yet.
 *
 * The closer waits until a token that is under way has come, writes a word into the other end's memory by the VI, waits
 * until that has arrived, and closes socket and VI.  The other end, which finds the VI lost, owes TCP the mark of its
 * own direction.  It sends none if the word is there or the end of TCP's bytes has come; otherwise it sends the mark
 * with its next byte, or after a time in which no byte lay unread; a byte may need longer on its way.
 *
 * With KILLED the closer may end without a word once the token has come, and a byte needs less than that time; with
 * LINK the VI may be lost while both ends live, and the closer reads the other end's last byte after the mark.
 *
 * Proved: the other end reads all bytes, and then the end.  Variants that must be refuted:
 *   NO_WORD	the closer writes no word
 *   NO_FLUSH	the closer does not wait until the word has arrived
 *   NO_TOKEN	the closer does not wait for the token
 *   IGNORE	the other end does not look at the word
 *   UNREAD	with KILLED: the time runs while bytes lie unread
 */
#define BYTES 3
#define FIN 9
#define ROOM 1			/* of the other end's socket */

mtype = { TOKEN, MARK, LAST };

chan kernel = [BYTES + 1] of { byte };	/* the closer's: not sent yet */
chan socket = [ROOM] of { byte };	/* the other end's: not read yet */
chan back = [4] of { mtype };		/* what the other end has written to TCP */
bool up = true, closed = false;		/* the VI; the closer's socket */
bool sent = false, word = false;	/* the word was written; it has arrived */
bool token_came = false, fin_came = false, reset = false;
byte got = 0;

/* The closer's kernel, and what takes the word through the fabric. */
active proctype network()
{
	byte b;
	mtype m;

end:	do
	:: atomic {
		nempty(kernel) && nfull(socket) && !reset ->
		kernel?b;
		if
		:: b == FIN -> fin_came = true
		:: else -> socket!b
		fi
	}
	:: atomic { sent && up && !word -> word = true }
	:: atomic {
		nempty(back) && closed ->
		back?m;
		reset = true
	}
	od
}

active proctype closer()
{
	byte i;

	for (i : 1 .. BYTES) {
		kernel!i
	}
#ifdef LINK
	/* It stays, and reads the other end's last byte. */
end:	do
	:: atomic { back?[TOKEN] -> back?TOKEN; token_came = true }
	:: atomic { back?[MARK] -> back?MARK }
	:: atomic { back?[LAST] -> back?LAST -> kernel!FIN; closed = true; break }
	od
#else
	do
#ifdef NO_TOKEN
	:: break
#endif
	:: atomic { back?[TOKEN] -> back?TOKEN; token_came = true; break }
	od;
	if
#ifdef KILLED
	:: true
#endif
	:: true ->
#ifndef NO_WORD
		sent = true;
#ifdef NO_FLUSH
		skip
#else
		word
#endif
#else
		skip
#endif
	fi;
	atomic { kernel!FIN; closed = true; up = false }
#endif
}

/* The program of the other end. */
active proctype reader()
{
	byte b;

	do
	:: atomic { socket?[b] -> socket?b; got++; assert(b == got) }
	:: atomic { fin_came && empty(socket) && !reset -> break }
	:: reset -> break
	od;
	assert(!reset && got == BYTES)
}

#ifdef IGNORE
#define KNOWS false
#else
#define KNOWS word
#endif
#ifdef UNREAD
#define QUIET (len(kernel) == 0 || len(socket) == ROOM)
#elif defined(KILLED)
#define QUIET (len(kernel) == 0 && len(socket) == 0)
#else
#define QUIET (len(socket) == 0)
#endif

/* The helper thread of the other end. */
active proctype helper()
{
	back!TOKEN;
	!up;
	if
	:: KNOWS || fin_came
	:: atomic { !KNOWS && !fin_came && QUIET -> back!MARK }
#ifdef LINK
	/* The program sends: nothing holds the mark back. */
	:: back!MARK
#endif
	fi;
#ifdef LINK
	back!LAST
#endif
}

#ifdef LINK
active proctype link()
{
	atomic { token_came; up = false }
}
#endif
