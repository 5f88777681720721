// SPDX-License-Identifier: BSD-2-Clause
#include "vs_ready.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

#include "vs_real.h"

unsigned int vs_stream_events(unsigned int asked)
{
	unsigned int events = asked & (ST_IN | ST_OUT | ST_RDHUP);

	if (asked & POLLRDNORM)
		events |= ST_IN;
	if (asked & POLLWRNORM)
		events |= ST_OUT;
	return events | ST_ERR | ST_HUP;
}

/* As the kernel names them: each of the pair that was asked for. */
static unsigned int spread(unsigned int found, unsigned int asked)
{
	unsigned int events = found & (asked | ST_ERR | ST_HUP);

	if (found & ST_IN)
		events |= asked & POLLRDNORM;
	if (found & ST_OUT)
		events |= asked & POLLWRNORM;
	return events;
}

/*
 * True: there are fewer bytes than SO_RCVLOWAT asks for, and neither end nor error, so that they are no reason to wake.
 */
static bool below_low_water(struct vs_obj *o, struct st_stream *s, unsigned int found)
{
	int low = atomic_load_explicit(&o->sock.low_water, memory_order_relaxed);

	return low > 1 && !(found & (ST_RDHUP | ST_HUP | ST_ERR)) && st_readable_bytes(s) < low;
}

void vs_ready_get(struct vs_obj *o, struct st_stream *s, unsigned int asked, struct vs_ready *look)
{
	struct st_ready ready;

	st_ready(s, &ready);
	if ((ready.events & ST_IN) && below_low_water(o, s, ready.events))
		ready.events &= ~(unsigned int)ST_IN;
	if (atomic_load_explicit(&o->sock.error, memory_order_relaxed))
		ready.events |= ST_ERR | ST_IN;
	/* The kernel's socket may have ended while the VI still has bytes: the stream tells of it. */
	if (!(ready.kernel & ST_IN))
		ready.kernel &= ST_OUT;
	look->events = spread(ready.events, asked);
	/* Urgent bytes are the kernel's: it tells of them while bytes of the VI before them are unread. */
	look->kernel = spread(ready.kernel, asked) | (asked & POLLPRI);
	look->in_edges = ready.in_edges;
	look->out_edges = ready.out_edges;
}

void vs_ready_note(struct vs_obj *o)
{
	struct st_stream *s = atomic_load(&o->sock.stream);

	if (s && st_on_vi(s) && !atomic_exchange(&o->sock.was_on_vi, true))
		vs_stat_add(VS_PROMOTED, 1);
}

int vs_ready_at_mark(struct st_stream *s, int fd, int *at)
{
	int64_t bytes = st_readable_bytes(s);
	int kernel = 0, rc = vs_real.ioctl(fd, SIOCATMARK, at);

	/* What is unread here was sent before all that the kernel has. */
	if (rc == 0 && *at && vs_real.ioctl(fd, FIONREAD, &kernel) == 0 && bytes > kernel)
		*at = 0;
	return rc;
}
