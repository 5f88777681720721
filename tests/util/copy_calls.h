/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef COPY_CALLS_H
#define COPY_CALLS_H

#include <stddef.h>

void call_copy_shared(void *to, const void *from, size_t n);
void call_copy_last_last(void *to, const void *from, size_t n);

#endif
