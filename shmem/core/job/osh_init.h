/* SPDX-License-Identifier: BSD-2-Clause */
/* Joining and leaving the job, and what a program may ask about it: as in the specification. */
#ifndef OSH_INIT_H
#define OSH_INIT_H

#include <stdbool.h>

struct osh_team;

int osh_init(int requested, int *provided);
void osh_init_or_end(void);
void osh_finalize(void);
void osh_global_exit(int status) __attribute__((noreturn));
bool osh_initialized(void);
int osh_thread_level(void);
void osh_start_pes(void);
int osh_my_pe(void);
int osh_n_pes(void);
int osh_pe_accessible(int pe);
int osh_addr_accessible(const void *addr, int pe);
void *osh_ptr(const void *addr, int pe);
void *osh_team_ptr(struct osh_team *team, const void *addr, int pe);

#endif
