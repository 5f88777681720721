/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Circuits: connections between other hosts that go through this one, their bypass buffers, and the
 * transfer threads to which they are handed.  ag_relay.c lists their states, and the records that
 * change them.
 */
#ifndef AG_CIRCUIT_H
#define AG_CIRCUIT_H

#include <stdbool.h>
#include <stdint.h>

#include "ag_link.h"
#include "ag_list.h"
#include "ag_state.h"
#include "port.h"
#include "rl_relay.h"
#include "rt_topo.h"
#include "w_cm.h"
#include "w_ctl.h"
#include "w_slot.h"

#define AG_CIRCUIT_NONE 2u /* neither end */

enum ag_circuit_state {
	AG_CIRCUIT_ASKED = 1, /* end[1].conn is not known yet, unless it is a RESUME */
	AG_CIRCUIT_ACCEPTED,
	AG_CIRCUIT_CARRIED,
	AG_CIRCUIT_HALF_CLOSED, /* nothing is carried; at least one end may still store */
};

struct ag_circuit_end {
	struct ag_list in_link; /* in link->circuits[] */
	struct ag_link *link;
	uint16_t host;
	uint64_t conn;
	struct rt_path path; /* to this end, from the other end */
	bool has_slice;
	struct port_slice slice; /* the bypass buffer that this end writes */
	uint64_t reservation;	 /* the reservation for that in the link's window */
	struct port_map in, out;
	uint32_t db_mask;
	/* slots of the other end that this end consumed over earlier paths */
	struct w_consumed consumed;
};

struct ag_circuit {
	struct ag_list node; /* in agent->circuits[] */
	struct ag_agent *agent;
	enum ag_circuit_state state;
	uint32_t epoch;
	bool peer;  /* asked by PEER */
	uint8_t at; /* hops from end[0] to this host */
	unsigned int thread;
	unsigned int closed;	      /* half closed: the end that closed; else AG_CIRCUIT_NONE */
	struct w_geometry most;	      /* the largest geometry of its slices */
	struct w_geometry geometry;   /* of all its slices */
	struct ag_circuit_end end[2]; /* end[0] asked for the connection */
	struct rl_circuit *rl;	      /* NULL: no transfer thread has it */
};

/*
 * Makes the circuit of the request `cm`, which came over `from` and goes on over `to`.  NULL: this
 * host relays nothing, the neighbour has used up its part of the table, or there is no memory.
 */
struct ag_circuit *ag_circuit_new(struct ag_link *from, struct ag_link *to, const struct w_cm *cm);

/* Frees a circuit with its slices; no record is sent. */
void ag_circuit_free(struct ag_circuit *c);

/* Returns the circuit to which a record over `l` belongs, with the end that sent it, 0 or 1, in *end_out; or NULL. */
struct ag_circuit *ag_circuit_find(struct ag_link *l, const struct w_cm *cm, uint32_t epoch,
				   unsigned int *end_out);

/*
 * End `from` named its slice `g` to the other: maps it, and puts the name of a bypass buffer into
 * `g`.  0; -EAGAIN: it has not arrived, and this is not the last chance; -EPROTO or -E2BIG, not logged: the geometry is
 * another than that of the other end's slice, or too large; or another -errno, logged.  What was mapped or allotted
 * before an error stays for ag_circuit_free().
 */
int ag_circuit_stand_between(struct ag_circuit *c, unsigned int from, struct w_geometry *g,
			     bool last_chance);

/*
 * Hands the circuit to its transfer thread, after ag_circuit_stand_between() for both ends.  0 or -errno; then the
 * slices stay mapped for ag_circuit_stop().  The caller sets the state.
 */
int ag_circuit_carry(struct ag_circuit *c);

/* Takes the circuit from its transfer thread, if it has one, whose lock it takes, and unmaps its slices. */
void ag_circuit_stop(struct ag_circuit *c);

/* Frees the bypass buffer that an end writes, if there is one, after ag_circuit_stop(), which unmaps it. */
void ag_circuit_free_slice(struct ag_circuit_end *e);

#endif
