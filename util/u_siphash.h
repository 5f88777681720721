/* SPDX-License-Identifier: BSD-2-Clause */
/* SipHash-2-4: a hash that tells nothing about other hashes to anyone without the key. */
#ifndef U_SIPHASH_H
#define U_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

/* Returns the SipHash-2-4 of `len` bytes by the key. */
uint64_t u_siphash(const uint8_t key[16], const void *data, size_t len);

#endif
