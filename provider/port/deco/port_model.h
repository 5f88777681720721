/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * model: a link with the delays of a named profile.
 *
 * The emulated fabric moves bytes at the speed of memory and rings doorbells at once.  This
 * decorator makes a port as slow as the adapter that the profile describes, so that protocols can
 * be compared as they would perform on it:
 *
 * - The link of a port is one server.  All senders of the host queue for it, in any process; a
 *   store occupies it for the time of its packets.
 * - A store is posted: it returns when the queued bytes fit into the adapter's buffer, and is
 *   visible at the peer a latency after its last packet left.  Stores of one process through one
 *   port land in their order; a fence costs nothing.  Words stored in turn into one line are one
 *   packet, unless a fence stands between them.
 * - A doorbell and a scratchpad of the peer are posted register writes, which arrive after the
 *   stores made before.  A doorbell is seen when its interrupt is taken.
 * - port_flush() and reading a scratchpad of the peer are reads across the link, which complete
 *   after the stores made before.  Reading a scratchpad of this port is a register read.
 *
 * `self` joins processes of one host by memory, so it has no delays.
 *
 * Dilation: every delay of the profile is multiplied by the dilation and waited for on the clock of
 * the machine.  Measured times divided by it are those of the profile, and the programs' own
 * computing shrinks by this factor.
 */
#ifndef PORT_MODEL_H
#define PORT_MODEL_H

#include "port.h"
#include "port_model_profiles.h"

#define PORT_MODEL_DILATION_MAX 100000u /* of any profile; see port_model_dilation_max() */

/*
 * Wraps `inner`; takes ownership on success.  `options`: "", "PROFILE" or
 * "PROFILE:DILATION"; the default is gen3x8 with dilation 1.  -EINVAL names a
 * bad option in the log.
 */
int port_model_wrap(struct port *inner, const char *options, struct port **out);
/* Are these valid options of a model?  0 or -EINVAL; logs nothing. */
int port_model_check(const char *options);
/* Returns the greatest dilation that a profile may have: slow links allow less. */
uint32_t port_model_dilation_max(const struct port_model_profile *profile);

/*
 * Makes a client's model, from the segment of view text that the agent's port wrote and the descriptor that
 * came with it, which stays the caller's.  Takes ownership of `inner` on success.  0 or -errno; logs nothing.
 */
int port_model_attach(struct port *inner, const char *segment, int fd, struct port **out);

/*
 * For programs that charge their own work to a port `p` that has a model as one of its decorators; on another
 * port they cost nothing.  They return the profile of `p`, or NULL; return the time of the profile since some
 * start, on another port that of the clock; make the calling thread busy for `ns` of it; copy in memory, and
 * make it busy as long as that takes.
 */
const struct port_model_profile *port_model_profile(struct port *p);
/* Returns the dilation of the port's model; 1 without one. */
uint32_t port_model_dilation(struct port *p);
int64_t port_model_now_ns(struct port *p);
void port_model_spend(struct port *p, int64_t ns);
void port_model_copy(struct port *p, void *dst, const void *src, size_t n);

#endif
