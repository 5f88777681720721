/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decides which attributes the agent inherits from the program that starts it; they are listed in
 * docs/architecture.md, «What an agent inherits».
 *
 * An agent serves all processes of its host, and outlives its starter.  So no setting that the starter's shell has
 * for one program may end the agent or slow it down, least of all where it is started by a set-user-ID program, whose
 * caller is not the owner of the fabric.
 */
#ifndef VIADUCTD_INHERIT_H
#define VIADUCTD_INHERIT_H

/*
 * Called before anything else: makes the effective user the real one, too, gives ignored signals their default
 * action, raises the limits as far as it may, and sets umask 077 and the default timer slack.  Blocked signals
 * stay blocked until the agent's own handlers are there.  0, or -errno: it cannot change the real user.
 */
int vd_inherit_begin(void);

/*
 * Are the limits that could not be raised high enough?  0; or -EPERM with a complaint, only for an agent that a
 * set-user-ID program started.  Any other is warned if it will run out of processor time.
 */
int vd_inherit_check(void);

/*
 * For an agent on demand: lets it run on all processors that the kernel allows, not only on those of its
 * starter, and gives it the default policy for memory.
 */
void vd_inherit_place(void);

#endif
