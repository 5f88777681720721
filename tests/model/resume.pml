/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A resumable connection whose paths are lost, one after the other.  docs/ring.md, «When a path is lost».
 *
 * End 0 asked for the connection and is the first end, end 1 is the other end.  Each end is an agent and
 * a process, which exchange messages through a fifo each way.  Path e is the path of epoch e; path 0
 * carries the connection at the start.  A path goes through a relay of its own, or, where bit e of RELAYS
 * is 0, joins the two hosts.  Each of its links carries records in order, and slots and credit.  Paths are
 * independent, so records and slots of an old one may arrive arbitrarily late.
 *
 *	agent 0 - wire 0 -> relay - wire 1 -> agent 1	 or, of neighbours, wire 0
 *	agent 0 <- wire 3 - relay <- wire 2 - agent 1			    wire 2
 *
 * LOSSES times, at any moment, either link of a path, or both at once (a relay that dies), is lost with
 * all records in it.  Each agent next to it notices at any later moment, and end 0 also notices a lost
 * link that is not its own.  RETURNS times end 0 leaves a path that works.  With -DGIVE_UP an end that is
 * not on a path may give up at any moment; with -DLEAVES a process may disconnect or die once, and ends
 * may give up after that; with -DBLIND a process may once take a link that is up for one that is down.
 * With -DDIES agent 0 and its process die once, at any moment, and no end gives up without an answer:
 * there is a path to another agent of that host, and end 1, while it waits for a RESUME or a CONFIRM, asks
 * that agent by a QUERY whether it knows the connection.  QUERY and UNKNOWN may take any time, and end 1
 * may have got a RESUME meanwhile; an end that is gone does not come back, so both are one step here.
 *
 * Each process has a number of messages to send, FORTH and BACK, through slots of which N may be
 * unconsumed.  A slot that was stored stays in the fifo until another is stored in its place.
 *
 * Proved: a slot is not stored before the slot whose place it takes was read; no success is reported for
 * a message that the peer did not consume, and the other end never reports an impossible count; nothing
 * is stored into a slice or a bypass buffer that was freed; when no step is possible any more, all
 * messages were consumed once and in order and were acknowledged, and no relay keeps a circuit of a path
 * that was left.  With GIVE_UP or LEAVES either that holds or neither VI is connected; with DIES
 * likewise, the latter only after the death.
 *
 * Variants that must be refuted:
 *	NO_EPOCH	a record is taken for one of the connection's path although it has another epoch
 *	OLD_RESUME	a RESUME is accepted though a later one was accepted before
 *	OLD_PENDING	a pending RESUME is replaced by an earlier one
 *	EARLY_CONSUMED	a process reports the slots that it consumed before it unmaps the old slice
 *	NO_RETRANSMIT	slots that were published and not consumed are not published again
 *	TAKE_ALL	slots that were published again count as consumed
 *	REUSE		the slice of a path that was left is freed before the other end has left the path too
 *	EARLY_CLOSE	an agent sends CLOSE over a path before its process has unmapped it
 *	FORGET_SLICE	a slice that was named in an ACCEPT is freed when the next RESUME comes
 *	FORGET_PATH	the other end sends no CLOSE over a path that it leaves before the CONFIRM
 *	LATE_REFUSE	the other end ends with REFUSE an attempt that it has accepted
 *	ASK_ONCE	an end that is refused for want of a link does not ask again when the update about that
 *			link came before the refusal
 *	DOWN_IS_LOST	a process that is to resume over a link that is down ends the connection
 *	NO_CONFIRM	the other end does not wait until its process has resumed
 *	QUIET		an end that gives up sends no CLOSE
 *	NO_QUERY	end 1 sends no QUERY
 *	QUERY_SUSPENDED	end 1 sends none once it has accepted, which end 0 may not have learnt before it died
 *	ALL_UNKNOWN	an agent answers UNKNOWN for an end that it knows
 */
#ifndef RELAYS
#define RELAYS 7
#endif
#ifndef LOSSES
#define LOSSES 1
#endif
#ifndef RETURNS
#define RETURNS 0
#endif
#ifndef FORTH
#define FORTH 2
#endif
#ifndef BACK
#define BACK 0
#endif
#ifndef N
#define N 1
#endif
#ifndef PATHS
#define PATHS (LOSSES + RETURNS + 1)
#endif
#if PATHS < 2 || PATHS > 4
#error there are two to four paths
#endif
#define NONE PATHS
#define RELAYED(e) ((RELAYS >> (e)) & 1)
#define MESSAGES(x) ((x) == 0 -> FORTH : BACK)

mtype = { RESUME, ACCEPT, CONFIRM, CANCEL, REFUSE, NO_PATH, CLOSE, END };	/* between agents */
mtype = { SUSPEND, RESUMED, LOST, SUSPENDED, CONFIRMED, LEFT };	/* between agent and process */

/* struct ag_conn */
#define GONE 0
#define CONNECTED 1
#define CONN_LOST 2	/* the other end closed */
#define CONN_CLOSED 3	/* this end closed */

/* enum ag_resume */
#define AG_ON_PATH 0
#define AG_SUSPENDING 1
#define AG_SUSPENDED 2
#define AG_RESUMING 3
#define AG_RESUMED 4

/* States of a circuit at a relay. */
#define FREE 0
#define ASKED 1
#define ACCEPTED 2
#define CARRIED 3
#define HALF(i) (4 + (i)) /* closed by end i */

/* States of memory. */
#define UNUSED 0
#define LIVE 1
#define RETIRED 2
#define FREED 3

chan wire[PATHS * 4] = [3] of { mtype };
bool down[PATHS * 2];	/* link 0 is that of end 0; of neighbours, both ends' */
bool unseen[PATHS * 2];	/* by the agent of the end */
bool relay_unseen[PATHS * 2];
bool news[PATHS];	/* the update about a lost link of end 1 is on its way to end 0 */

chan to_process[2] = [3] of { mtype, byte };
chan to_agent[2] = [4] of { mtype, byte };

byte state[2];
byte resume[2];
byte epoch[2];
bool on_self[2];	/* suspended: the connection is on self, without a path */
bool path_closed[2];
byte agent_consumed[2];
byte pending;		/* epoch of the pending RESUME at end 1; 0: none */
bool again;		/* end 0 got a link-state update since it asked */
byte said[PATHS * 2];	/* slots that the end has consumed by its record of the epoch */

bool connected[2];	/* the VI */
bool late[2];		/* the agent gave the process up, which may still store */
byte mapped[2];
byte tx[2], acked[2], rx[2], credited[2];

/* For path e: the inbound slice of end x, and the bypass buffer that end x stores into. */
byte slice[PATHS * 2];
byte bypass[PATHS * 2];
/* The slots of end x: at the relay, and at the other end. */
byte at_relay[PATHS * 2 * N];
byte at_end[PATHS * 2 * N];
byte credit_relay[PATHS * 2];	/* stored there by the other end */
byte credit_end[PATHS * 2];	/* in the slice of end x */
byte circuit[PATHS];
byte next[PATHS * 2], credit_moved[PATHS * 2];
byte losses, returns;
bool leaves, blind, died;

#define AT(e, x) ((e) * 2 + (x))
#define PLACE(e, x, n) (AT(e, x) * N + (n) % N)
#define LINK(e, x) AT(e, (RELAYED(e) -> (x) : 0))
#define WIRE_LINK(e, k) LINK(e, ((k) == 1 || (k) == 2))
#define WIRE(e, k) wire[(e) * 4 + (k)]
#define FROM_PATH(e) WIRE(e, (x == 0 -> (RELAYED(e) -> 3 : 2) : (RELAYED(e) -> 1 : 0)))
#define OTHER (1 - x)

inline post(e, k, record)
{
	if
	:: !down[WIRE_LINK(e, k)] -> assert(nfull(WIRE(e, k))); WIRE(e, k)!record
	:: else
	fi
}

/* ---- processes ------------------------------------------------------------------------------------ */

#define STORED(m) ((m) == LIVE || (m) == RETIRED)
/* Slots that no process will read are not kept, so that states that differ only in them are one. */
#define READ(e, y) (slice[AT(e, y)] == LIVE || mapped[y] == (e))
#define STANDS_BETWEEN(e) (circuit[e] == ACCEPTED || circuit[e] == CARRIED)

inline forget_slots(e, y)
{
	i = 0;
	do
	:: i < N -> at_end[AT(e, 1 - (y)) * N + i] = 0; i++
	:: else -> break
	od;
	i = 0;
	credit_end[AT(e, y)] = 0
}

inline unmap()
{
	if
	:: mapped[x] != NONE && slice[AT(mapped[x], x)] != LIVE -> forget_slots(mapped[x], x)
	:: else
	fi;
	mapped[x] = NONE
}

inline end_slice(e, how)
{
	slice[AT(e, x)] = how;
	if
	:: mapped[x] != (e) -> forget_slots(e, x)
	:: else
	fi
}

/* Slot m of end x, into the path that it has mapped. */
inline store_slot(m)
{
	if
	:: !down[LINK(mapped[x], x)] && RELAYED(mapped[x]) ->
		assert(bypass[AT(mapped[x], x)] == LIVE || late[x]);
		if
		:: STANDS_BETWEEN(mapped[x]) ->
			assert(m < next[AT(mapped[x], x)] + N);
			at_relay[PLACE(mapped[x], x, m)] = m + 1
		:: else
		fi
	:: !down[LINK(mapped[x], x)] && !RELAYED(mapped[x]) ->
		assert(STORED(slice[AT(mapped[x], OTHER)]) || late[x]);
		assert(m < rx[OTHER] + N);
		if
		:: READ(mapped[x], OTHER) -> at_end[PLACE(mapped[x], x, m)] = m + 1
		:: else
		fi
	:: else
	fi
}

/* Credit: the count of slots that end x consumed, for the other end. */
inline store_credit()
{
	credited[x] = rx[x];
	if
	:: !down[LINK(mapped[x], x)] && RELAYED(mapped[x]) ->
		assert(bypass[AT(mapped[x], x)] == LIVE || late[x]);
		if
		:: STANDS_BETWEEN(mapped[x]) -> credit_relay[AT(mapped[x], OTHER)] = rx[x]
		:: else
		fi
	:: !down[LINK(mapped[x], x)] && !RELAYED(mapped[x]) ->
		assert(STORED(slice[AT(mapped[x], OTHER)]) || late[x]);
		if
		:: READ(mapped[x], OTHER) -> credit_end[AT(mapped[x], OTHER)] = rx[x]
		:: else
		fi
	:: else
	fi
}

inline take_credit(count)
{
	assert(count >= acked[x] && count <= tx[x]);
	acked[x] = count;
	assert(acked[x] <= rx[OTHER])
}

inline end_process()
{
	connected[x] = false;
	unmap();
	to_agent[x]!LEFT, 0
}

inline retransmit()
{
	t = acked[x];
	do
	:: t < tx[x] -> store_slot(t); t++
	:: else -> break
	od;
	t = 0
}

/* nvi_chan_resume() */
inline resume_process(e)
{
	if
#ifdef BLIND
	:: !blind -> blind = true
#endif
	:: down[LINK(e, x)] ->
#ifdef DOWN_IS_LOST
		end_process()
#else
		skip
#endif
	:: !down[LINK(e, x)] ->
		t = acked[x];
		take_credit(said[AT(e, OTHER)]);
#ifdef TAKE_ALL
		take_credit(tx[x]);
#endif
		credit_end[AT(e, x)] = acked[x];
		credited[x] = rx[x];
		unmap();
		mapped[x] = e;
#ifndef NO_RETRANSMIT
		retransmit();
#endif
		t = 0;
		to_agent[x]!CONFIRMED, 0
	fi
}

inline told_by_agent()
{
	if
	:: !connected[x]
	:: connected[x] && m == SUSPEND ->
#ifndef EARLY_CONSUMED
		unmap();
#endif
		to_agent[x]!SUSPENDED, rx[x]
	:: connected[x] && m == RESUMED -> resume_process(e)
	:: connected[x] && m == LOST -> end_process()
	fi
}

#define CAN_SEND (connected[x] && tx[x] < MESSAGES(x) && tx[x] < acked[x] + N)
#define ON_PATH (connected[x] && mapped[x] != NONE)

/* ---- agents ---------------------------------------------------------------------------------------- */

inline free_slice()
{
	if
	:: !on_self[x] && slice[AT(epoch[x], x)] == LIVE -> end_slice(epoch[x], FREED)
	:: else
	fi
}

/* ag_retire_slice(): the other end, or a relay, may store there until it has left the path too. */
inline retire_slice()
{
	if
	:: slice[AT(epoch[x], x)] == LIVE && !path_closed[x] && !down[LINK(epoch[x], x)] ->
#ifdef REUSE
		end_slice(epoch[x], FREED)
#else
		end_slice(epoch[x], RETIRED)
#endif
	:: else -> free_slice()
	fi
}

/* ag_suspend_to_self() */
inline move_to_self()
{
	on_self[x] = true;
	path_closed[x] = false
}

inline leave_path(record)
{
	post(epoch[x], (x == 0 -> 0 : 2), record);
	retire_slice();
	move_to_self()
}

inline free_conn()
{
	free_slice();
	state[x] = GONE;
	resume[x] = AG_ON_PATH;
	if
	:: x == 1 -> pending = 0
	:: else
	fi
}

/* The first end sends a RESUME over the next path. */
inline ask()
{
	if
	:: epoch[x] + 1 < PATHS ->
		epoch[x]++;
		on_self[x] = false;
		resume[x] = AG_RESUMING;
		said[AT(epoch[x], x)] = agent_consumed[x];
		post(epoch[x], 0, RESUME)
	:: else
	fi
}

/* The other end answers the pending RESUME by ACCEPT, if the link is up. */
inline accept_resume()
{
	if
	:: down[LINK(pending, x)] && !unseen[LINK(pending, x)]
	:: else ->
		epoch[x] = pending;
		on_self[x] = false;
		slice[AT(epoch[x], x)] = LIVE;
		said[AT(epoch[x], x)] = agent_consumed[x];
		resume[x] = AG_RESUMING;
		post(epoch[x], 2, ACCEPT)
	fi;
	pending = 0
}

/* ag_suspend_begin() */
inline suspend_begin()
{
	resume[x] = AG_SUSPENDING;
#ifdef EARLY_CLOSE
	if
	:: !on_self[x] -> leave_path(CLOSE)
	:: else
	fi;
#endif
	to_process[x]!SUSPEND, 0
}

/* ag_suspend_give_up() */
inline give_up_attempt()
{
	free_slice();
	move_to_self();
	resume[x] = AG_SUSPENDED
}

/* ag_suspend_leave_attempt(): a path that this end has accepted is left as any path is. */
inline leave_attempt()
{
#ifdef FORGET_PATH
	retire_slice();
	move_to_self();
#else
#ifdef FORGET_SLICE
	post(epoch[x], 2, CLOSE);
	free_slice();
	move_to_self();
#else
	leave_path(CLOSE);
#endif
#endif
	resume[x] = AG_SUSPENDED
}

/* ag_suspend_withdraw() */
inline withdraw(record)
{
	if
	:: x == 0 -> post(epoch[x], 0, CANCEL); move_to_self()
	:: else ->
#ifdef LATE_REFUSE
		post(epoch[x], 2, REFUSE); retire_slice(); move_to_self()
#else
		leave_path(record)
#endif
	fi
}

inline too_late()
{
	if
	:: on_self[x]
	:: !on_self[x] && resume[x] == AG_RESUMING -> withdraw(CLOSE)
	:: !on_self[x] && resume[x] != AG_RESUMING ->
		late[x] = true;
#ifdef QUIET
		move_to_self()
#else
		leave_path(CLOSE)
#endif
	fi;
	to_process[x]!LOST, 0;
	free_conn()
}

inline link_down()
{
	if
	:: state[x] != CONNECTED -> free_conn()
	:: state[x] == CONNECTED ->
		if
		:: resume[x] == AG_ON_PATH || resume[x] == AG_RESUMED ->
			free_slice(); move_to_self(); suspend_begin()
		:: resume[x] == AG_SUSPENDING -> free_slice(); move_to_self()
		:: resume[x] == AG_RESUMING ->
			give_up_attempt();
			if
			:: x == 0 -> ask()
			:: else
			fi
		fi
	fi
}

/* ag_resume_closed(), for a CLOSE */
inline closed()
{
	path_closed[x] = true;
	if
	:: resume[x] == AG_ON_PATH || resume[x] == AG_RESUMED -> suspend_begin()
	:: resume[x] == AG_RESUMING ->
		leave_attempt();
		if
		:: x == 0 -> ask()
		:: else
		fi
	:: else
	fi
}

/* END stands for a CLOSE after which the connection is over. */
inline ended()
{
	if
	:: state[x] == CONNECTED ->
		state[x] = CONN_LOST;
		resume[x] = AG_ON_PATH;
		if
		:: x == 1 -> pending = 0
		:: else
		fi;
		to_process[x]!LOST, 0
	:: state[x] == CONN_CLOSED -> free_conn()
	:: else
	fi
}

#ifdef OLD_RESUME
#define NEWER true
#else
#ifdef OLD_PENDING
#define NEWER (e > epoch[x])
#else
#define NEWER (e > epoch[x] && e > pending)
#endif
#endif

/* ag_resume_request() */
inline asked()
{
	if
	:: state[x] == CONNECTED && NEWER ->
		pending = e;
		if
		:: resume[x] == AG_ON_PATH || resume[x] == AG_RESUMED -> suspend_begin()
		:: resume[x] == AG_RESUMING -> leave_attempt()
		:: else
		fi;
		if
		:: resume[x] == AG_SUSPENDED -> accept_resume()
		:: else
		fi
	:: else -> post(e, 2, REFUSE)
	fi
}

#ifdef NO_EPOCH
#define NAMED (state[x] != GONE && !on_self[x])
#else
#define NAMED (state[x] != GONE && !on_self[x] && epoch[x] == e)
#endif

inline told_by_path()
{
	if
	:: (m == CLOSE || m == END) && slice[AT(e, x)] == RETIRED -> end_slice(e, FREED)
	:: else
	fi;
	if
	:: m == RESUME -> asked()
	:: NAMED && m == ACCEPT && resume[x] == AG_RESUMING ->
		slice[AT(e, x)] = LIVE;
		to_process[x]!RESUMED, e;
		resume[x] = AG_RESUMED
	:: NAMED && m == CONFIRM && resume[x] == AG_RESUMING ->
		to_process[x]!RESUMED, e;
#ifdef NO_CONFIRM
		resume[x] = AG_ON_PATH
#else
		resume[x] = AG_RESUMED
#endif
	:: NAMED && m == REFUSE && resume[x] == AG_RESUMING -> give_up_attempt(); too_late()
	:: NAMED && m == NO_PATH && resume[x] == AG_RESUMING ->
		give_up_attempt();
#ifndef ASK_ONCE
		if
		:: again -> again = false; ask()
		:: else
		fi
#endif
	:: NAMED && m == CANCEL && resume[x] == AG_RESUMING -> give_up_attempt()
	:: NAMED && m == CANCEL && state[x] == CONN_CLOSED -> free_conn()
	:: NAMED && m == CLOSE && state[x] == CONNECTED -> closed()
	:: NAMED && (m == END || (m == CLOSE && state[x] != CONNECTED)) -> ended()
	:: else
	fi
}

inline process_left()
{
	if
	:: state[x] == CONN_LOST -> post(epoch[x], (x == 0 -> 0 : 2), END); free_conn()
	:: state[x] == CONNECTED ->
		if
		:: on_self[x] -> free_conn()
		:: !on_self[x] && resume[x] == AG_RESUMING -> withdraw(END); free_conn()
		:: !on_self[x] && resume[x] != AG_RESUMING ->
			post(epoch[x], (x == 0 -> 0 : 2), END);
			if
			:: path_closed[x] -> free_conn()
			:: else -> state[x] = CONN_CLOSED; resume[x] = AG_ON_PATH
			fi
		fi
	:: else
	fi
}

inline told_by_process()
{
	if
	:: m == SUSPENDED && state[x] == CONNECTED && resume[x] == AG_SUSPENDING ->
		if
		:: !on_self[x] -> leave_path(CLOSE)
		:: else
		fi;
		agent_consumed[x] = e;
		resume[x] = AG_SUSPENDED;
		if
		:: x == 0 -> ask()
		:: x == 1 && pending != 0 -> accept_resume()
		:: else
		fi
	:: m == CONFIRMED && resume[x] == AG_RESUMED ->
		resume[x] = AG_ON_PATH;
		if
		:: x == 0 -> post(epoch[x], 0, CONFIRM)
		:: else
		fi
	:: m == LEFT -> process_left()
	:: else
	fi
}

inline heard_of_links()
{
	if
	:: x == 0 && state[0] == CONNECTED && resume[0] == AG_SUSPENDED -> ask()
	:: x == 0 && resume[0] == AG_RESUMING -> again = true
	:: else
	fi
}

/* ---- losses ------------------------------------------------------------------------------------------ */

inline drop(k)
{
	do
	:: nempty(WIRE(e, k)) -> WIRE(e, k)?_
	:: empty(WIRE(e, k)) -> break
	od
}

inline lose_link(i)
{
	down[AT(e, i)] = true;
	if
	:: !RELAYED(e) ->
		drop(0); drop(2);
		unseen[AT(e, 0)] = true;
		unseen[AT(e, 1)] = true
	:: RELAYED(e) && i == 0 ->
		drop(0); drop(3);
		unseen[AT(e, 0)] = true;
		relay_unseen[AT(e, 0)] = true
	:: RELAYED(e) && i == 1 ->
		drop(1); drop(2);
		unseen[AT(e, 1)] = true;
		relay_unseen[AT(e, 1)] = true;
		news[e] = true
	fi
}

/* ---- an end ---------------------------------------------------------------------------------------- */

inline sees_loss()
{
	unseen[AT(e, x)] = false;
	heard_of_links();
	if
	:: slice[AT(e, x)] == RETIRED -> end_slice(e, FREED)
	:: else
	fi;
	if
	:: state[x] != GONE && !on_self[x] && epoch[x] == e -> link_down()
	:: else
	fi
}

/* Agent 0 and its process die, and their memory is gone; x is 0. */
inline die()
{
	died = true;
	connected[0] = false;
	e = 0;
	do
	:: e <= epoch[0] ->
		if
		:: !down[LINK(e, 0)] -> lose_link(0)
		:: else
		fi;
		unseen[LINK(e, 0)] = false;
		if
		:: STORED(slice[AT(e, 0)]) -> end_slice(e, FREED)
		:: else
		fi;
		e++
	:: else -> break
	od;
	e = 0;
	unmap();
	free_conn()
}

/* End 1 waits for a RESUME or a CONFIRM. */
#ifdef QUERY_SUSPENDED
#define WAITS (resume[1] == AG_SUSPENDED)
#else
#define WAITS (resume[1] == AG_SUSPENDED || resume[1] == AG_RESUMING)
#endif

#ifdef ALL_UNKNOWN
#define UNKNOWN true
#else
#define UNKNOWN (state[0] == GONE)
#endif

proctype host(byte x)
{
	mtype m;
	byte e, t, i;

end:	do
	:: atomic {
		if
		:: FROM_PATH(0)?m -> e = 0
		:: FROM_PATH(1)?m -> e = 1
#if PATHS > 2
		:: FROM_PATH(2)?m -> e = 2
#endif
#if PATHS > 3
		:: FROM_PATH(3)?m -> e = 3
#endif
		fi;
		told_by_path();
		m = 0;
		e = 0
	}
	:: atomic {
		if
		:: unseen[AT(0, x)] -> e = 0
		:: unseen[AT(1, x)] -> e = 1
#if PATHS > 2
		:: unseen[AT(2, x)] -> e = 2
#endif
#if PATHS > 3
		:: unseen[AT(3, x)] -> e = 3
#endif
		fi;
		sees_loss();
		e = 0
	}
	:: atomic { to_process[x]?m, e -> told_by_agent(); m = 0; e = 0 }
	:: atomic { to_agent[x]?m, e -> told_by_process(); m = 0; e = 0 }
	:: atomic {
		CAN_SEND ->
		tx[x]++;
		if
		:: mapped[x] != NONE -> store_slot((tx[x] - 1))
		:: else
		fi
	}
	:: atomic {
		ON_PATH && credit_end[AT(mapped[x], x)] != acked[x] ->
		take_credit(credit_end[AT(mapped[x], x)])
	}
	:: atomic { ON_PATH && at_end[PLACE(mapped[x], OTHER, rx[x])] == rx[x] + 1 -> rx[x]++ }
	:: atomic { ON_PATH && credited[x] != rx[x] -> store_credit() }
#ifdef GIVE_UP
	:: atomic { state[x] == CONNECTED && resume[x] != AG_ON_PATH -> too_late() }
#endif
#ifdef LEAVES
	:: atomic { leaves && state[x] == CONNECTED && resume[x] != AG_ON_PATH -> too_late() }
#endif
#ifdef LEAVES
	:: atomic { connected[x] && !leaves -> leaves = true; end_process() }
#endif
#ifdef DIES
	:: atomic { x == 0 && !died && state[0] == CONNECTED -> die() }
#ifndef NO_QUERY
	:: atomic {
		x == 1 && state[1] == CONNECTED && WAITS && UNKNOWN ->
		too_late()
	}
#endif
#endif
	:: atomic {
		x == 0 && returns < RETURNS && state[0] == CONNECTED && resume[0] == AG_ON_PATH ->
		returns++;
		suspend_begin()
	}
	od
}

/* ---- a relay ---------------------------------------------------------------------------------------- */

/* Copies end d's next slot to the other end. */
inline forward(d)
{
	if
	:: !down[AT(e, 1 - d)] ->
		assert(STORED(slice[AT(e, 1 - d)]));
		assert(next[AT(e, d)] < rx[1 - d] + N);
		if
		:: READ(e, 1 - d) -> at_end[PLACE(e, d, next[AT(e, d)])] = next[AT(e, d)] + 1
		:: else
		fi
	:: else
	fi;
	next[AT(e, d)]++
}
#define THERE(d) (at_relay[PLACE(e, d, next[AT(e, d)])] == next[AT(e, d)] + 1)

inline pass_credit(d)
{
	assert(credit_relay[AT(e, d)] <= next[AT(e, d)]);
	credit_moved[AT(e, d)] = credit_relay[AT(e, d)];
	if
	:: !down[AT(e, d)] ->
		assert(STORED(slice[AT(e, d)]));
		if
		:: READ(e, d) -> credit_end[AT(e, d)] = credit_relay[AT(e, d)]
		:: else
		fi
	:: else
	fi
}

inline tell_end(i, record)
{
	post(e, (i == 0 -> 3 : 1), record)
}

inline make_bypass(i)
{
	bypass[AT(e, i)] = LIVE;
	next[AT(e, i)] = said[AT(e, 1 - i)];
	credit_moved[AT(e, 1 - i)] = said[AT(e, i)];
	credit_relay[AT(e, 1 - i)] = said[AT(e, i)]
}

inline free_bypass(i)
{
	if
	:: bypass[AT(e, i)] == LIVE -> bypass[AT(e, i)] = FREED
	:: else
	fi
}

/* No slot or credit is forwarded any more. */
inline forget_bypass()
{
	k = 0;
	do
	:: k < 2 * N -> at_relay[e * 2 * N + k] = 0; k++
	:: else -> break
	od;
	k = 0;
	do
	:: k < 2 ->
		next[AT(e, k)] = 0;
		credit_relay[AT(e, k)] = 0;
		credit_moved[AT(e, k)] = 0;
		k++
	:: else -> break
	od;
	k = 0
}

inline free_circuit()
{
	free_bypass(0);
	free_bypass(1);
	forget_bypass();
	circuit[e] = FREE
}

inline half_close(i)
{
	do
	:: circuit[e] == CARRIED && THERE(i) -> forward(i)
	:: else -> break
	od;
	free_bypass(i);
	forget_bypass();
	circuit[e] = HALF(i)
}

inline record_from(i)
{
	if
	:: m == RESUME && down[AT(e, 1)] && !relay_unseen[AT(e, 1)] -> tell_end(0, NO_PATH)
	:: m == RESUME && !(down[AT(e, 1)] && !relay_unseen[AT(e, 1)]) ->
		circuit[e] = ASKED;
		tell_end(1, m)
	:: m == ACCEPT && circuit[e] == ASKED -> make_bypass(0); circuit[e] = ACCEPTED; tell_end(0, m)
	:: m == CONFIRM && circuit[e] == ACCEPTED -> make_bypass(1); circuit[e] = CARRIED; tell_end(1, m)
	:: m == REFUSE && (circuit[e] == ASKED || circuit[e] == ACCEPTED) ->
		free_circuit();
		tell_end(0, m)
	:: m == CANCEL &&
	   (circuit[e] == ASKED || circuit[e] == ACCEPTED || circuit[e] == HALF(1)) ->
		free_circuit();
		tell_end(1, m)
	:: (m == CLOSE || m == END) && (circuit[e] == ACCEPTED || circuit[e] == CARRIED) ->
		half_close(i);
		tell_end(1 - (i), m)
	:: (m == CLOSE || m == END) && circuit[e] == HALF(1 - (i)) ->
		free_circuit();
		tell_end(1 - (i), m)
	:: else
	fi
}

inline lose_end(i)
{
	if
	:: circuit[e] == ASKED && i == 0 -> free_circuit(); tell_end(1, CANCEL)
	:: circuit[e] == ASKED && i == 1 -> free_circuit(); tell_end(0, NO_PATH)
	:: circuit[e] == ACCEPTED && i == 0 -> free_circuit(); tell_end(1, CANCEL)
	:: (circuit[e] == ACCEPTED && i == 1) || circuit[e] == CARRIED ->
		half_close(i);
		tell_end(1 - (i), CLOSE)
	:: circuit[e] == HALF(1 - (i)) -> free_circuit(); tell_end(1 - (i), CLOSE)
	:: circuit[e] == HALF(i)
	:: circuit[e] == FREE
	fi
}

proctype relay(byte e)
{
	mtype m;
	byte k;

end:	do
	:: atomic { WIRE(e, 0)?m -> record_from(0); m = 0 }
	:: atomic { WIRE(e, 2)?m -> record_from(1); m = 0 }
	:: atomic { relay_unseen[AT(e, 0)] -> relay_unseen[AT(e, 0)] = false; lose_end(0) }
	:: atomic { relay_unseen[AT(e, 1)] -> relay_unseen[AT(e, 1)] = false; lose_end(1) }
#if FORTH > 0
	:: atomic { circuit[e] == CARRIED && THERE(0) -> forward(0) }
	:: atomic {
		circuit[e] == CARRIED && credit_relay[AT(e, 0)] != credit_moved[AT(e, 0)] ->
		pass_credit(0)
	}
#endif
#if BACK > 0
	:: atomic { circuit[e] == CARRIED && THERE(1) -> forward(1) }
	:: atomic {
		circuit[e] == CARRIED && credit_relay[AT(e, 1)] != credit_moved[AT(e, 1)] ->
		pass_credit(1)
	}
#endif
	od
}

/* ---- links fail -------------------------------------------------------------------------------------- */

#define WORKS(e) (losses < LOSSES && (e) <= epoch[0] && !down[AT(e, 0)] && !down[AT(e, 1)])

proctype links_fail()
{
	byte e;

end:	do
	:: atomic {
		if
		:: WORKS(0) -> e = 0
		:: WORKS(1) -> e = 1
#if PATHS > 2
		:: WORKS(2) -> e = 2
#endif
#if PATHS > 3
		:: WORKS(3) -> e = 3
#endif
		fi;
		losses++;
		if
		:: lose_link(0)
		:: RELAYED(e) -> lose_link(1)
		:: RELAYED(e) -> lose_link(0); lose_link(1)
		fi;
		e = 0
	}
	od
}

/* End 0 gets link-state updates of links that are not its own. */
proctype updates_spread()
{
	byte e, x;

end:	do
	:: atomic {
		if
		:: news[0] -> news[0] = false
		:: news[1] -> news[1] = false
#if PATHS > 2
		:: news[2] -> news[2] = false
#endif
#if PATHS > 3
		:: news[3] -> news[3] = false
#endif
		fi;
		heard_of_links()
	}
	od
}

/* ---- the final state ------------------------------------------------------------------------------------ */

#define THROUGH(x) \
	(connected[x] && state[x] == CONNECTED && resume[x] == AG_ON_PATH && tx[x] == MESSAGES(x) && \
	 acked[x] == MESSAGES(x) && rx[1 - (x)] == MESSAGES(x))
#define RESUMABLE(e) (state[0] == CONNECTED && epoch[0] == (e))

init
{
	byte e;

	atomic {
		for (e : 0 .. 1) {
			state[e] = CONNECTED;
			connected[e] = true;
			slice[AT(0, e)] = LIVE;
			bypass[AT(0, e)] = LIVE
		}
		circuit[0] = (RELAYED(0) -> CARRIED : FREE);
		for (e : 0 .. PATHS - 1) {
			if
			:: RELAYED(e) -> run relay(e)
			:: else
			fi
		}
		e = 0;
		run host(0);
		run host(1);
		run links_fail();
		run updates_spread()
	};
	timeout ->
#ifdef DIES
	assert((!died && THROUGH(0) && THROUGH(1)) ||
	       (died && state[1] == GONE && !connected[0] && !connected[1]));
#elif defined(GIVE_UP) || defined(LEAVES)
	assert((THROUGH(0) && THROUGH(1)) || (!connected[0] && !connected[1]));
#else
	assert(THROUGH(0) && THROUGH(1));
#endif
	for (e : 0 .. 1) {
		assert(state[e] == CONNECTED || state[e] == GONE)
	}
	for (e : 0 .. PATHS - 1) {
		assert(circuit[e] == FREE || (circuit[e] == CARRIED && RESUMABLE(e)));
		assert(slice[AT(e, 0)] != LIVE || RESUMABLE(e));
		assert(slice[AT(e, 1)] != LIVE || RESUMABLE(e))
	}
}
