/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "osh_base.h"
#include "osh_env.h"

struct osh_env osh_env;

#define OTHER_NAMES 3

/*
 * A variable of the specification has an older name, which counts where the new one is not set; then
 * count the names that Open MPI and Cray have for the size of the heap.
 */
static const struct variable {
	const char *name, *others[OTHER_NAMES], *def, *help;
	int *choice; /* NULL, or where the number of a word of the help goes, of those after the colon */
} variables[] = {
	{ "SHMEM_SYMMETRIC_SIZE",
	  { "SMA_SYMMETRIC_SIZE", "SHMEM_SYMMETRIC_HEAP_SIZE", "XT_SYMMETRIC_HEAP_SIZE" },
	  "1G",
	  "bytes of the symmetric heap of each PE; a number and k, m, g or t",
	  NULL },
	{ "SHMEM_VERSION", { "SMA_VERSION" }, "", "set: print the version at the start", NULL },
	{ "SHMEM_INFO", { "SMA_INFO" }, "", "set: print this table at the start", NULL },
	{ "SHMEM_DEBUG",
	  { "SMA_DEBUG" },
	  "",
	  "set, and not 0: check the arguments of all routines",
	  NULL },
	{ "SHMEM_VIADUCT_BARRIER",
	  { NULL },
	  "auto",
	  "algorithm of barriers: auto, dissemination, tree, ring",
	  &osh_env.barrier },
	{ "SHMEM_VIADUCT_BROADCAST",
	  { NULL },
	  "auto",
	  "algorithm of broadcasts, where possible: auto, tree, chain, flat",
	  &osh_env.broadcast },
	{ "SHMEM_VIADUCT_COLLECT",
	  { NULL },
	  "auto",
	  "algorithm of collect and fcollect: auto, direct, ring",
	  &osh_env.collect },
	{ "SHMEM_VIADUCT_REDUCE",
	  { NULL },
	  "auto",
	  "algorithm of reductions, where possible: auto, flat, rounds, shared, ring",
	  &osh_env.reduce },
	{ "SHMEM_VIADUCT_SINGLETON",
	  { NULL },
	  "0",
	  "1: a program that no launcher started is a job of one PE",
	  NULL },
	{ "SHMEM_VIADUCT_HEAP_MAX",
	  { NULL },
	  "8 times",
	  "bytes to which the heap may grow, as SHMEM_SYMMETRIC_SIZE, 8 times that by default; 0: never",
	  NULL },
};

#define HEAP_MAX 9 /* the place of the last in the table */
#define HEAP_TIMES 8
#define PAGE 4096u

/* The name of variable i that is set, or that of the specification where none is. */
static const char *name_of(size_t i)
{
	const struct variable *v = &variables[i];

	if (getenv(v->name) != NULL)
		return v->name;
	for (size_t k = 0; k < OTHER_NAMES && v->others[k] != NULL; k++) {
		if (getenv(v->others[k]) != NULL)
			return v->others[k];
	}
	return v->name;
}

/* The value of variable i, by whichever of its names is set, or NULL. */
static const char *value_of(size_t i)
{
	return getenv(name_of(i));
}

/* Is variable i set, and to something else than "0"? An empty text counts as set. */
static bool is_set(size_t i)
{
	const char *value = value_of(i);

	return value != NULL && strcmp(value, "0") != 0;
}

/* As strtod(), with a decimal point in every locale: the program may have called setlocale(). */
static double decimal(const char *text, char **end)
{
	locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	double number;

	if (plain == (locale_t)0)
		return strtod(text, end);
	number = strtod_l(text, end, plain);
	freelocale(plain);
	return number;
}

bool osh_env_size(const char *text, size_t *bytes)
{
	static const char letters[] = "kmgt";
	const char *letter;
	double number, scale = 1;
	char *end;

	while (isspace((unsigned char)*text))
		text++;
	/* strtod() knows more than decimal numbers. */
	if (!isdigit((unsigned char)*text) && *text != '.')
		return false;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return false;
	errno = 0;
	number = decimal(text, &end);
	if (end == text || errno != 0)
		return false;
	if (*end != '\0') {
		letter = strchr(letters, tolower((unsigned char)*end));
		if (letter == NULL)
			return false;
		for (ptrdiff_t i = 0; i <= letter - letters; i++)
			scale *= 1024;
	}
	number *= scale;
	if (!(number < (double)(SIZE_MAX / 4)))
		return false;
	*bytes = (size_t)number;
	if ((double)*bytes < number)
		(*bytes)++;
	return true;
}

/* The place, from 0, of a word in a list with ", " between, where upper and lower case are equal, or -1. */
static int place_in(const char *list, const char *word)
{
	size_t n;

	for (int i = 0;; i++) {
		n = strcspn(list, ",");
		if (strlen(word) == n && strncasecmp(list, word, n) == 0)
			return i;
		if (list[n] == '\0')
			return -1;
		list += n + 2;
	}
}

/* Stores which word variable i chooses, 0 where it is not set. 0, or -EINVAL with one line in `error`. */
static int read_choice(size_t i, char error[BOOT_TEXT_MAX])
{
	const char *value = value_of(i), *words = strchr(variables[i].help, ':') + 2;
	int place = value == NULL ? 0 : place_in(words, value);

	if (place < 0) {
		snprintf(error, BOOT_TEXT_MAX, "%s is \"%.64s\"; expected %s", variables[i].name,
			 value, words);
		return -EINVAL;
	}
	*variables[i].choice = place;
	return 0;
}

/* Stores the size that variable i has. 0, or -EINVAL with one line in `error`. */
static int read_size(size_t i, const char *size, size_t *bytes, char error[BOOT_TEXT_MAX])
{
	if (osh_env_size(size, bytes))
		return 0;
	snprintf(error, BOOT_TEXT_MAX,
		 "%s is \"%.64s\"; expected a number and k, m, g or t, such as 512m", name_of(i),
		 size);
	return -EINVAL;
}

/* Reads size and bound of the heap, in whole pages. 0, or -EINVAL with one line in `error`. */
static int read_heap(char error[BOOT_TEXT_MAX])
{
	const char *size = value_of(0), *most = value_of(HEAP_MAX);

	if (read_size(0, size != NULL ? size : variables[0].def, &osh_env.heap_bytes, error) != 0)
		return -EINVAL;
	if (most != NULL && read_size(HEAP_MAX, most, &osh_env.heap_max, error) != 0)
		return -EINVAL;
	osh_env.heap_bytes = osh_align_up(osh_env.heap_bytes, PAGE);
	osh_env.heap_max = most == NULL ? osh_times(osh_env.heap_bytes, HEAP_TIMES)
					: osh_align_up(osh_env.heap_max, PAGE);
	if (osh_env.heap_max < osh_env.heap_bytes)
		osh_env.heap_max = osh_env.heap_bytes;
	return 0;
}

int osh_env_read(char error[BOOT_TEXT_MAX])
{
	if (read_heap(error) != 0)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		if (variables[i].choice != NULL && read_choice(i, error) != 0)
			return -EINVAL;
	}
	osh_env.version = value_of(1) != NULL;
	osh_env.info = value_of(2) != NULL;
	osh_env.debug = is_set(3);
	return 0;
}

void osh_env_print(void)
{
	for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
		const char *value = value_of(i);

		printf("%-24s %-12s (default %s) %s\n", variables[i].name,
		       value == NULL ? "not set" : value,
		       variables[i].def[0] == '\0' ? "not set" : variables[i].def,
		       variables[i].help);
	}
	fflush(stdout);
}
