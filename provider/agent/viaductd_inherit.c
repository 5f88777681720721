/* SPDX-License-Identifier: BSD-2-Clause */
#include "viaductd_inherit.h"

#include <errno.h>
#include <grp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "u_base.h"
#include "u_log.h"
#include "viaductd_options.h"

#define TIMER_SLACK_NS 50000UL /* the kernel's default */
#define CPUS_MAX 8192	       /* the most for which Linux can be built */
#define FDS_WANTED 65536u      /* for an agent that another user's limits would restrict */
#define FDS_LEAST 1024u	       /* with fewer, such an agent does not start */

/*
 * Limits that decide how long an agent lives and how much it can hand out.  `least`: the limit that an agent needs
 * which a set-user-ID program starts; 0: any value is enough.
 */
static const struct {
	int limit;
	rlim_t wanted, least;
	char letter; /* of ulimit */
	rlim_t unit; /* of ulimit */
} limits[] = {
	{ RLIMIT_NOFILE, FDS_WANTED, FDS_LEAST, 'n', 1 },
	{ RLIMIT_CPU, RLIM_INFINITY, RLIM_INFINITY, 't', 1 },
	{ RLIMIT_FSIZE, RLIM_INFINITY, RLIM_INFINITY, 'f', 1024 },
	{ RLIMIT_AS, RLIM_INFINITY, RLIM_INFINITY, 'v', 1024 },
	{ RLIMIT_DATA, RLIM_INFINITY, RLIM_INFINITY, 'd', 1024 },
	{ RLIMIT_MEMLOCK, RLIM_INFINITY, 0, 'l', 1024 },
	{ RLIMIT_SIGPENDING, RLIM_INFINITY, 0, 'i', 1 },
	{ RLIMIT_NPROC, RLIM_INFINITY, 0, 'u', 1 },
};

/* the agent was started by a set-user-ID program, for a caller who is another user */
static bool foreign;

/*
 * An agent that a set-user-ID program started has that program's effective user, who owns the
 * fabric, but the real user of the caller, who could then stop it.  The agent makes the owner its
 * real user, too, and does so here rather than before it is executed: so neither the loader nor
 * this program trusts the caller's environment.  0 or -errno; `foreign` says whether it was needed.
 */
static int one_user(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (uid == getuid() && gid == getgid())
		return 0;
	foreign = true;
	if (uid == 0 && setgroups(0, NULL) != 0)
		return -errno;
	if (setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
		return -errno;
	return 0;
}

/* Gives ignored signals their default action again; exec has removed the starter's handlers. */
static void signals(void)
{
	struct sigaction old;

	for (int number = 1; number < NSIG; number++) {
		if (sigaction(number, NULL, &old) == 0 && old.sa_handler == SIG_IGN)
			signal(number, SIG_DFL);
	}
}

/*
 * Raises a limit to its hard limit; if the starter is another user also the hard limit, which needs a privilege.  For
 * processor time it leaves one second between SIGXCPU, at which the agent ends in order, and the hard limit.
 */
static void raise_limit(int limit, rlim_t wanted)
{
	struct rlimit rl, more;

	if (getrlimit(limit, &rl) != 0)
		return;
	if (foreign && wanted > rl.rlim_max) {
		more.rlim_cur = more.rlim_max = wanted;
		if (setrlimit(limit, &more) == 0)
			return;
	}
	rl.rlim_cur = rl.rlim_max;
	if (limit == RLIMIT_CPU && rl.rlim_max != RLIM_INFINITY && rl.rlim_max > 1)
		rl.rlim_cur--;
	setrlimit(limit, &rl);
}

int vd_inherit_begin(void)
{
	int rc = one_user();

	if (rc != 0)
		return rc;
	signals();
	for (size_t i = 0; i < U_ARRAY_SIZE(limits); i++)
		raise_limit(limits[i].limit, limits[i].wanted);
	if (foreign)
		setpriority(PRIO_PROCESS, 0, 0); /* without the privilege it does not change */
	umask(S_IRWXG | S_IRWXO);
	prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS, 0, 0, 0);
	return 0;
}

int vd_inherit_check(void)
{
	struct rlimit rl;

	for (size_t i = 0; i < U_ARRAY_SIZE(limits); i++) {
		if (getrlimit(limits[i].limit, &rl) != 0 || rl.rlim_max >= limits[i].least)
			continue;
		if (!foreign && limits[i].limit == RLIMIT_CPU)
			u_warn("ag",
			       "this agent ends after %llu s of processor time, by the limit of its "
			       "starter (ulimit -t)",
			       (unsigned long long)rl.rlim_max);
		if (!foreign)
			continue;
		vd_complain(
			"a set-user-ID program started the agent, and its caller's limits would "
			"hold for all that use the fabric: ulimit -%c is %llu; raise it, or start "
			"the agent beforehand with vi_fabric up",
			limits[i].letter, (unsigned long long)(rl.rlim_max / limits[i].unit));
		return -EPERM;
	}
	return 0;
}

void vd_inherit_place(void)
{
	unsigned long all[CPUS_MAX / (8 * sizeof(unsigned long))];

	memset(all, 0xff, sizeof(all));
	/*
	 * The kernel leaves out processors of other cpusets.  The second call sets the default
	 * policy for memory (MPOL_DEFAULT).
	 */
	syscall(SYS_sched_setaffinity, 0, sizeof(all), all);
	syscall(SYS_set_mempolicy, 0, NULL, 0UL);
}
