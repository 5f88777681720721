/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The back end of launchers that speak PMI-1, MPICH's mpiexec among them: a line to them on the socket
 * PMI_FD, a line back.  Data go through their table of names and values, as hexadecimal digits in parts of
 * the length that it takes.
 *
 * A process can join only once, and one that has joined and ends without saying "finalize" ends the job.
 * So that is said when the process exits, and until then it may leave the job and join again.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "boot_back.h"
#include "boot_heir.h"
#include "boot_pmi1_text.h"

#define NAME_MAX_BYTES 257u
#define KEY_BYTES 48u /* of the longest name that key() makes */
#define PES_MAX (1u << 20)
#define VALUE_LEAST 16u /* the shortest values worth using */

static struct {
	int fd; /* -1: not connected */
	pid_t pid;
	bool left; /* the job: the process may end */
	unsigned int pe, n_pes, exchanges;
	unsigned int part; /* bytes in a value */
	char table[NAME_MAX_BYTES];
	char line[BOOT_PMI1_LINE_MAX]; /* the last answer */
} pmi = { .fd = -1 };

/* Is PMI_FD set, and has not another process of the job started this one? */
static bool pmi_announced(void)
{
	static const char *const names[] = { "PMI_FD", "PMI_RANK", NULL };
	static const char *const libraries[] = { "libmpi.so", "libmpich.so", NULL };

	return secure_getenv("PMI_FD") != NULL && !boot_is_heir(names, libraries);
}

/*
 * Receives a line into pmi.line, without its end. 0; -EPROTO: longer than that, or more than a line; or -errno. The
 * launcher says nothing unless asked, so nothing follows a line.
 */
static int receive(void)
{
	size_t got = 0;
	ssize_t n;
	char *end;

	do {
		n = recv(pmi.fd, pmi.line + got, sizeof(pmi.line) - got, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -ECONNRESET;
		end = memchr(pmi.line + got, '\n', (size_t)n);
		got += (size_t)n;
	} while (end == NULL && got < sizeof(pmi.line));
	if (end != pmi.line + got - 1 || memchr(pmi.line, '\0', got) != NULL)
		return -EPROTO;
	*end = '\0';
	return 0;
}

/*
 * Sends a line, which has its '\n', and receives the answer, into pmi.line. 0; -EPROTO: another than `answer`; -EIO: a
 * refusal; or -errno.
 */
static int ask(const char *line, const char *answer)
{
	int rc = boot_send_all(pmi.fd, line, strlen(line));

	if (rc == 0)
		rc = receive();
	return rc == 0 ? boot_pmi1_answer(pmi.line, answer) : rc;
}

/* ---- joining ---- */

/* Asks how long names and values may be, and sets pmi.part. 0; -ENOSPC: too short for the names here; or -errno. */
static int limits(void)
{
	unsigned int name, key, value;
	int rc = ask("cmd=get_maxes\n", "maxes");

	if (rc == 0)
		rc = boot_pmi1_number(pmi.line, "kvsname_max", INT_MAX, &name);
	if (rc == 0)
		rc = boot_pmi1_number(pmi.line, "keylen_max", INT_MAX, &key);
	if (rc == 0)
		rc = boot_pmi1_number(pmi.line, "vallen_max", INT_MAX, &value);
	if (rc != 0)
		return rc;
	if (key < KEY_BYTES || value < VALUE_LEAST)
		return -ENOSPC;
	if (value > BOOT_PMI1_LINE_MAX / 2) /* a line has a name beside it */
		value = BOOT_PMI1_LINE_MAX / 2;
	pmi.part = (value - 1) / 2;
	return 0;
}

/* Begins PMI-1 on pmi.fd, and learns the length of values and the name of the table. 0 or -errno. */
static int connect_launcher(void)
{
	unsigned int version;
	int rc = ask("cmd=init pmi_version=1 pmi_subversion=1\n", "response_to_init");

	if (rc == 0)
		rc = boot_pmi1_number(pmi.line, "pmi_version", INT_MAX, &version);
	if (rc == 0 && version != 1)
		rc = -EPROTONOSUPPORT;
	if (rc == 0)
		rc = limits();
	if (rc == 0)
		rc = ask("cmd=get_my_kvsname\n", "my_kvsname");
	if (rc == 0)
		rc = boot_pmi1_value(pmi.line, "kvsname", pmi.table, sizeof(pmi.table));
	return rc;
}

/* Takes socket, PE and size from the environment, into `pmi`. 0; or -EINVAL, with pmi.fd as before. */
static int find_launcher(void)
{
	unsigned int fd;
	struct stat st;

	if (boot_number(secure_getenv("PMI_FD"), INT_MAX, &fd) != 0 ||
	    boot_number(secure_getenv("PMI_SIZE"), PES_MAX, &pmi.n_pes) != 0 ||
	    boot_number(secure_getenv("PMI_RANK"), PES_MAX, &pmi.pe) != 0 || pmi.pe >= pmi.n_pes)
		return -EINVAL;
	if (fstat((int)fd, &st) != 0 || !S_ISSOCK(st.st_mode))
		return -EINVAL;
	fcntl((int)fd, F_SETFD, FD_CLOEXEC);
	pmi.fd = (int)fd;
	return 0;
}

/* Joins: start() of boot_back.h. A process connects once; later starts take what that has found. */
static int pmi_start(struct boot_job *job, char error[BOOT_TEXT_MAX])
{
	int rc = 0;

	if (pmi.fd < 0) {
		rc = find_launcher();
		if (rc != 0)
			return boot_error(
				error, rc,
				"PMI_FD is set, but PMI_FD, PMI_RANK and PMI_SIZE name no "
				"launcher's socket and place in a job: was this program "
				"started by a PE? Use mpiexec or oshrun -np N PROGRAM");
		rc = connect_launcher();
	}
	if (rc != 0) {
		pmi.fd = -1;
		return boot_error(error, rc,
				  "the launcher of PMI_FD does not let this process join by PMI-1: "
				  "%s; start it with oshrun -np N PROGRAM",
				  strerror(-rc));
	}
	pmi.pid = getpid();
	pmi.left = false;
	job->pe = (int)pmi.pe;
	job->n_pes = (int)pmi.n_pes;
	return 0;
}

/* ---- data ---- */

/* The name of a part of a PE's data in this exchange. */
static void key(char out[KEY_BYTES], unsigned int pe, size_t part)
{
	snprintf(out, KEY_BYTES, "viaduct-%u-%u-%u", pmi.exchanges, pe, (unsigned int)part);
}

/* Puts `bytes` bytes, at most pmi.part, as part number `part` of this PE's data in this exchange. 0 or -errno. */
static int put_part(const unsigned char *data, size_t bytes, size_t part)
{
	char line[BOOT_PMI1_LINE_MAX], name[KEY_BYTES], hex[BOOT_PMI1_LINE_MAX / 2 + 1];

	key(name, pmi.pe, part);
	boot_pmi1_to_hex(data, bytes, hex);
	snprintf(line, sizeof(line), "cmd=put kvsname=%s key=%s value=%s\n", pmi.table, name, hex);
	return ask(line, "put_result");
}

/* Gets part number `part` of a PE's data in this exchange. 0 or -errno, -EBADMSG: it has not exactly `bytes` bytes. */
static int get_part(unsigned int pe, unsigned char *data, size_t bytes, size_t part)
{
	char line[BOOT_PMI1_LINE_MAX], name[KEY_BYTES], hex[BOOT_PMI1_LINE_MAX / 2 + 1];
	int rc;

	key(name, pe, part);
	snprintf(line, sizeof(line), "cmd=get kvsname=%s key=%s\n", pmi.table, name);
	rc = ask(line, "get_result");
	if (rc == 0)
		rc = boot_pmi1_value(pmi.line, "value", hex, sizeof(hex));
	return rc == 0 ? boot_pmi1_from_hex(hex, data, bytes) : rc;
}

/* Gets a PE's data in its parts, or puts this PE's own, whatever `pe` is. 0 or -errno. */
static int all_parts(unsigned int pe, bool put, unsigned char *data, size_t bytes)
{
	size_t at, n;
	int rc = 0;

	for (at = 0; at < bytes && rc == 0; at += n) {
		n = bytes - at < pmi.part ? bytes - at : pmi.part;
		rc = put ? put_part(data + at, n, at / pmi.part)
			 : get_part(pe, data + at, n, at / pmi.part);
	}
	return rc;
}

static int pmi_barrier(void)
{
	return ask("cmd=barrier_in\n", "barrier_out");
}

/* boot_exchange(); `all` may have this PE's own bytes in place already. */
static int pmi_exchange(const void *mine, size_t bytes, void *all)
{
	unsigned char *out = all;
	unsigned int pe;
	int rc;

	if (bytes > 0)
		memmove(out + pmi.pe * bytes, mine, bytes);
	rc = all_parts(pmi.pe, true, out + pmi.pe * bytes, bytes);
	if (rc == 0)
		rc = pmi_barrier();
	for (pe = 0; pe < pmi.n_pes && rc == 0; pe++) {
		if (pe != pmi.pe)
			rc = all_parts(pe, false, out + pe * bytes, bytes);
	}
	pmi.exchanges++;
	return rc;
}

/* ---- the end ---- */

/* Tells the launcher nothing: pmi_finalize() does, when the process exits. */
static void pmi_finish(void)
{
	pmi.left = true;
}

/* At the exit of the process: tells the launcher that it ends, if it has left the job. */
__attribute__((destructor)) static void pmi_finalize(void)
{
	if (pmi.fd < 0 || !pmi.left || pmi.pid != getpid())
		return;
	ask("cmd=finalize\n", "finalize_ack");
	close(pmi.fd);
	pmi.fd = -1;
}

/* Asks for the end of the job, without saying why; returns, and ignores a failure. */
static void pmi_abort(int status, const char *why, bool lost)
{
	char line[64];

	snprintf(line, sizeof(line), "cmd=abort exitcode=%d\n", status);
	boot_send_all(pmi.fd, line, strlen(line));
}

static struct boot_status *pmi_status(int pe)
{
	return NULL;
}

const struct boot_back boot_pmi1 = {
	.name = "PMI-1",
	.announced = pmi_announced,
	.start = pmi_start,
	.exchange = pmi_exchange,
	.barrier = pmi_barrier,
	.finish = pmi_finish,
	.abort = pmi_abort,
	.status = pmi_status,
};
