/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log: one line, one cause.  VIADUCT_LOG=level[,area=level...] chooses what
 * is written (error, warn, info, debug; default warn), VIADUCT_LOG_FILE where
 * (default: standard error).  Areas are the folder prefixes (vip, vi, nvi, ag,
 * rl, port, u).  Never called on the path of a message.
 */
#ifndef U_LOG_H
#define U_LOG_H

#include <stdbool.h>

#include "u_base.h"

enum u_log_level { U_LOG_ERROR, U_LOG_WARN, U_LOG_INFO, U_LOG_DEBUG };

void u_log(enum u_log_level level, const char *area, const char *fmt, ...) U_PRINTF(3, 4);
bool u_log_enabled(enum u_log_level level, const char *area);

#define u_error(area, ...) u_log(U_LOG_ERROR, area, __VA_ARGS__)
#define u_warn(area, ...) u_log(U_LOG_WARN, area, __VA_ARGS__)
#define u_info(area, ...)                                                                          \
	do {                                                                                       \
		if (u_log_enabled(U_LOG_INFO, area))                                               \
			u_log(U_LOG_INFO, area, __VA_ARGS__);                                      \
	} while (0)
#define u_debug(area, ...)                                                                         \
	do {                                                                                       \
		if (u_log_enabled(U_LOG_DEBUG, area))                                              \
			u_log(U_LOG_DEBUG, area, __VA_ARGS__);                                     \
	} while (0)

#endif
