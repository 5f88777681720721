/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The back end of launchers with PMIx: Open MPI's mpirun, prterun, srun --mpi=pmix.
 *
 * The PMIx library is loaded when such a launcher has started the process, so nothing else needs it.
 * Structures are filled by hand: macros of its headers call functions that are not loaded.
 */
#include <dlfcn.h>
#include <errno.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "boot_back.h"
#include "boot_heir.h"

#define LIBRARY "libpmix.so.2"

static struct {
	void *library;
	__typeof__(PMIx_Init) *init;
	__typeof__(PMIx_Finalize) *finalize;
	__typeof__(PMIx_Put) *put;
	__typeof__(PMIx_Commit) *commit;
	__typeof__(PMIx_Fence) *fence;
	__typeof__(PMIx_Get) *get;
	__typeof__(PMIx_Abort) *abort;
	__typeof__(PMIx_Error_string) *error_string;
	pmix_proc_t me;
	unsigned int n_pes, exchanges;
	pid_t pid; /* of the process that initialised PMIx; 0: none */
	bool left; /* the job, and has not joined again */
} pmix;

/* Is PMIX_NAMESPACE set, and has not another process of the job started this one? */
static bool pmix_announced(void)
{
	static const char *const names[] = { "PMIX_NAMESPACE", "PMIX_RANK", NULL };
	static const char *const libraries[] = { "libpmix.so", "mca_pmix_", NULL };

	return secure_getenv("PMIX_NAMESPACE") != NULL && !boot_is_heir(names, libraries);
}

/* Loads the PMIx library, which stays loaded, and finds its functions. 0, or -ENOENT with a line. */
static int load(char error[BOOT_TEXT_MAX])
{
	const struct {
		const char *name;
		void *into;
	} functions[] = {
		{ "PMIx_Init", &pmix.init },   { "PMIx_Finalize", &pmix.finalize },
		{ "PMIx_Put", &pmix.put },     { "PMIx_Commit", &pmix.commit },
		{ "PMIx_Fence", &pmix.fence }, { "PMIx_Get", &pmix.get },
		{ "PMIx_Abort", &pmix.abort }, { "PMIx_Error_string", &pmix.error_string },
	};
	size_t i;
	void *at;

	if (pmix.library == NULL)
		pmix.library = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (pmix.library == NULL)
		return boot_error(
			error, -ENOENT,
			"a launcher started this program with PMIx, but %.100s; install the "
			"PMIx library (Debian: libpmix2) or use oshrun -np N PROGRAM",
			dlerror());
	for (i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		at = dlsym(pmix.library, functions[i].name);
		if (at == NULL)
			return boot_error(error, -ENOENT, "%s has no %s; use oshrun -np N PROGRAM",
					  LIBRARY, functions[i].name);
		memcpy(functions[i].into, &at, sizeof(at));
	}
	return 0;
}

/* Asks for the number of PEs. 0; -ENODATA: not told; -EPROTO: no number, or one that leaves no place for this PE. */
static int job_size(unsigned int *out)
{
	pmix_proc_t all = pmix.me;
	pmix_value_t *value = NULL;
	int rc;

	all.rank = PMIX_RANK_WILDCARD;
	rc = pmix.get(&all, PMIX_JOB_SIZE, NULL, 0, &value);
	if (rc != PMIX_SUCCESS || value == NULL)
		return -ENODATA;
	rc = value->type == PMIX_UINT32 && value->data.uint32 > pmix.me.rank &&
			     value->data.uint32 <= INT32_MAX
		     ? 0
		     : -EPROTO;
	if (rc == 0)
		*out = value->data.uint32;
	free(value);
	return rc;
}

/*
 * 0, also where no variable of mpirun says a number; or -EPROTO with a line: mpirun has started another number of
 * processes than PMIx tells of. Launchers must not take each PE of several for the only one of its job.
 */
static int check_size(char error[BOOT_TEXT_MAX])
{
	unsigned int size;

	if (boot_number(secure_getenv("OMPI_COMM_WORLD_SIZE"), INT32_MAX, &size) != 0 ||
	    size == pmix.n_pes)
		return 0;
	return boot_error(
		error, -EPROTO,
		"mpirun started %u process%s, but PMIx tells of %u: this PMIx library does "
		"not fit that mpirun; use oshrun -np N PROGRAM",
		size, size == 1 ? "" : "es", pmix.n_pes);
}

/*
 * Finalizes PMIx at the end of a process that has left the job. It stays known to the server until then, for it may
 * join again: servers lose data of processes that finalize and initialise in turn. One that ends without having left
 * is an error.
 */
static void finalize_at_exit(void)
{
	if (pmix.left && pmix.pid == getpid())
		pmix.finalize(NULL, 0);
}

/*
 * Loads and initialises PMIx, where pmix.pid is 0: once in a process. 0; or -errno with a line, after PMIx was
 * finalized again. Once it has succeeded, exit() finalizes PMIx if the job was left.
 */
static int join(char error[BOOT_TEXT_MAX])
{
	int rc = load(error);

	if (rc != 0)
		return rc;
	rc = pmix.init(&pmix.me, NULL, 0);
	if (rc != PMIX_SUCCESS)
		return boot_error(
			error, -ENODEV,
			"PMIx does not let this process join: %.60s; is the launcher of another "
			"version of PMIx? Use oshrun -np N PROGRAM",
			pmix.error_string(rc));
	rc = job_size(&pmix.n_pes);
	if (rc != 0)
		boot_error(error, rc,
			   "PMIx does not tell the size of the job; use oshrun -np N PROGRAM");
	else
		rc = check_size(error);
	if (rc == 0 && atexit(finalize_at_exit) != 0)
		rc = boot_error(error, -ENOMEM, "out of memory");
	if (rc != 0) {
		pmix.finalize(NULL, 0);
		return rc;
	}
	pmix.pid = getpid();
	return 0;
}

/* Joins: start() of boot_back.h. PMIx is initialised once; later starts take what that has found. */
static int pmix_start(struct boot_job *job, char error[BOOT_TEXT_MAX])
{
	int rc = pmix.pid == 0 ? join(error) : 0;

	if (rc != 0)
		return rc;
	pmix.left = false;
	job->pe = (int)pmix.me.rank;
	job->n_pes = (int)pmix.n_pes;
	return 0;
}

/* ---- data ---- */

/* Waits for all PEs; `collect`: brings what they have put. 0; or -ECONNRESET, whatever has failed. */
static int fence(bool collect)
{
	pmix_proc_t all = pmix.me;
	pmix_info_t info = { .flags = 0 };
	int rc;

	all.rank = PMIX_RANK_WILDCARD;
	snprintf(info.key, sizeof(info.key), "%s", PMIX_COLLECT_DATA);
	info.value.type = PMIX_BOOL;
	info.value.data.flag = true;
	rc = pmix.fence(&all, 1, collect ? &info : NULL, collect ? 1 : 0);
	return rc == PMIX_SUCCESS ? 0 : -ECONNRESET;
}

static int pmix_barrier(void)
{
	return fence(false);
}

/* Puts data under a key, for the next fence. 0 or -EIO. */
static int put(const char *key, const void *data, size_t bytes)
{
	pmix_value_t value = { .type = PMIX_BYTE_OBJECT };

	value.data.bo.bytes = (char *)(uintptr_t)data;
	value.data.bo.size = bytes;
	if (pmix.put(PMIX_GLOBAL, key, &value) != PMIX_SUCCESS || pmix.commit() != PMIX_SUCCESS)
		return -EIO;
	return 0;
}

/* Gets what a PE has put under `key`. 0; -ENODATA: nothing; -EBADMSG: not `bytes` bytes; then `data` is as before. */
static int get(unsigned int pe, const char *key, void *data, size_t bytes)
{
	pmix_proc_t proc = pmix.me;
	pmix_value_t *value = NULL;
	int rc = 0;

	proc.rank = pe;
	if (pmix.get(&proc, key, NULL, 0, &value) != PMIX_SUCCESS || value == NULL)
		return -ENODATA;
	if (value->type != PMIX_BYTE_OBJECT || value->data.bo.size != bytes)
		rc = -EBADMSG;
	else
		memcpy(data, value->data.bo.bytes, bytes);
	if (value->type == PMIX_BYTE_OBJECT)
		free(value->data.bo.bytes);
	free(value);
	return rc;
}

/* boot_exchange(); for 0 bytes it is a barrier. */
static int pmix_exchange(const void *mine, size_t bytes, void *all)
{
	char key[32];
	unsigned int pe;
	int rc;

	if (bytes == 0)
		return pmix_barrier();
	snprintf(key, sizeof(key), "viaduct.%u", pmix.exchanges++);
	rc = put(key, mine, bytes);
	if (rc == 0)
		rc = fence(true);
	for (pe = 0; pe < pmix.n_pes && rc == 0; pe++)
		rc = get(pe, key, (char *)all + pe * bytes, bytes);
	return rc;
}

/* ---- the end ---- */

/* Tells the launcher nothing: finalize_at_exit() does. */
static void pmix_finish(void)
{
	pmix.left = true;
}

static void pmix_abort(int status, const char *why, bool lost)
{
	pmix.abort(status, why != NULL ? why : "", NULL, 0);
}

static struct boot_status *pmix_status(int pe)
{
	return NULL;
}

const struct boot_back boot_pmix = {
	.name = "PMIx",
	.announced = pmix_announced,
	.start = pmix_start,
	.exchange = pmix_exchange,
	.barrier = pmix_barrier,
	.finish = pmix_finish,
	.abort = pmix_abort,
	.status = pmix_status,
};
