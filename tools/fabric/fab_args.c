/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fab_args.h"
#include "u_cfg.h"

static FILE *open_proc(pid_t pid, const char *name)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	return fopen(path, "re");
}

static int append(struct fab_args *args, const char *text)
{
	char **v = realloc(args->v, (args->count + 2) * sizeof(*v));

	if (v == NULL)
		return -ENOMEM;
	args->v = v;
	v[args->count] = strdup(text);
	if (v[args->count] == NULL)
		return -ENOMEM;
	v[++args->count] = NULL;
	return 0;
}

/*
 * Is it the option, alone or with its value after a `='?  getopt_long() also accepts its first
 * characters, at least `least` of them, with which no other option begins.
 */
static bool is_option(const char *arg, const char *option, size_t least)
{
	size_t n = strcspn(arg, "=");

	return n >= least && n <= strlen(option) && strncmp(arg, option, n) == 0;
}

static bool is_own(const char *arg)
{
	return is_option(arg, "--ready-fd", strlen("--rea")) ||
	       is_option(arg, "--host-id", strlen("--host-"));
}

int fab_args_read(pid_t pid, unsigned int host, struct fab_args *out)
{
	FILE *f = open_proc(pid, "cmdline");
	char id[16], *arg = NULL;
	bool begun = false, skip = false;
	size_t room = 0;
	int err;

	*out = (struct fab_args){ 0 };
	if (f == NULL)
		return -errno;
	snprintf(id, sizeof(id), "%u", host);
	/* The first argument is the program; a zombie has none. */
	err = getdelim(&arg, &room, '\0', f) > 0 ? append(out, "--host-id") : -ESRCH;
	if (err == 0)
		err = append(out, id);
	while (err == 0 && getdelim(&arg, &room, '\0', f) > 0) {
		/* After an emulator's name comes the agent's own; its arguments are all options. */
		begun = begun || arg[0] == '-';
		if (!begun)
			continue;
		if (!skip && !is_own(arg))
			err = append(out, arg);
		/* The value is the next argument, unless this one has it. */
		skip = !skip && is_own(arg) && strchr(arg, '=') == NULL;
	}
	free(arg);
	fclose(f);
	return err;
}

void fab_args_free(struct fab_args *args)
{
	while (args->count > 0)
		free(args->v[--args->count]);
	free(args->v);
	args->v = NULL;
}

/* Sets "NAME=value" if it is a variable of Viaduct. */
static int take_over(char *pair)
{
	char *value = strchr(pair, '=');
	unsigned int i;

	if (value == NULL)
		return 0;
	*value++ = '\0';
	for (i = 0; i < U_CFG_COUNT; i++) {
		if (strcmp(pair, u_cfg_table[i].name) == 0)
			return setenv(pair, value, 1) != 0 ? -errno : 0;
	}
	return 0;
}

int fab_args_environ(pid_t pid)
{
	FILE *f = open_proc(pid, "environ");
	size_t room = 0;
	char *pair = NULL;
	unsigned int i;
	int err = 0;

	if (f == NULL)
		return -errno;
	for (i = 0; i < U_CFG_COUNT; i++)
		unsetenv(u_cfg_table[i].name);
	while (err == 0 && getdelim(&pair, &room, '\0', f) > 0)
		err = take_over(pair);
	free(pair);
	fclose(f);
	return err;
}
