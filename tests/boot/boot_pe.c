/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A PE for the tests of launchers: executes the commands given as arguments, in turn.
 *
 * An argument is COMMAND, or PE:COMMAND, which that PE alone executes.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "boot.h"

static struct boot_job job = { .pe = -1 };

static void fail(const char *what, long got)
{
	dprintf(STDERR_FILENO, "PE %d: %s: %ld\n", job.pe, what, got);
	_exit(99);
}

/* Byte `i` of what a PE gives to an exchange. */
static unsigned char byte_of(int pe, size_t i, size_t round)
{
	return (unsigned char)((unsigned int)pe * 31 + i * 7 + round * 13);
}

static void exchange(size_t bytes, size_t round)
{
	unsigned char *mine = malloc(bytes), *all = malloc(bytes * (size_t)job.n_pes);
	size_t i;
	int rc, pe;

	for (i = 0; i < bytes; i++)
		mine[i] = byte_of(job.pe, i, round);
	rc = boot_exchange(mine, bytes, all);
	if (rc != 0)
		fail("boot_exchange", rc);
	for (pe = 0; pe < job.n_pes; pe++) {
		for (i = 0; i < bytes; i++) {
			if (all[(size_t)pe * bytes + i] != byte_of(pe, i, round))
				fail("a wrong byte from PE", pe);
		}
	}
	free(mine);
	free(all);
}

static void start(void)
{
	char error[BOOT_TEXT_MAX];

	if (boot_start(&job, error) != 0) {
		fprintf(stderr, "boot_start: %s\n", error);
		exit(98);
	}
}

/* A child of fork() makes every call: its parent remains in the job. */
static void fork_child(void)
{
	struct boot_job ignored;
	char error[BOOT_TEXT_MAX], byte = 0, all[4096];
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		if (boot_exchange(&byte, 1, all) == 0 || boot_barrier() == 0 ||
		    boot_start(&ignored, error) == 0)
			_exit(1);
		boot_finish();
		boot_abort(7, "a child");
	}
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 7)
		fail("the child ended with", status);
}

static void set_status(void)
{
	struct boot_status *s = boot_status();

	snprintf(s->routine, sizeof(s->routine), "shmem_wait\033[1m");
	atomic_store(&s->address, 0x1234);
	atomic_store(&s->peer, 1);
	atomic_store(&s->waiting, 1);
}

static void wait_for_ever(void)
{
	for (;;)
		pause();
}

/* Makes a file, by which the test sees that this PE has reached this command. */
static void touch(const char *path)
{
	char name[4096];

	snprintf(name, sizeof(name), "%s.%d", path, job.pe);
	close(open(name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
}

static void write_file(const char *path, long number)
{
	char name[4096];
	FILE *f;

	snprintf(name, sizeof(name), "%s.%d", path, job.pe);
	f = fopen(name, "w");
	if (f == NULL)
		fail("a file cannot be written", errno);
	fprintf(f, "%ld\n", number);
	fclose(f);
}

static pthread_barrier_t together;

static void *complain(void *text)
{
	pthread_barrier_wait(&together);
	boot_abort(3, text);
}

/* Calls boot_abort() in several threads at a time. */
static void complain_all(char *text)
{
	enum { THREADS = 4 };
	pthread_t thread;
	int i;

	pthread_barrier_init(&together, NULL, THREADS);
	for (i = 1; i < THREADS; i++)
		if (pthread_create(&thread, NULL, complain, text) != 0)
			fail("no thread", i);
	complain(text);
}

/* Blocks SIGTERM, so that it stays pending until await(). */
static void heed(void)
{
	sigset_t mine;

	sigemptyset(&mine);
	sigaddset(&mine, SIGTERM);
	sigprocmask(SIG_BLOCK, &mine, NULL);
}

static void await(void)
{
	sigset_t mine;
	int number;

	sigemptyset(&mine);
	sigaddset(&mine, SIGTERM);
	sigwait(&mine, &number);
}

static void on_signal(int number)
{
	_exit(number == SIGTERM ? 40 : 41);
}

/* Returns the argument of a text COMMAND=ARGUMENT; NULL if it is another command. */
static const char *argument(const char *text, const char *command)
{
	size_t n = strlen(command);

	return strncmp(text, command, n) == 0 && text[n] == '=' ? text + n + 1 : NULL;
}

/* Ends by the signal itself, also where a sanitizer handles it. */
static void end_by(int sig)
{
	signal(sig, SIG_DFL);
	kill(getpid(), sig);
}

static int with_argument(const char *text)
{
	const char *a;
	size_t i;

	if ((a = argument(text, "exchange")) != NULL)
		exchange(strtoul(a, NULL, 10), 0);
	else if ((a = argument(text, "exchanges")) != NULL)
		for (i = 0; i < strtoul(a, NULL, 10); i++)
			exchange(i % 100, i);
	else if ((a = argument(text, "abort")) != NULL)
		boot_abort((int)strtol(a, NULL, 10), NULL);
	else if ((a = argument(text, "complain")) != NULL)
		boot_abort(3, a);
	else if ((a = argument(text, "complain_all")) != NULL)
		complain_all((char *)(uintptr_t)a);
	else if ((a = argument(text, "lose")) != NULL)
		boot_abort_lost(3, a);
	else if ((a = argument(text, "exit")) != NULL)
		_exit((int)strtol(a, NULL, 10));
	else if ((a = argument(text, "kill")) != NULL)
		end_by((int)strtol(a, NULL, 10));
	else if ((a = argument(text, "system")) != NULL)
		return WEXITSTATUS(system(a)) == 98 ? 0 : -1;
	else if ((a = argument(text, "say")) != NULL)
		dprintf(STDOUT_FILENO, "%s\n", a);
	else if ((a = argument(text, "mutter")) != NULL)
		dprintf(STDOUT_FILENO, "%s", a);
	else if ((a = argument(text, "touch")) != NULL)
		touch(a);
	else if ((a = argument(text, "pid")) != NULL)
		write_file(a, (long)getpid());
	else if ((a = argument(text, "env")) != NULL)
		dprintf(STDOUT_FILENO, "%d %s\n", job.pe, getenv(a) != NULL ? getenv(a) : "-");
	else
		return -1;
	return 0;
}

static int run(const char *text)
{
	if (strcmp(text, "start") == 0)
		start();
	else if (strcmp(text, "finish") == 0)
		boot_finish();
	else if (strcmp(text, "barrier") == 0)
		return boot_barrier();
	else if (strcmp(text, "fork") == 0)
		fork_child();
	else if (strcmp(text, "status") == 0)
		set_status();
	else if (strcmp(text, "wait") == 0)
		wait_for_ever();
	else if (strcmp(text, "ignore") == 0)
		signal(SIGTERM, SIG_IGN);
	else if (strcmp(text, "heed") == 0)
		heed();
	else if (strcmp(text, "await") == 0)
		await();
	else if (strcmp(text, "catch") == 0)
		signal(SIGTERM, on_signal), signal(SIGINT, on_signal);
	else if (strcmp(text, "job") == 0)
		dprintf(STDOUT_FILENO, "%d/%d %llx %s\n", job.pe, job.n_pes,
			(unsigned long long)job.id, job.by);
	else
		return with_argument(text);
	return 0;
}

int main(int argc, char **argv)
{
	int i, rc;

	for (i = 1; i < argc; i++) {
		char *command = argv[i];
		long pe = strtol(command, &command, 10);

		if (*command == ':' && pe != job.pe)
			continue;
		rc = run(*command == ':' ? command + 1 : argv[i]);
		if (rc != 0) {
			fprintf(stderr, "PE %d: %s: %d\n", job.pe, argv[i], rc);
			return 97;
		}
	}
	return 0;
}
