// SPDX-License-Identifier: BSD-2-Clause
/* Waits of calls over streams, which never block: sleep, restarts after signals, and pthread_cancel(). */
#include "vs_io_wait.h"

#include <errno.h>
#include <pthread.h>

#include "st_stream.h"
#include "vs_late.h"
#include "vs_real.h"
#include "vs_signal.h"
#include "vs_table.h"

/* For the call that sleeps in this thread: the count of handlers before it, and its object, with a reference. */
static __thread uint32_t handled_before __attribute__((tls_model("initial-exec")));
static __thread struct vs_obj *sleeps_on __attribute__((tls_model("initial-exec")));

/* The thread is cancelled in vs_io_sleep(): ends its sleep, and gives the object's reference back. */
static void cancelled(void *o)
{
	vs_handled_end();
	st_sleep_end();
	vs_put(o);
}

int vs_io_sleep(struct pollfd *v, unsigned int n, const struct timespec *left)
{
	int rc = -EINTR;

	if (!vs_handled_since(handled_before, v[0].fd)) {
		pthread_cleanup_push(cancelled, sleeps_on);
		rc = vs_real.ppoll(v, n, left, NULL);
		rc = rc < 0 ? -errno : rc;
		pthread_cleanup_pop(0);
	}
	vs_handled_end();
	return rc;
}

int vs_io_wait_once(struct vs_obj *o, struct st_stream *s, unsigned int events,
		    const struct timespec *until)
{
	sleeps_on = o;
	handled_before = vs_handled();
	return st_sleep(s, events, until);
}

int vs_io_wait(struct vs_obj *o, struct st_stream *s, unsigned int events,
	       const struct timespec *until)
{
	uint32_t interrupts = vs_interrupts();
	int rc;

	vs_stat_add(VS_SLEEPS, 1);
	do {
		vs_late_check(); /* a handler may have closed the connection */
		rc = vs_io_wait_once(o, s, events, until);
	} while (rc == -EINTR && !until && vs_restarts(interrupts));
	return rc < 0 ? rc : 0;
}
