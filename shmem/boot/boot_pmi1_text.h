/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The texts of PMI-1: lines of NAME=VALUE, one blank between two, the first of which is cmd=COMMAND.
 * What the launcher sends is not trusted.
 */
#ifndef BOOT_PMI1_TEXT_H
#define BOOT_PMI1_TEXT_H

#include <stddef.h>

#define BOOT_PMI1_LINE_MAX 8192u /* with its end; longer ones are not accepted */

/*
 * Is the line, without its end, the answer `command`, and no refusal?  0; -EPROTO: another command; -EIO: rc
 * is there and not 0.
 */
int boot_pmi1_answer(const char *line, const char *command);

/* The value of a name.  0; -ENOENT; -E2BIG: longer than `size` - 1; then nothing is written. */
int boot_pmi1_value(const char *line, const char *name, char *out, size_t size);

/* The value of a name as a number up to `max`. 0, -ENOENT or -EINVAL. */
int boot_pmi1_number(const char *line, const char *name, unsigned int max, unsigned int *out);

/* Writes 2 * bytes digits, of lower case, and an end. */
void boot_pmi1_to_hex(const void *data, size_t bytes, char *text);

/* Reads exactly 2 * bytes digits, of lower case. 0 or -EINVAL. */
int boot_pmi1_from_hex(const char *text, void *data, size_t bytes);

#endif
