/* SPDX-License-Identifier: BSD-2-Clause */
/* The grammar of VIADUCT_LOG, shared by the log and the configuration.  Private to util. */
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

/* Parses level[,area=level...] in any order.  Returns 0 or -EINVAL. */
int u_log_spec_parse(const char *text, struct u_log_spec *out);

enum u_log_level u_log_spec_level(const struct u_log_spec *spec, const char *area);

/* Forgets what was read from the environment.  No other thread may be logging. */
void u_log_reset(void);

#endif
