/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program that knows nothing of OpenSHMEM loads a library that uses it, and unloads it.
 *
 * usage: dlopen LIBRARY TIMES|left
 *
 * left: loads it once, and the library leaves the job only at exit.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile long variable = 5;

static int run_once(const char *library, int leave)
{
	void *l = dlopen(library, RTLD_NOW | RTLD_LOCAL);
	int (*run)(int), bad;

	if (l == NULL || (run = (int (*)(int))dlsym(l, "plugin_run")) == NULL) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	bad = run(leave);
	return dlclose(l) != 0 || bad;
}

int main(int argc, char **argv)
{
	int left = argc == 3 && strcmp(argv[2], "left") == 0, status, bad = 0;
	pid_t child;

	if (argc != 3)
		return 2;
	for (int i = 0; i < (left ? 1 : atoi(argv[2])); i++)
		bad |= run_once(argv[1], !left);
	child = fork(); /* would call handlers of fork() that were unloaded */
	if (child == 0)
		_exit(variable != 5);
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
		bad = 1;
	return bad || variable != 5;
}
