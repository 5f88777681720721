/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Content of checked messages.  Every byte depends on the VI, the message and its offset, so data
 * of another message, or at another offset, is detected.
 */
#ifndef PF_PATTERN_H
#define PF_PATTERN_H

#include <stdint.h>

void pf_fill(uint8_t *buf, uint32_t size, uint32_t vi, uint64_t message);

/* Offset of a wrong byte, or of the start of its word of eight; `size` when all are right. */
uint32_t pf_first_wrong(const uint8_t *buf, uint32_t size, uint32_t vi, uint64_t message);

#endif
