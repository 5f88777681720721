/* SPDX-License-Identifier: BSD-2-Clause */
#include "osh_state.h"

struct osh_state osh_pe;

_Noreturn OSH_COLD void osh_not_in_job(const char *fn)
{
	if (osh_pe.child)
		osh_fatal(
			"%s: called in a child of fork(), which is no PE: only the process that has called "
			"shmem_init may",
			fn != NULL ? fn : "a routine for a team");
	osh_fatal("%s: called before shmem_init or after shmem_finalize", fn);
}

void osh_state_leave_to_parent(void)
{
	if (osh_pe.peers == NULL)
		return;
	osh_pe.child = true;
	osh_pe.peers = NULL; /* no routine reaches a PE from here on */
	osh_pe.n = 0;
}
