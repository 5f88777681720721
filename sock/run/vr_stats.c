/* SPDX-License-Identifier: BSD-2-Clause */
#include "vr_stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vs_env.h"

#define SCHEMA "viaduct.sock"
#define SCHEMA_VERSION 1

static const char *const count_names[VS_COUNTS] = {
	[VS_TCP_SOCKETS] = "connections",
	[VS_TCP_RX] = "tcp_bytes_received",
	[VS_TCP_TX] = "tcp_bytes_sent",
	[VS_VI_RX] = "vi_bytes_received",
	[VS_VI_TX] = "vi_bytes_sent",
	[VS_PROMOTED] = "promoted",
	[VS_DEMOTED] = "demoted",
	[VS_SLEEPS] = "sleeps",
	[VS_POLLED] = "polled",
	[VS_POLLER_WAKES] = "poller_wakes",
	[VS_GIVEN] = "given",
	[VS_GIVEN_ONE_CORE] = "given_one_core",
};

int vr_stats_begin(struct vs_stat_file **file)
{
	char path[64];
	int fd = vs_stat_create(file);

	if (fd < 0) {
		fprintf(stderr, "vi_run: no statistics: %s\n", strerror(-fd));
		return 1;
	}
	/* Programs may close all descriptors that they have not opened, so that they open this one by its path. */
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
	if (setenv(VS_ENV_STATS, path, 1) != 0) {
		fprintf(stderr, "vi_run: no statistics: %s\n", strerror(ENOMEM));
		return 1;
	}
	return 0;
}

/* How many slots are in use. */
static uint32_t used(const struct vs_stat_file *f)
{
	uint32_t n = atomic_load(&((struct vs_stat_file *)(uintptr_t)f)->taken);

	return n < VS_STAT_SLOTS ? n : VS_STAT_SLOTS;
}

static uint64_t get(const _Atomic uint64_t *at)
{
	return atomic_load((_Atomic uint64_t *)(uintptr_t)at);
}

/* The sums over all processes. */
static void sum(const struct vs_stat_file *f, struct vs_stat_slot *all)
{
	uint32_t i, n = used(f);
	int k;

	memset(all, 0, sizeof(*all));
	for (i = 0; i < n; i++) {
		for (k = 0; k < VS_COUNTS; k++)
			all->count[k] += get(&f->slot[i].count[k]);
		for (k = 0; k < VS_WHY_COUNT; k++) {
			all->not_promoted[k] += get(&f->slot[i].not_promoted[k]);
			all->demoted[k] += get(&f->slot[i].demoted[k]);
		}
	}
}

/* Prints the sums on standard error. */
static void say(const struct vs_stat_slot *all, uint32_t processes)
{
	uint64_t sockets = get(&all->count[VS_TCP_SOCKETS]);
	int k;

	fprintf(stderr,
		"vi_run: %u process%s, %" PRIu64 " connection%s: %" PRIu64 " promoted, %" PRIu64
		" of them demoted\n",
		processes, processes == 1 ? "" : "es", sockets, sockets == 1 ? "" : "s",
		get(&all->count[VS_PROMOTED]), get(&all->count[VS_DEMOTED]));
	fprintf(stderr,
		"vi_run: over VIs %" PRIu64 " bytes received, %" PRIu64 " sent; over TCP %" PRIu64
		" received, %" PRIu64 " sent\n",
		get(&all->count[VS_VI_RX]), get(&all->count[VS_VI_TX]), get(&all->count[VS_TCP_RX]),
		get(&all->count[VS_TCP_TX]));
	if (get(&all->count[VS_GIVEN]))
		fprintf(stderr,
			"vi_run: connections given to pollers %" PRIu64 " times, %" PRIu64
			" of them to one held on the core of the thread that uses the connection\n",
			get(&all->count[VS_GIVEN]), get(&all->count[VS_GIVEN_ONE_CORE]));
	for (k = 0; k < VS_WHY_COUNT; k++) {
		if (get(&all->not_promoted[k]))
			fprintf(stderr, "vi_run: %" PRIu64 " not promoted: %s\n",
				get(&all->not_promoted[k]), vs_why_text[k]);
	}
	for (k = 0; k < VS_WHY_COUNT; k++) {
		if (get(&all->demoted[k]))
			fprintf(stderr, "vi_run: %" PRIu64 " demoted: %s\n", get(&all->demoted[k]),
				vs_why_text[k]);
	}
}

/* ---- JSON ---- */

/* Writes a member for JSON, with a comma before it: an object of the reasons whose count is not 0. */
static void write_reasons(FILE *out, const char *name, const _Atomic uint64_t *v)
{
	const char *comma = "";
	int k;

	fprintf(out, ", \"%s\": {", name);
	for (k = 0; k < VS_WHY_COUNT; k++) {
		if (get(&v[k]) == 0)
			continue;
		fprintf(out, "%s\"%s\": %" PRIu64, comma, vs_why_text[k], get(&v[k]));
		comma = ", ";
	}
	fputc('}', out);
}

/* Writes a program's name, which may have any characters, for JSON, without the quotation marks. */
static void write_name(FILE *out, const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(((struct vs_stat_slot *)0)->program) && name[i]; i++) {
		if ((unsigned char)name[i] < 0x20 || name[i] == '"' || name[i] == '\\')
			fprintf(out, "\\u%04x", (unsigned int)(unsigned char)name[i]);
		else
			fputc(name[i], out);
	}
}

static void write_slot(FILE *out, const struct vs_stat_slot *s)
{
	int k;

	fprintf(out, "{\"pid\": %u, \"program\": \"",
		atomic_load((_Atomic uint32_t *)(uintptr_t)&s->pid));
	write_name(out, s->program);
	fputc('"', out);
	for (k = 0; k < VS_COUNTS; k++)
		fprintf(out, ", \"%s\": %" PRIu64, count_names[k], get(&s->count[k]));
	write_reasons(out, "not_promoted", s->not_promoted);
	write_reasons(out, "demotions", s->demoted);
	fputc('}', out);
}

/* Writes the sums, and the counters of each process: 0, or 1 after an error line. */
static int write_json(const struct vs_stat_file *f, const struct vs_stat_slot *all,
		      const char *path)
{
	FILE *out = fopen(path, "we");
	uint32_t i, n = used(f);

	if (!out) {
		fprintf(stderr, "vi_run: %s: %m\n", path);
		return 1;
	}
	fprintf(out, "{\"schema\": \"" SCHEMA "\", \"version\": %d, \"all\": ", SCHEMA_VERSION);
	write_slot(out, all);
	fprintf(out, ", \"processes\": [");
	for (i = 0; i < n; i++) {
		fputs(i ? ", " : "", out);
		write_slot(out, &f->slot[i]);
	}
	fprintf(out, "]}\n");
	if (fclose(out) == 0)
		return 0;
	fprintf(stderr, "vi_run: %s: %m\n", path);
	return 1;
}

int vr_stats_end(struct vs_stat_file *file, const char *path)
{
	struct vs_stat_slot all;

	sum(file, &all);
	if (path[0])
		return write_json(file, &all, path);
	say(&all, used(file));
	return 0;
}
