/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of the log that the configuration or tests use.  Private to util. */
#ifndef U_LOG_SPEC_H
#define U_LOG_SPEC_H

#include "u_log.h"

#define U_LOG_AREAS 16
#define U_LOG_AREA_BYTES 16

struct u_log_area {
	char name[U_LOG_AREA_BYTES];
	enum u_log_level level;
};

struct u_log_spec {
	enum u_log_level level; /* of areas not listed */
	unsigned int area_count;
	struct u_log_area area[U_LOG_AREAS];
};

/* Parses level[,area=level...] in any order.  Returns 0, or -EINVAL and leaves *out.  Without a level: warn. */
int u_log_spec_parse(const char *text, struct u_log_spec *out);

/* The level for the area: that of its first item, or the one for areas that are not listed. */
enum u_log_level u_log_spec_level(const struct u_log_spec *spec, const char *area);

/*
 * Discards the settings of the environment and closes the file; the next line reads them again.  No other thread may
 * be logging.
 */
void u_log_reset(void);

/*
 * May a line pass at `now` (monotonic nanoseconds)?  Then *left_out is the number of lines left out
 * before it and not reported yet, which the caller reports; otherwise the line was counted.
 */
bool u_log_ratelimit_pass(struct u_log_ratelimit *g, int64_t now, uint64_t *left_out);

/* When the latest period of the rate limit ends. */
int64_t u_log_ratelimit_end(const struct u_log_ratelimit *g);

#endif
