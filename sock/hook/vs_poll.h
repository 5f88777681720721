/* SPDX-License-Identifier: BSD-2-Clause */
/* poll() and select() over descriptors of which some are streams. */
#ifndef VS_POLL_H
#define VS_POLL_H

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/select.h>
#include <time.h>

/* True: some descriptor has an object, so the call is for vs_poll() or vs_select(). */
bool vs_poll_concerns(const struct pollfd *v, nfds_t n);
bool vs_select_concerns(int n, const fd_set *r, const fd_set *w, const fd_set *e);

/* As ppoll(); a NULL timeout: no end. */
int vs_poll(struct pollfd *v, nfds_t n, const struct timespec *timeout, const sigset_t *mask);
/* As pselect(); sets `left` to what is left of the timeout, also after errors but ENOMEM, unless either is NULL. */
int vs_select(int n, fd_set *r, fd_set *w, fd_set *e, const struct timespec *timeout,
	      const sigset_t *mask, struct timespec *left);

#endif
