/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a program can be helped by a preloaded library, and what vi_run would do. */
#ifndef VR_EXPLAIN_H
#define VR_EXPLAIN_H

#include <stdbool.h>
#include <stddef.h>

#include "vr_options.h"

enum vr_program {
	VR_HELPED,
	VR_MISSING,  /* there is no such program */
	VR_STATIC,   /* no dynamic loader */
	VR_GO,	     /* makes system calls by itself */
	VR_SETUID,   /* the loader leaves preloaded libraries out */
	VR_OTHER_ABI /* of another word size, or with headers that do not fit */
};

/*
 * Finds the program as execvp() does; `path`, of PATH_MAX bytes, is where it was found, or sought last.  VR_HELPED also
 * for a script, and for one that cannot be read.
 */
enum vr_program vr_program_kind(const char *name, char *path);
/* What that means for the program, with --all or without, for people. */
const char *vr_program_text(enum vr_program kind, bool all);

/* Prints on standard output what vi_run would do, and whether the program can be helped. */
void vr_explain(const struct vr_options *o, const struct vs_env *env, const char *library,
		const char *forward);

#endif
