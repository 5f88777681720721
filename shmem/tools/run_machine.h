/* SPDX-License-Identifier: BSD-2-Clause */
/* Lists of machines, as launchers of parallel programs take them. */
#ifndef RUN_MACHINE_H
#define RUN_MACHINE_H

#include <stdbool.h>

#define RUN_MACHINE_WORD 80
#define RUN_MACHINE_NAME 128
#define RUN_MACHINES_MAX 64
#define RUN_MACHINE_UNREAD (-2)

struct run_machine {
	char name[RUN_MACHINE_NAME];
	bool here;
	int slots; /* PEs that it is to have */
};

struct run_machines {
	int n;
	struct run_machine at[RUN_MACHINES_MAX];
};

/*
 * Adds "NAME[:N],..."; one that is listed again gets more slots.  All names of this machine stand for one.
 * False: a name cannot be one, N is no number of PEs, or there are too many; `word` is the entry, maybe cut, and those
 * before it stay added.
 */
bool run_machine_list(struct run_machines *m, const char *list, char word[RUN_MACHINE_WORD]);

/*
 * As run_machine_list(), from a file with a machine a line, after which "slots=N" may stand (other words are ignored),
 * and comments after '#'.
 * 0; -1: as false there; RUN_MACHINE_UNREAD and errno: the file cannot be read.
 */
int run_machine_file(struct run_machines *m, const char *path, char word[RUN_MACHINE_WORD]);

/* Is there another machine than this one in the list? */
bool run_machine_any_far(const struct run_machines *m);

#endif
