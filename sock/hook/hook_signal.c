// SPDX-License-Identifier: BSD-2-Clause
/* Calls that install signal handlers. */
#include "hook.h"
#include "vs_signal.h"

VS_HOOK int sigaction(int number, const struct sigaction *act, struct sigaction *old)
{
	return vs_sigaction(number, act, old);
}

VS_HOOK sighandler_t signal(int number, sighandler_t handler)
{
	return vs_signal_done(number, vs_real.signal(number, handler));
}

VS_HOOK sighandler_t sysv_signal(int number, sighandler_t handler)
{
	return vs_signal_done(number, vs_real.sysv_signal(number, handler));
}

VS_ALSO(__sigaction, sigaction);
VS_ALSO(ssignal, signal);
VS_ALSO(bsd_signal, signal);
VS_ALSO(__sysv_signal, sysv_signal);
