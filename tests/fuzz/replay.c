/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Runs a fuzz target without libFuzzer: over the files of a corpus, then over
 * generated inputs.  For compilers without the fuzzer and for every test run.
 *
 * usage: replay COUNT [FILE|FOLDER]...
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static unsigned long runs;

static void run_file(const char *path)
{
	static uint8_t data[1 << 16];
	FILE *f = fopen(path, "rb");
	size_t size;

	if (f == NULL)
		return;
	size = fread(data, 1, sizeof(data), f);
	/* Closed first: targets count descriptors. */
	fclose(f);
	LLVMFuzzerTestOneInput(data, size);
	runs++;
}

static void run_path(const char *path)
{
	struct dirent **names;
	char full[4096];
	int n = scandir(path, &names, NULL, alphasort);

	if (n < 0) {
		run_file(path);
		return;
	}
	for (int i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.') {
			snprintf(full, sizeof(full), "%s/%s", path, names[i]->d_name);
			run_file(full);
		}
		free(names[i]);
	}
	free(names);
}

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

int main(int argc, char **argv)
{
	uint64_t state = 0x9e3779b97f4a7c15u;
	static uint8_t data[2048];
	long count = argc > 1 ? strtol(argv[1], NULL, 10) : 0;

	for (int i = 2; i < argc; i++)
		run_path(argv[i]);
	for (long i = 0; i < count; i++) {
		size_t size = next(&state) % sizeof(data);

		for (size_t k = 0; k < size; k++)
			data[k] = (uint8_t)(next(&state) >> 33);
		LLVMFuzzerTestOneInput(data, size);
		runs++;
	}
	printf("%lu inputs\n", runs);
	return runs == 0;
}
