/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "boot_back.h"

int boot_error(char error[BOOT_TEXT_MAX], int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error, BOOT_TEXT_MAX, fmt, ap);
	va_end(ap);
	return rc;
}

int boot_send_all(int fd, const void *data, size_t bytes)
{
	const char *at = data;
	ssize_t n;

	while (bytes > 0) {
		n = send(fd, at, bytes, MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

int boot_recv_all(int fd, void *data, size_t bytes)
{
	char *at = data;
	ssize_t n;

	while (bytes > 0) {
		n = recv(fd, at, bytes, MSG_WAITALL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ECONNRESET;
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

int boot_number(const char *text, unsigned int max, unsigned int *out)
{
	uint64_t v = 0;

	if (text == NULL || *text == '\0')
		return -EINVAL;
	for (; *text != '\0'; text++) {
		if (*text < '0' || *text > '9')
			return -EINVAL;
		v = v * 10 + (unsigned int)(*text - '0');
		if (v > max)
			return -EINVAL;
	}
	*out = (unsigned int)v;
	return 0;
}
