/* SPDX-License-Identifier: BSD-2-Clause */
/* The client: mappers, each a process, and what they were told. */
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sb.h"
#include "sr.h"

#define BUFFER (SR_RECORD * 655) /* just below 64 KiB */
#define PIECE (64u << 10)	 /* what a figure calls an operation */

struct target {
	int fd;
	size_t have;
	uint8_t buffer[BUFFER];
};

/* Shared by the mappers. */
struct totals {
	_Atomic uint64_t sent, sent_sum;
	uint64_t sorted, sorted_sum; /* of all reducers, as they told the first mapper */
};

/* Connects to each reducer of a list: how many. */
static int connect_all(char *list, int mappers, struct target *targets)
{
	const struct sr_hello hello = { .magic = SR_MAGIC, .mappers = (uint32_t)mappers };
	char *rest, *place = strtok_r(list, ",", &rest);
	int n;

	for (n = 0; place; place = strtok_r(NULL, ",", &rest), n++) {
		if (n == SR_MAX_PROCESSES)
			sb_refuse("too many reducers");
		targets[n].fd = sb_connect(place);
		targets[n].have = 0;
		sb_send(targets[n].fd, &hello, sizeof(hello), false);
	}
	return n;
}

static void push(struct target *target)
{
	sb_send(target->fd, target->buffer, target->have, false);
	target->have = 0;
}

/* Makes the mapper's part of the records, and sends each where it belongs. */
static struct sr_sum send_part(const struct sr_options *o, int mapper, struct target *targets,
			       int reducers)
{
	uint64_t i, from = o->records * (uint64_t)mapper / (uint64_t)o->mappers;
	uint64_t to = o->records * (uint64_t)(mapper + 1) / (uint64_t)o->mappers;
	struct sr_sum sum = { 0 };
	uint8_t record[SR_RECORD];

	for (i = from; i < to; i++) {
		struct target *target;

		sr_record_make(record, o->seed, i);
		sr_sum_add(&sum, record);
		target = &targets[sr_record_reducer(record, (unsigned int)reducers)];
		memcpy(target->buffer + target->have, record, SR_RECORD);
		target->have += SR_RECORD;
		if (target->have == BUFFER)
			push(target);
	}
	return sum;
}

static void map(const struct sr_options *o, int mapper, struct totals *totals)
{
	struct target *targets = sb_memory(SR_MAX_PROCESSES * sizeof(*targets));
	int i, reducers = connect_all(strdup(o->connect), o->mappers, targets);
	struct sr_sum sum = send_part(o, mapper, targets, reducers);

	atomic_fetch_add(&totals->sent, sum.records);
	atomic_fetch_add(&totals->sent_sum, sum.sum);
	for (i = 0; i < reducers; i++) {
		push(&targets[i]);
		if (shutdown(targets[i].fd, SHUT_WR) != 0)
			sb_fail("shutdown");
	}
	for (i = 0; i < reducers; i++) {
		if (!sb_recv(targets[i].fd, &sum, sizeof(sum), false))
			sb_refuse("a reducer ended the connection");
		if (mapper == 0) {
			totals->sorted += sum.records;
			totals->sorted_sum += sum.sum;
		}
		close(targets[i].fd);
	}
	exit(0);
}

/* Waits for all mappers; when one fails, ends the others, which would wait for it.  False: one has failed. */
static bool wait_all(const pid_t *pids, int mappers)
{
	int i, status;
	bool good = true;

	while (wait(&status) > 0) {
		for (i = 0; status != 0 && good && i < mappers; i++)
			kill(pids[i], SIGTERM);
		good = good && status == 0;
	}
	return good;
}

int sr_map(const struct sr_options *o)
{
	struct totals *totals = mmap(NULL, sizeof(*totals), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t bytes = o->records * SR_RECORD;
	int64_t begin = sb_now_ns();
	pid_t pids[SR_MAX_PROCESSES];
	double seconds;
	bool good;
	int i;

	if (totals == MAP_FAILED)
		sb_fail("memory");
	for (i = 0; i < o->mappers; i++) {
		pids[i] = fork();
		if (pids[i] < 0)
			sb_fail("fork");
		if (pids[i] == 0)
			map(o, i, totals);
	}
	good = wait_all(pids, o->mappers);
	seconds = (double)(sb_now_ns() - begin) / 1e9;
	if (!good)
		return 1;
	if (totals->sent != o->records || totals->sorted != o->records ||
	    totals->sorted_sum != totals->sent_sum)
		sb_refuse("what was sorted is not what was sent");
	printf("{\"test\": \"sort\", \"size_bytes\": %" PRIu64 ", \"operations\": %" PRIu64
	       ", \"unit\": \"B/s\", \"value\": %.6g}\n",
	       bytes, (bytes + PIECE - 1) / PIECE, (double)bytes / seconds);
	return 0;
}
