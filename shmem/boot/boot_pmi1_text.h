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
 * Is the line, without its end, the answer `command` ("cmd=COMMAND ..."), and no refusal?  0: it is; -EPROTO: another
 * command; -EIO: rc is there and not 0.
 */
int boot_pmi1_answer(const char *line, const char *command);

/* The value of a name, up to a blank.  0; -ENOENT: no such name; -E2BIG: longer than `size` - 1; `out` is as before. */
int boot_pmi1_value(const char *line, const char *name, char *out, size_t size);

/* The value of a name as a number. 0; -ENOENT: no such name; -EINVAL: not digits alone, or above `max`. */
int boot_pmi1_number(const char *line, const char *name, unsigned int max, unsigned int *out);

/* Writes 2 * bytes digits, of lower case, and a '\0'. */
void boot_pmi1_to_hex(const void *data, size_t bytes, char *text);

/* Reads exactly 2 * bytes digits, of lower case. 0; or -EBADMSG: others, fewer or more, with `data` written in part. */
int boot_pmi1_from_hex(const char *text, void *data, size_t bytes);

#endif
