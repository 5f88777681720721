/* SPDX-License-Identifier: BSD-2-Clause */
/* pair.h over any MPI library: mpirun -np 2 mpi_pair CPU0 CPU1 BATCH_MS SIZE... */
#include <mpi.h>
#include <stdio.h>

#include "pair.h"

#define TAG 1

static int other;

const char *pair_version(void)
{
	static char text[MPI_MAX_LIBRARY_VERSION_STRING];
	int len;

	MPI_Get_library_version(text, &len);
	return text;
}

int pair_open(int *argc, char ***argv)
{
	int rank, ranks;

	MPI_Init(argc, argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	if (ranks != 2) {
		fprintf(stderr, "two processes are needed: mpirun -np 2\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	other = !rank;
	return rank;
}

void pair_close(void)
{
	MPI_Finalize();
}

void pair_send(const void *buf, int size)
{
	MPI_Send(buf, size, MPI_BYTE, other, TAG, MPI_COMM_WORLD);
}

void pair_recv(void *buf, int size)
{
	MPI_Recv(buf, size, MPI_BYTE, other, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void pair_send_many(const void *buf, int size, int count)
{
	MPI_Request requests[PAIR_WINDOW];
	int i;

	for (i = 0; i < count; i++)
		MPI_Isend(buf, size, MPI_BYTE, other, TAG, MPI_COMM_WORLD, &requests[i]);
	MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}

void pair_recv_many(void *buf, int size, int count)
{
	MPI_Request requests[PAIR_WINDOW];
	int i;

	for (i = 0; i < count; i++)
		MPI_Irecv(buf, size, MPI_BYTE, other, TAG, MPI_COMM_WORLD, &requests[i]);
	MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
}
