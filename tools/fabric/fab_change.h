/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands that stop hosts, and that change links and names.  They return the exit status. */
#ifndef FAB_CHANGE_H
#define FAB_CHANGE_H

#include "fab.h"

int fab_down(const struct fabric *f);
int fab_stop(const struct fabric *f, const char *name);

/* Takes a link up or down; `args`: the host, its port, and up or down. */
int fab_link(const struct fabric *f, char **args);

/* Tells every agent of the fabric a name; `pair` is NAME=HOST. */
int fab_name(const struct fabric *f, enum w_admin_verb verb, const char *pair);

#endif
