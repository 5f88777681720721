/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the agent takes over from the program that starts it, and what it does not: all of it is decided
 * here, and listed in docs/architecture.md, «What an agent inherits».
 *
 * An agent serves all processes of its host, and outlives its starter.  So nothing that the starter's shell
 * was given for one program may end the agent or slow it down, least of all where a set-user-ID program
 * starts it, whose caller is not the owner of the fabric.
 */
#ifndef VIADUCTD_INHERIT_H
#define VIADUCTD_INHERIT_H

/*
 * Before anything else: one user, no signal ignored, the limits as high as they may be.  Blocked signals stay
 * blocked until the agent's own handlers are there.
 * 0 or -errno: it cannot become one user.
 */
int vd_inherit_begin(void);

/* Do the limits suffice that could not be raised?  0, or -EPERM with a complaint. */
int vd_inherit_check(void);

/* Of an agent on demand: it may run where the kernel lets it, and not where its starter was put. */
void vd_inherit_place(void);

#endif
