/* SPDX-License-Identifier: BSD-2-Clause */
/* A job of one PE without a launcher, where the user asks for that. */
#include <stdlib.h>
#include <string.h>

#include "boot_back.h"

/* Is SHMEM_VIADUCT_SINGLETON exactly "1"? */
static bool single_announced(void)
{
	const char *text = secure_getenv("SHMEM_VIADUCT_SINGLETON");

	return text != NULL && strcmp(text, "1") == 0;
}

/* PE 0 of 1, always. Returns 0. */
static int single_start(struct boot_job *job, char error[BOOT_TEXT_MAX])
{
	job->pe = 0;
	job->n_pes = 1;
	return 0;
}

/* Copies `mine` to `all`, which must not overlap. Returns 0. */
static int single_exchange(const void *mine, size_t bytes, void *all)
{
	if (bytes > 0)
		memcpy(all, mine, bytes);
	return 0;
}

static int single_barrier(void)
{
	return 0;
}

static void single_finish(void) {}

static void single_abort(int status, const char *why, bool lost) {}

static struct boot_status *single_status(int pe)
{
	return NULL;
}

const struct boot_back boot_single = {
	.name = "singleton",
	.announced = single_announced,
	.start = single_start,
	.exchange = single_exchange,
	.barrier = single_barrier,
	.finish = single_finish,
	.abort = single_abort,
	.patient = true,
	.status = single_status,
};
