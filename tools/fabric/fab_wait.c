/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

#include "fab_wait.h"
#include "u_base.h"
#include "u_time.h"

void fab_end_signals(sigset_t *out)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa;
	size_t i;

	sigemptyset(out);
	for (i = 0; i < U_ARRAY_SIZE(signals); i++) {
		if (sigaction(signals[i], NULL, &sa) == 0 && sa.sa_handler != SIG_IGN)
			sigaddset(out, signals[i]);
	}
}

bool fab_interrupted(void)
{
	sigset_t wanted, pending;

	fab_end_signals(&wanted);
	sigpending(&pending);
	sigandset(&pending, &pending, &wanted);
	return !sigisemptyset(&pending);
}

int fab_port_wait(struct cl_agent *agent, uint32_t i, int64_t deadline)
{
	char text[400];
	int rc;

	for (;;) {
		rc = cl_list(agent, W_LIST_PORTS, i, text);
		if (rc != 0 || strstr(text, "\"link\":\"up\"") != NULL)
			return rc;
		if (fab_interrupted())
			return -EINTR;
		if (u_time_left(deadline) == 0)
			return -ETIMEDOUT;
		poll(NULL, 0, 5);
	}
}
