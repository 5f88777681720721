/* SPDX-License-Identifier: BSD-2-Clause */
/* Whole files, for configuration. */
#ifndef U_FILE_H
#define U_FILE_H

#include <stddef.h>

/*
 * Reads a file of up to `most` bytes into memory that the caller frees; a NUL follows the last byte.
 * Returns 0, or an error that leaves the outputs: -EFBIG for a longer file, or -errno.
 */
int u_file_read(const char *path, size_t most, char **text_out, size_t *len_out);

#endif
