/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef OSH_SET_H
#define OSH_SET_H

/* Ends the teams of all active sets; before osh_teams_close(). */
void osh_sets_close(void);

#endif
