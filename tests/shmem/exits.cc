// SPDX-License-Identifier: BSD-2-Clause Effects of shmem_global_exit on what a program leaves to
// its end: streams of C++, static destructors and functions of atexit(), while another thread keeps
// a stream of stdio locked, from which it reads.
//
// usage: exits MANNER, one of: main thread destructor twice never
#include <pthread.h>
#include <shmem.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iostream>

static const char *manner = "";

struct Last {
	~Last()
	{
		std::printf("a static destructor\n");
		if (std::strcmp(manner, "destructor") == 0)
			shmem_finalize();
		if (std::strcmp(manner, "twice") == 0)
			shmem_global_exit(43);
	}
};

static Last last;
static std::FILE *silent;

static void at_end()
{
	std::printf("a function of atexit\n");
	while (std::strcmp(manner, "never") == 0)
		pause();
}

// Nothing ever comes, and the stream stays locked.
static void *read_for_ever(void *)
{
	std::fgetc(silent);
	return nullptr;
}

static void *end_all(void *)
{
	shmem_global_exit(42);
	return nullptr;
}

static void begin(void *(*run)(void *))
{
	pthread_t thread;

	if (pthread_create(&thread, nullptr, run, nullptr) != 0)
		std::abort();
}

static void lock_a_stream()
{
	int ends[2];

	if (pipe(ends) != 0 || (silent = fdopen(ends[0], "r")) == nullptr)
		std::abort();
	begin(read_for_ever);
	while (ftrylockfile(silent) == 0) {
		funlockfile(silent);
		sched_yield();
	}
}

int main(int argc, char **argv)
{
	std::ios::sync_with_stdio(false);
	manner = argc == 2 ? argv[1] : "";
	std::atexit(at_end);
	shmem_init();
	if (shmem_my_pe() != 0)
		shmem_barrier_all(); // the others do not come
	lock_a_stream();
	std::cout << "a stream without end of line";
	if (std::strcmp(manner, "thread") == 0)
		begin(end_all);
	else
		shmem_global_exit(42);
	for (;;)
		pause();
}
