/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Static variables that threads and handlers of signals use all the time, while OpenSHMEM begins
 * and ends: no store is lost, and a thread that sleeps at one is woken.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <shmem.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 3
#define THREADS 3
#define LIMIT_S 60

static char large[8 << 20]; /* so that a copy takes a while */
static atomic_int stop;
static atomic_int failures;

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                     \
			failures++;                                                                \
		}                                                                                  \
	} while (0)

/* ---- threads that store ----------------------------------------------------------------------- */

static volatile unsigned long counters[THREADS][512]; /* on different pages */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static unsigned long guarded;

struct counter {
	volatile unsigned long *counter;
	unsigned long mine;
	bool lost;
};

static void *count(void *arg)
{
	struct counter *c = arg;

	while (!stop && !c->lost) {
		c->lost = *c->counter != c->mine;
		*c->counter = ++c->mine;
	}
	return NULL;
}

static void *lock(void *arg)
{
	unsigned long *mine = arg;

	while (!stop) {
		pthread_mutex_lock(&mutex);
		guarded++;
		pthread_mutex_unlock(&mutex);
		++*mine;
	}
	return NULL;
}

static void join(pthread_t thread)
{
	struct timespec end;

	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += LIMIT_S;
	if (pthread_timedjoin_np(thread, NULL, &end) != 0) {
		printf("a thread does not end\n");
		fflush(stdout);
		_exit(1);
	}
}

/* ---- handlers that store ---------------------------------------------------------------------- */

static atomic_ulong ticks;
static atomic_ulong *ticks_apart;

static void tick(int number)
{
	ticks++;
	++*ticks_apart;
}

static void set_timer(long us)
{
	struct itimerval t = { { 0, us }, { 0, us } };

	setitimer(ITIMER_REAL, &t, NULL);
}

/* ---- threads that sleep at a futex of all processes ------------------------------------------- */

static sem_t semaphore;
static pthread_mutex_t shared_mutex;
static atomic_int sleepers[2];

/* Waits until a thread is asleep. */
static void await_sleep(atomic_int *tid)
{
	char path[64], text[256], *state;
	FILE *f;

	while (*tid == 0)
		sched_yield();
	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", *tid);
	do {
		sched_yield();
		f = fopen(path, "r");
		memset(text, 0, sizeof(text));
		if (f == NULL || fread(text, 1, sizeof(text) - 1, f) == 0)
			text[0] = '\0';
		if (f != NULL)
			fclose(f);
		state = strrchr(text, ')');
	} while (state == NULL || state[2] != 'S');
}

static void *wait_semaphore(void *arg)
{
	sleepers[0] = (int)syscall(SYS_gettid);
	while (sem_wait(&semaphore) != 0 && errno == EINTR)
		;
	return NULL;
}

static void *wait_mutex(void *arg)
{
	sleepers[1] = (int)syscall(SYS_gettid);
	pthread_mutex_lock(&shared_mutex);
	pthread_mutex_unlock(&shared_mutex);
	return NULL;
}

static void sleep_and_wake(void (*call)(void))
{
	pthread_mutexattr_t shared;
	pthread_t threads[2];

	pthread_mutexattr_init(&shared);
	pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(&shared_mutex, &shared);
	sem_init(&semaphore, 1, 0);
	sleepers[0] = sleepers[1] = 0;
	pthread_mutex_lock(&shared_mutex);
	pthread_create(&threads[0], NULL, wait_semaphore, NULL);
	pthread_create(&threads[1], NULL, wait_mutex, NULL);
	await_sleep(&sleepers[0]);
	await_sleep(&sleepers[1]);
	call();
	sem_post(&semaphore);
	pthread_mutex_unlock(&shared_mutex);
	join(threads[0]);
	join(threads[1]);
}

/* ---- all at once ------------------------------------------------------------------------------ */

int main(void)
{
	struct sigaction action = { .sa_handler = tick, .sa_flags = SA_RESTART };
	struct counter counts[THREADS] = { { NULL } };
	unsigned long locks[2] = { 0 };
	pthread_t threads[THREADS + 2];
	int me = 0, n = 1;

	memset(large, 1, sizeof(large));
	ticks_apart = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; i < THREADS; i++) {
		counts[i].counter = &counters[i][0];
		pthread_create(&threads[i], NULL, count, &counts[i]);
	}
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[THREADS + i], NULL, lock, &locks[i]);
	sigaction(SIGALRM, &action, NULL);
	set_timer(200);
	for (int i = 0; i < ROUNDS; i++) {
		sleep_and_wake(shmem_init);
		me = shmem_my_pe();
		n = shmem_n_pes();
		large[me] = 2;
		shmem_char_p(&large[1000 + me], 3, (me + 1) % n);
		shmem_barrier_all();
		CHECK(large[1000 + (me + n - 1) % n] == 3);
		sleep_and_wake(shmem_finalize);
		large[1000 + (me + n - 1) % n] = 1;
	}
	set_timer(0);
	stop = 1;
	for (int i = 0; i < THREADS + 2; i++)
		join(threads[i]);
	for (int i = 0; i < THREADS; i++)
		CHECK(!counts[i].lost && *counts[i].counter == counts[i].mine);
	CHECK(guarded == locks[0] + locks[1]);
	CHECK(ticks == *ticks_apart);
	CHECK(large[me] == 2 && large[4096] == 1);
	return failures != 0;
}
