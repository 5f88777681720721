/* SPDX-License-Identifier: BSD-2-Clause */
/* The input of a fuzz target, read as a program: bytes that decide what happens next. */
#ifndef FZ_INPUT_H
#define FZ_INPUT_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fz_input {
	const uint8_t *at;
	size_t left;
};

/* The next bytes as a number, the first one highest; zeros once the input is used up. */
static inline uint64_t fz_get(struct fz_input *in, unsigned int bytes)
{
	uint64_t v = 0;

	while (bytes-- > 0 && in->left > 0) {
		v = v << 8 | *in->at++;
		in->left--;
	}
	return v;
}

/* One of 0..n-1. */
static inline uint32_t fz_pick(struct fz_input *in, uint32_t n)
{
	return (uint32_t)fz_get(in, 1) % n;
}

/* Fills with the bytes that the input still has; the rest stays as it was. */
static inline size_t fz_fill(struct fz_input *in, void *out, size_t len)
{
	if (len > in->left)
		len = in->left;
	memcpy(out, in->at, len);
	in->at += len;
	in->left -= len;
	return len;
}

/* Changes up to seven bytes. */
static inline void fz_mutate(struct fz_input *in, uint8_t *bytes, size_t len)
{
	uint32_t n = fz_pick(in, 8);
	size_t at;

	while (n-- > 0 && len > 0) {
		at = fz_get(in, 2) % len;
		bytes[at] ^= (uint8_t)fz_get(in, 1);
	}
}

#endif
