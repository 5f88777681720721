/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "boot_heir.h"

#define FOREFATHERS_MAX 64

/* Opens /proc/PID/WHAT for reading; the caller closes it. NULL: no such process, or not readable. */
static FILE *open_proc(pid_t pid, const char *what)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	return fopen(path, "re");
}

/* Is `entry` NAME=VALUE of a variable that this process has with the same value? */
static bool is_same(const char *entry, const char *name)
{
	const char *mine = secure_getenv(name);
	size_t n = strlen(name);

	return mine != NULL && strncmp(entry, name, n) == 0 && entry[n] == '=' &&
	       strcmp(entry + n + 1, mine) == 0;
}

/*
 * Has that process all variables of `names` with the values that this one has? What it was given when it was executed
 * counts: that is where launchers put their variables. False also where this process lacks one, or the other's cannot
 * be read.
 */
static bool was_given(pid_t pid, const char *const names[])
{
	FILE *f = open_proc(pid, "environ");
	size_t room = 0, wanted = 0, found = 0;
	char *entry = NULL;

	if (f == NULL)
		return false;
	while (names[wanted] != NULL)
		wanted++;
	while (getdelim(&entry, &room, '\0', f) > 0) {
		for (size_t i = 0; i < wanted; i++)
			found += is_same(entry, names[i]);
	}
	free(entry);
	fclose(f);
	return found == wanted;
}

/* Has that process mapped a file whose name, without folders, begins with one of these? False: or it is unreadable. */
static bool uses(pid_t pid, const char *const libraries[])
{
	FILE *f = open_proc(pid, "maps");
	const char *base;
	char *line = NULL;
	bool found = false;
	size_t room = 0;

	while (f != NULL && !found && getline(&line, &room, f) > 0) {
		base = strrchr(line, '/');
		for (size_t i = 0; base != NULL && libraries[i] != NULL; i++)
			found |= strncmp(base + 1, libraries[i], strlen(libraries[i])) == 0;
	}
	free(line);
	if (f != NULL)
		fclose(f);
	return found;
}

/* 0: unknown.  The name before the state is the program's, which may contain brackets. */
static pid_t parent_of(pid_t pid)
{
	FILE *f = open_proc(pid, "stat");
	char text[512];
	const char *end;
	int parent = 0;
	size_t n = 0;

	if (f != NULL) {
		n = fread(text, 1, sizeof(text) - 1, f);
		fclose(f);
	}
	text[n] = '\0';
	end = strrchr(text, ')');
	return end != NULL && sscanf(end + 1, " %*c %d", &parent) == 1 ? (pid_t)parent : 0;
}

bool boot_is_heir(const char *const names[], const char *const libraries[])
{
	pid_t pid = getppid();

	for (int i = 0; i < FOREFATHERS_MAX && pid > 1 && was_given(pid, names); i++) {
		if (uses(pid, libraries))
			return true;
		pid = parent_of(pid);
	}
	return false;
}
