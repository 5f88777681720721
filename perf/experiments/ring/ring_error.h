/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RING_ERROR_H
#define RING_ERROR_H

/* Writes one line, an error, to standard error, after the name of the program. */
void ring_print_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
