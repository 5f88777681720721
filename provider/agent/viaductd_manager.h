/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A service manager that starts viaductd: the listening socket that it passes, and the message that the agent is
 * ready.  The protocol is that of systemd's sd_listen_fds(3) and sd_notify(3).
 */
#ifndef VIADUCTD_MANAGER_H
#define VIADUCTD_MANAGER_H

/*
 * Gets the socket that the manager passed, 0 if it passed none.  0; -EINVAL with a complaint if it passed several.
 * The variables are removed from the environment.
 */
int vd_manager_socket(int *sock_out);

/* Tells the manager, if there is one that asked for it, that processes can connect. */
void vd_manager_ready(void);

#endif
