// SPDX-License-Identifier: BSD-2-Clause
/* The counters of the streams, of which the last state was added to the statistics. */
#include <pthread.h>

#include "st_stream.h"
#include "vs_stat.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct st_stats last = { .size = sizeof(last) };

void vs_stat_publish(void)
{
	struct st_stats now = { .size = sizeof(now) };

	if (!vs_stat_wanted || pthread_mutex_trylock(&lock) != 0)
		return;
	st_stats(&now);
	vs_stat_add(VS_VI_RX, now.vi_bytes_received - last.vi_bytes_received);
	vs_stat_add(VS_VI_TX, now.vi_bytes_sent - last.vi_bytes_sent);
	vs_stat_add(VS_TCP_RX, now.tcp_bytes_received - last.tcp_bytes_received);
	vs_stat_add(VS_TCP_TX, now.tcp_bytes_sent - last.tcp_bytes_sent);
	vs_stat_add(VS_POLLED, now.polled - last.polled);
	vs_stat_add(VS_POLLER_WAKES, now.poller_wakes - last.poller_wakes);
	vs_stat_add(VS_GIVEN, now.given - last.given);
	vs_stat_add(VS_GIVEN_ONE_CORE, now.given_one_core - last.given_one_core);
	last = now;
	pthread_mutex_unlock(&lock);
}

void vs_stat_publish_none(void)
{
	lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
	st_stats(&last);
}
