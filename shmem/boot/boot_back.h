/* SPDX-License-Identifier: BSD-2-Clause */
/* The back ends: one for each launcher.  boot.c picks one and sees to what is common to them. */
#ifndef BOOT_BACK_H
#define BOOT_BACK_H

#include <stdbool.h>
#include <stddef.h>

#include "boot_job.h"

struct boot_back {
	const char *name;
	/* Does the environment say that this launcher started the process? */
	bool (*announced)(void);
	/*
	 * Joins; sets pe and n_pes of the job, and its id if the launcher has one, else leaves it 0.
	 * 0, or -errno with a line in `error`; then nothing is left open.
	 */
	int (*start)(struct boot_job *job, char error[BOOT_TEXT_MAX]);
	int (*exchange)(const void *mine, size_t bytes, void *all);
	int (*barrier)(void);
	void (*finish)(void);
	/* Asks the launcher to end the job.  Returns; the caller ends the process. */
	void (*abort)(int status, const char *why, bool lost);
	bool patient; /* after abort() a process that ignores SIGTERM has BOOT_EXIT_S to end by itself */
	struct boot_status *(*status)(int pe); /* NULL: the launcher shows none */
};

extern const struct boot_back boot_local, boot_pmix, boot_pmi1, boot_single;

/* Writes the line, cut to BOOT_TEXT_MAX, and returns `rc`. */
int boot_error(char error[BOOT_TEXT_MAX], int rc, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Sends all bytes on a socket, whatever interrupts, and raises no SIGPIPE. 0; or -errno, after a part maybe. */
int boot_send_all(int fd, const void *data, size_t bytes);
/* Receives all bytes, whatever interrupts. 0; or -errno, -ECONNRESET at the end of the stream, with a part maybe. */
int boot_recv_all(int fd, void *data, size_t bytes);

/* A whole text of digits as a number.  0; or -EINVAL: NULL, empty, not digits alone, or above `max`. */
int boot_number(const char *text, unsigned int max, unsigned int *out);

#endif
