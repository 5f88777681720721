/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef RING_SAY_H
#define RING_SAY_H

/* Writes one line to standard error, after the name of the program. */
void ring_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

#endif
