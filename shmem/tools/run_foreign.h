/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that were linked for the launcher of another library. */
#ifndef RUN_FOREIGN_H
#define RUN_FOREIGN_H

#include <stdbool.h>

#define RUN_FOREIGN_NAME 64

/*
 * Is the program, found as execvp() finds it, an executable that needs a library of another OpenSHMEM or of MPI, and
 * not ours?  `library`: the name of the first, if so.  False also for what cannot be read: whoever executes it says
 * why.
 */
bool run_foreign(const char *program, char library[RUN_FOREIGN_NAME]);

#endif
