/* SPDX-License-Identifier: BSD-2-Clause */
/* Joining and leaving the job, and what a program may ask about it: as in the specification. */
#ifndef OSH_INIT_H
#define OSH_INIT_H

#include <stdbool.h>

struct osh_team;

/*
 * Joins the job. 0; or -1 with a line on standard error, and what was opened by then stays open. In a job it is a
 * barrier, and `requested` is ignored. `provided`: the level of the first call; may be NULL.
 */
int osh_init(int requested, int *provided);
/* As osh_init() at the lowest level of threads, but a failure ends the job. */
void osh_init_or_end(void);
/*
 * Leaves the job at the call that matches the first osh_init(); any other is a barrier. One too many prints a line,
 * and after osh_global_exit() or an end at exit it does nothing.
 */
void osh_finalize(void);
/* Ends the job, and this process as boot_exit() does. */
void osh_global_exit(int status) __attribute__((noreturn));
bool osh_initialized(void);
int osh_thread_level(void);
/* osh_init_or_end(), unless this process is in the job. */
void osh_start_pes(void);
int osh_my_pe(void);
int osh_n_pes(void);
/* 1: the job has a PE of this number; 0: it has not. */
int osh_pe_accessible(int pe);
/*
 * 1: the address is one of symmetric memory of the program, and valid at that PE, near or far; 0: it is not. In the
 * heap it need not be allocated; variables are valid at PEs that run the same program.
 */
int osh_addr_accessible(const void *addr, int pe);
/*
 * Where an object of a PE can be accessed here, after mapping it; NULL: it is far, not symmetric, or there is no such
 * PE.
 */
void *osh_ptr(const void *addr, int pe);
/* As osh_ptr(), for a PE of a team; NULL also where the team is. */
void *osh_team_ptr(struct osh_team *team, const void *addr, int pe);

#endif
