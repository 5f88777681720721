// SPDX-License-Identifier: BSD-2-Clause
#include "vs_signal.h"

#include <errno.h>
#include <stdatomic.h>

#include "vs_real.h"

typedef void handler_t(int number, siginfo_t *info, void *context);

/* The program's, of the signals whose handler is ours; all are called with three arguments. */
static handler_t *_Atomic theirs[NSIG];
static _Atomic bool with_info[NSIG]; /* SA_SIGINFO was asked for */

static _Atomic bool restarts[NSIG];

static __thread volatile uint32_t interrupts __attribute__((tls_model("initial-exec")));
static __thread _Atomic uint32_t handled __attribute__((tls_model("initial-exec")));
/* Handlers of this thread that have not returned; one that was left by a jump stays counted. */
static __thread uint32_t inside __attribute__((tls_model("initial-exec")));
/* One more than the descriptor that a handler writes to; 0: none. */
static __thread _Atomic int woken __attribute__((tls_model("initial-exec")));

/* The handler that is installed: counts, ends a sleep of vs_handled_since(), and calls the program's. */
static void enter(int number, siginfo_t *info, void *context)
{
	handler_t *handler = atomic_load_explicit(&theirs[number], memory_order_acquire);
	const uint64_t one = 1;
	int before = errno, fd;

	if (!atomic_load_explicit(&restarts[number], memory_order_relaxed))
		interrupts++;
	atomic_fetch_add(&handled, 1);
	fd = atomic_load(&woken) - 1;
	if (fd >= 0 && vs_real.write(fd, &one, sizeof(one)) < 0)
		errno = before; /* it is full, and readable */
	inside++;
	handler(number, info, context);
	inside--;
}

bool vs_in_handler(void)
{
	return inside != 0;
}

uint32_t vs_interrupts(void)
{
	return interrupts;
}

uint32_t vs_handled(void)
{
	return atomic_load(&handled);
}

bool vs_handled_since(uint32_t before, int fd)
{
	atomic_store(&woken, fd + 1);
	return atomic_load(&handled) != before;
}

void vs_handled_end(void)
{
	atomic_store(&woken, 0);
}

static bool is_handler(const struct sigaction *a)
{
	return a->sa_handler != SIG_DFL && a->sa_handler != SIG_IGN;
}

static bool is_ours(const struct sigaction *a)
{
	return a->sa_sigaction == enter;
}

/* A fault of the thread's own, which ends no sleep; that somebody sends such a signal is not provided for. */
static bool is_fault(int number)
{
	return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
	       number == SIGTRAP;
}

/* A handler that was installed by a call which is not replaced may be the one that ran. */
bool vs_restarts(uint32_t before)
{
	struct sigaction a;
	int saved = errno, i;
	bool all = interrupts == before;

	for (i = 1; all && i < NSIG; i++) {
		if (!is_fault(i) && vs_real.sigaction(i, NULL, &a) == 0 && is_handler(&a) &&
		    !is_ours(&a))
			all = a.sa_flags & SA_RESTART;
	}
	errno = saved;
	return all;
}

/*
 * Replaces the library's handler and SA_SIGINFO by the program's, which the program has to see; does nothing to others.
 */
static void translate(int number, struct sigaction *a)
{
	if (!is_ours(a))
		return;
	a->sa_sigaction = atomic_load(&theirs[number]);
	if (!atomic_load(&with_info[number]))
		a->sa_flags &= ~SA_SIGINFO;
}

/* Puts ours before a handler, and notes the program's for that signal; does nothing to SIG_DFL, SIG_IGN or ours. */
static void wrap(int number, struct sigaction *a)
{
	if (!is_handler(a) || is_ours(a))
		return;
	atomic_store(&restarts[number], (a->sa_flags & SA_RESTART) != 0);
	atomic_store(&with_info[number], (a->sa_flags & SA_SIGINFO) != 0);
	atomic_store_explicit(&theirs[number], a->sa_sigaction, memory_order_release);
	a->sa_sigaction = enter;
	a->sa_flags |= SA_SIGINFO;
}

int vs_sigaction(int number, const struct sigaction *act, struct sigaction *old)
{
	struct sigaction ours, was;
	int rc;

	if (number <= 0 || number >= NSIG)
		return vs_real.sigaction(number, act, old);
	/* The old one first: its handler may be replaced in the table. */
	rc = vs_real.sigaction(number, NULL, &was);
	if (rc != 0)
		return rc;
	translate(number, &was);
	if (act) {
		ours = *act;
		wrap(number, &ours);
		rc = vs_real.sigaction(number, &ours, NULL);
	}
	if (rc == 0 && old)
		*old = was;
	return rc;
}

sighandler_t vs_signal_done(int number, sighandler_t old)
{
	struct sigaction a = { .sa_handler = old };
	int saved = errno;

	if (old == SIG_ERR || number <= 0 || number >= NSIG)
		return old;
	translate(number, &a);
	old = a.sa_handler;
	if (vs_real.sigaction(number, NULL, &a) == 0 && is_handler(&a) && !is_ours(&a)) {
		wrap(number, &a);
		vs_real.sigaction(number, &a, NULL);
	}
	errno = saved;
	return old;
}
