/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fab_args.h"

#define PREFIX "VIADUCT_"

/* All of a file of /proc, which does not tell its size beforehand; a NUL is put behind it. */
static int slurp(pid_t pid, const char *name, char **text_out, size_t *len_out)
{
	size_t len = 0, room = 0;
	char path[64], *text = NULL, *more;
	int fd, err = 0;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (;;) {
		if (room - len < 2) {
			room += 16384;
			more = realloc(text, room);
			if (more == NULL) {
				err = -ENOMEM;
				break;
			}
			text = more;
		}
		n = read(fd, text + len, room - len - 1);
		if (n > 0)
			len += (size_t)n;
		else if (n == 0 || errno != EINTR)
			break;
	}
	if (err == 0 && n < 0)
		err = -errno;
	close(fd);
	if (err != 0) {
		free(text);
		return err;
	}
	text[len] = '\0';
	*text_out = text;
	*len_out = len;
	return 0;
}

/* The next text after `at`, or NULL behind the last. */
static char *following(char *at, const char *end)
{
	at += strlen(at) + 1;
	return at < end ? at : NULL;
}

/*
 * Is it the option, alone or with its value behind a `='?  getopt_long() also takes its beginning, from
 * the `least` characters on that no other option begins with.
 */
static bool is_option(const char *arg, const char *option, size_t least)
{
	size_t n = strcspn(arg, "=");

	return n >= least && n <= strlen(option) && strncmp(arg, option, n) == 0;
}

int fab_args_read(pid_t pid, unsigned int host, struct fab_args *out)
{
	char *at, *end;
	size_t len;
	int err = slurp(pid, "cmdline", &out->text, &len);

	if (err != 0)
		return err;
	end = out->text + len;
	out->count = 0;
	out->v = calloc(len + 3, sizeof(*out->v));
	if (out->v == NULL || len == 0) {
		fab_args_free(out);
		return len == 0 ? -ESRCH : -ENOMEM;
	}
	snprintf(out->id, sizeof(out->id), "%u", host);
	out->v[out->count++] = "--host-id";
	out->v[out->count++] = out->id;
	for (at = following(out->text, end); at != NULL; at = following(at, end)) {
		if (!is_option(at, "--ready-fd", strlen("--rea")) &&
		    !is_option(at, "--host-id", strlen("--host-"))) {
			out->v[out->count++] = at;
			continue;
		}
		if (strchr(at, '=') == NULL)
			at = following(at, end);
		if (at == NULL)
			break;
	}
	return 0;
}

void fab_args_free(struct fab_args *args)
{
	free(args->text);
	free(args->v);
	args->text = NULL;
	args->v = NULL;
}

static void forget_ours(void)
{
	char **v = environ, name[64];
	size_t n;

	while (*v != NULL) {
		n = strcspn(*v, "=");
		/* Without a `=' it is nobody's variable, and cannot be unset. */
		if (strncmp(*v, PREFIX, strlen(PREFIX)) != 0 || n >= sizeof(name) ||
		    (*v)[n] != '=') {
			v++;
			continue;
		}
		memcpy(name, *v, n);
		name[n] = '\0';
		unsetenv(name);
		v = environ;
	}
}

int fab_args_environ(pid_t pid)
{
	char *text, *at, *value;
	size_t len;
	int err = slurp(pid, "environ", &text, &len);

	if (err != 0)
		return err;
	forget_ours();
	for (at = len > 0 ? text : NULL; at != NULL && err == 0; at = following(at, text + len)) {
		value = strchr(at, '=');
		if (value == NULL || strncmp(at, PREFIX, strlen(PREFIX)) != 0)
			continue;
		*value++ = '\0';
		err = setenv(at, value, 1) != 0 ? -errno : 0;
		value[-1] = '=';
	}
	free(text);
	return err;
}
