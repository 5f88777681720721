/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A service manager that starts viaductd: the listening socket that it hands over, and the word that
 * the agent is ready.  The protocol is that of systemd's sd_listen_fds(3) and sd_notify(3).
 */
#ifndef VIADUCTD_MANAGER_H
#define VIADUCTD_MANAGER_H

/*
 * The socket that the manager handed over, 0 where it handed over none.  0; -EINVAL with a complaint
 * where it handed over several.  The variables are removed from the environment.
 */
int vd_manager_socket(int *sock_out);

/* Tells the manager, if it wants to hear, that processes can connect. */
void vd_manager_ready(void);

#endif
