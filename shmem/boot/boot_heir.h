/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that a process of a job starts inherits what the launcher told that process, and is no
 * process of the job: the launcher would take what it says for words of the other.
 */
#ifndef BOOT_HEIR_H
#define BOOT_HEIR_H

#include <stdbool.h>

/*
 * Has another process joined under the same name, and started this one?  That is: does a forefather (up to the first
 * that was not) that
 * was given the same values of the variables `names` use one of `libraries` (the beginnings of their names)?  A shell
 * between the launcher and this process does not.  Both lists end with NULL.  A process that has ended meanwhile, or
 * is linked statically, is not found.
 */
bool boot_is_heir(const char *const names[], const char *const libraries[]);

#endif
