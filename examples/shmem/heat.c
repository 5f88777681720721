/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * heat - how heat spreads over a plate; each PE has some of its rows.
 *
 *	oshcc -o heat heat.c
 *	oshrun -np 4 ./heat
 *
 * In each step a cell becomes the mean of its four neighbours.  The first and last row of a PE
 * need a row of another, so a PE has room for one more row above and below its own, the halo,
 * where the neighbours put theirs.  At the end PE 0 fetches the plate and compares it with
 * the plate that it computed alone.
 */
#include <shmem.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define ROWS 64 /* inside of the border */
#define COLS 96
#define STEPS 200

typedef double row[COLS + 2];

static uint64_t from_above, from_below; /* steps of which that neighbour's row is here */

static int first_row(int pe)
{
	return (int)((long)ROWS * pe / shmem_n_pes());
}

static int rows_of(int pe)
{
	return first_row(pe + 1) - first_row(pe);
}

/* The border is cold, but a part of the left edge. */
static void prepare(row *grid, int first, int rows)
{
	int i;

	memset(grid, 0, sizeof(*grid) * (size_t)(rows + 2));
	for (i = 0; i < rows + 2; i++)
		grid[i][0] = first + i > ROWS / 4 && first + i < ROWS / 2 ? 100 : 0;
}

static void step(row *to, row *from, int rows)
{
	int i, j;

	for (i = 1; i <= rows; i++)
		for (j = 1; j <= COLS; j++)
			to[i][j] = (from[i - 1][j] + from[i + 1][j] + from[i][j - 1] +
				    from[i][j + 1]) /
				   4;
}

/*
 * Gives the outer rows to the neighbours and waits for theirs.  A neighbour writes to the halo of
 * this grid again two steps later, which it begins only when it has the row that this PE gives
 * after it read the halo; so no row is overwritten too early.
 */
static void exchange(row *grid, int rows, uint64_t now)
{
	int me = shmem_my_pe(), above = me - 1, below = me + 1;

	if (above >= 0)
		shmem_double_put_signal(grid[rows_of(above) + 1], grid[1], COLS + 2, &from_below,
					now, SHMEM_SIGNAL_SET, above);
	if (below < shmem_n_pes())
		shmem_double_put_signal(grid[0], grid[rows], COLS + 2, &from_above, now,
					SHMEM_SIGNAL_SET, below);
	if (above >= 0)
		shmem_signal_wait_until(&from_above, SHMEM_CMP_GE, now);
	if (below < shmem_n_pes())
		shmem_signal_wait_until(&from_below, SHMEM_CMP_GE, now);
}

/* The number of rows in which the plate differs from that of a computation without PEs. */
static int differences(row *grid)
{
	static row alone[2][ROWS + 2], line;
	int pe, i, t, wrong = 0;

	prepare(alone[0], 0, ROWS);
	prepare(alone[1], 0, ROWS);
	for (t = 0; t < STEPS; t++)
		step(alone[(t + 1) % 2], alone[t % 2], ROWS);
	for (pe = 0; pe < shmem_n_pes(); pe++) {
		for (i = 1; i <= rows_of(pe); i++) {
			shmem_double_get(line, grid[i], COLS + 2, pe);
			wrong += !!memcmp(line, alone[STEPS % 2][first_row(pe) + i], sizeof(line));
		}
	}
	return wrong;
}

int main(void)
{
	row *grid[2];
	size_t room;
	int me, rows, t, wrong;

	shmem_init();
	me = shmem_my_pe();
	if (shmem_n_pes() > ROWS) {
		fprintf(stderr, "heat: %d rows are not enough for the PEs\n", ROWS);
		shmem_global_exit(1);
	}

	/* All PEs ask for as much, although some have a row less. */
	room = sizeof(row) * (size_t)(ROWS / shmem_n_pes() + 3);
	rows = rows_of(me);
	for (t = 0; t < 2; t++) {
		grid[t] = shmem_malloc(room);
		if (!grid[t]) {
			fprintf(stderr, "heat: the symmetric heap is too small\n");
			shmem_global_exit(1);
		}
		prepare(grid[t], first_row(me), rows);
	}
	shmem_barrier_all(); /* before a neighbour writes into this grid */

	for (t = 0; t < STEPS; t++) {
		row *next = grid[(t + 1) % 2];

		step(next, grid[t % 2], rows);
		exchange(next, rows, (uint64_t)t + 1);
	}
	shmem_barrier_all();

	if (me == 0) {
		wrong = differences(grid[STEPS % 2]);
		if (wrong) {
			fprintf(stderr, "heat: %d of %d rows are wrong\n", wrong, ROWS);
			shmem_global_exit(1);
		}
		printf("heat: %d PEs computed %d steps; each of the %d rows is what PE 0 alone computed\n",
		       shmem_n_pes(), STEPS, ROWS);
	}
	shmem_free(grid[1]);
	shmem_free(grid[0]);
	shmem_finalize();
	return 0;
}
