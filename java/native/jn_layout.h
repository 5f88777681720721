/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * jn_layout.h - the offsets and sizes on which Java relies
 */
#ifndef JN_LAYOUT_H
#define JN_LAYOUT_H

#include <stddef.h>

/* Writes lines "NAME value" and a zero byte. 0, or -1 if they do not fit. */
int jn_layout_print(char *text, size_t size);

#endif
