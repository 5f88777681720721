/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pthread_cancel() and this library: a thread is cancelled only where it sleeps and holds nothing
 * that a cleanup handler does not release.  A function that may reach a cancellation point - a
 * system call that may block, a condition - in any other state does this first:
 *
 *	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
 *
 * This keeps cancellation off until the end of the block.  It costs two calls and no system call.
 */
#ifndef U_CANCEL_H
#define U_CANCEL_H

#include <pthread.h>

/* At the end of its block the function is called with the address of the variable. */
#define U_AT_END(function) __attribute__((cleanup(function)))

/* Turns cancellation off.  Returns the state before. */
static inline int u_cancel_off(void)
{
	int before;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
	return before;
}

static inline void u_cancel_back(const int *before)
{
	pthread_setcancelstate(*before, NULL);
}

#endif
