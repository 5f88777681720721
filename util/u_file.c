/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

/* Reads to the end, `size` bytes at most; returns how many, or -errno. */
static ssize_t read_all(int fd, char *text, size_t size)
{
	size_t len = 0;
	ssize_t n;

	while (len < size) {
		n = read(fd, text + len, size - len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

int u_file_read(const char *path, size_t most, char **text_out, size_t *len_out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char *text;
	ssize_t n;

	if (fd < 0)
		return -errno;
	text = malloc(most + 1);
	n = text != NULL ? read_all(fd, text, most + 1) : -ENOMEM;
	close(fd);
	if (n >= 0 && (size_t)n <= most) {
		text[n] = '\0';
		*text_out = text;
		*len_out = (size_t)n;
		return 0;
	}
	free(text);
	return n < 0 ? (int)n : -EFBIG;
}
