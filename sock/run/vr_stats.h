/* SPDX-License-Identifier: BSD-2-Clause */
/* The statistics of a run. */
#ifndef VR_STATS_H
#define VR_STATS_H

#include "vs_stat.h"

/* Makes the file and names it to the program.  0, or 1 after an error line. */
int vr_stats_begin(struct vs_stat_file **file);

/* Prints them on standard error if `path` is "", or writes them to it as JSON.  0, or 1 after an error line. */
int vr_stats_end(struct vs_stat_file *file, const char *path);

#endif
