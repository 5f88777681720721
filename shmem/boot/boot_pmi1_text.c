/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <string.h>

#include "boot_back.h"
#include "boot_pmi1_text.h"

#define NUMBER_MAX 16

/* Where the value of a name begins, which ends at the next blank or with the line; or NULL. */
static const char *value_at(const char *line, const char *name)
{
	size_t len = strlen(name);

	while (*line != '\0') {
		if (strncmp(line, name, len) == 0 && line[len] == '=')
			return line + len + 1;
		line += strcspn(line, " ");
		line += strspn(line, " ");
	}
	return NULL;
}

int boot_pmi1_value(const char *line, const char *name, char *out, size_t size)
{
	const char *at = value_at(line, name);
	size_t n;

	if (at == NULL)
		return -ENOENT;
	n = strcspn(at, " ");
	if (n >= size)
		return -E2BIG;
	memcpy(out, at, n);
	out[n] = '\0';
	return 0;
}

int boot_pmi1_number(const char *line, const char *name, unsigned int max, unsigned int *out)
{
	char text[NUMBER_MAX];
	int rc = boot_pmi1_value(line, name, text, sizeof(text));

	if (rc == -E2BIG)
		return -EINVAL;
	return rc == 0 ? boot_number(text, max, out) : rc;
}

int boot_pmi1_answer(const char *line, const char *command)
{
	size_t len = strlen(command);
	unsigned int code;
	int rc;

	if (strncmp(line, "cmd=", 4) != 0 || strncmp(line + 4, command, len) != 0 ||
	    (line[4 + len] != ' ' && line[4 + len] != '\0'))
		return -EPROTO;
	rc = boot_pmi1_number(line, "rc", 0, &code);
	return rc == 0 || rc == -ENOENT ? 0 : -EIO;
}

void boot_pmi1_to_hex(const void *data, size_t bytes, char *text)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *at = data;

	for (; bytes > 0; bytes--, at++) {
		*text++ = digits[*at >> 4];
		*text++ = digits[*at & 15];
	}
	*text = '\0';
}

/* The value of a hexadecimal digit of lower case, or -1. */
static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int boot_pmi1_from_hex(const char *text, void *data, size_t bytes)
{
	unsigned char *at = data;
	int high, low;

	for (; bytes > 0; bytes--, text += 2) {
		high = digit(text[0]);
		low = high >= 0 ? digit(text[1]) : -1;
		if (low < 0)
			return -EBADMSG;
		*at++ = (unsigned char)(high << 4 | low);
	}
	return *text == '\0' ? 0 : -EBADMSG;
}
