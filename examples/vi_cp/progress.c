/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "progress.h"
#include "proto.h"

#define BAR 24

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

const char *progress_bytes(uint64_t bytes, char out[32])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double value = (double)bytes;
	unsigned int unit = 0;

	while (value >= 1024 && unit < 6) {
		value /= 1024;
		unit++;
	}
	snprintf(out, 32, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
	return out;
}

void progress_begin(struct progress *p, enum progress_mode mode)
{
	bool terminal = isatty(STDERR_FILENO);

	p->bar = terminal && mode != PROGRESS_NONE;
	p->lines = !terminal && mode == PROGRESS_ALWAYS;
	p->total = p->done = 0;
	p->begin = now();
	p->last = 0;
}

double progress_seconds(const struct progress *p)
{
	return now() - p->begin;
}

static void draw(const struct progress *p, const char *name)
{
	double part = p->total > p->done ? (double)p->done / (double)p->total : 1,
	       seconds = now() - p->begin;
	int filled = part >= 1 ? BAR : (int)(part * BAR);
	char done[32], rate[32], shown_name[41];

	snprintf(shown_name, sizeof(shown_name), "%s", name);
	cp_make_printable(shown_name);
	progress_bytes(seconds > 0 ? (uint64_t)((double)p->done / seconds) : 0, rate);
	fprintf(stderr, "%s[%.*s%.*s] %3.0f %%  %s  %s/s  %s%s", p->bar ? "\r\033[K" : "", filled,
		"########################", BAR - filled, "........................",
		part >= 1 ? 100 : part * 100, progress_bytes(p->done, done), rate, shown_name,
		p->bar ? "" : "\n");
}

void progress_add(struct progress *p, uint64_t bytes, const char *name)
{
	p->done += bytes;
	if (!(p->bar || p->lines) || (now() - p->last < (p->bar ? 0.1 : 1) && p->done != p->total))
		return;
	p->last = now();
	draw(p, name);
}

void progress_clear(const struct progress *p)
{
	if (p->bar)
		fputs("\r\033[K", stderr);
}
