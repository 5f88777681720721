/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Latency, message rate and bandwidth between two processes over the library of a peer: pair.c measures, by these
 * functions, which mpi_pair.c and fi_pair.c implement.  A failure of one is printed, and ends the program.
 */
#ifndef PAIR_H
#define PAIR_H

#define PAIR_WINDOW 64

/* The library's name and version, at any time. */
const char *pair_version(void);

/* Starts the library in both processes.  Returns the number of this one: 0 or 1. */
int pair_open(int *argc, char ***argv);
void pair_close(void);

/* One message to or from the other process, until its buffer may be used again, or holds it. */
void pair_send(const void *buf, int size);
void pair_recv(void *buf, int size);

/* `count` messages at once, PAIR_WINDOW at most, all with the same buffer. */
void pair_send_many(const void *buf, int size, int count);
void pair_recv_many(void *buf, int size, int count);

#endif
