/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The log: one line, one cause.  VIADUCT_LOG=level[,area=level...] chooses the lines that are
 * written (error, warn, info, debug; default warn), VIADUCT_LOG_FILE where (default: standard
 * error).  Areas are the folder prefixes (vip, vi, nvi, ag, rl, port, u).  Never called on the path
 * of a message.
 */
#ifndef U_LOG_H
#define U_LOG_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "u_base.h"

enum u_log_level { U_LOG_ERROR, U_LOG_WARN, U_LOG_INFO, U_LOG_DEBUG };

/*
 * Writes a line, if its level is enabled for the area; errno stays as it is.  `fmt` has no newline.  The line is cut
 * if it is long; control characters become blanks.
 */
void u_log(enum u_log_level level, const char *area, const char *fmt, ...) U_PRINTF(3, 4);
void u_vlog(enum u_log_level level, const char *area, const char *fmt, va_list args);
/* Would a line of that level and area be written?  errno stays as it is. */
bool u_log_enabled(enum u_log_level level, const char *area);

/* In a child of fork(), before it has other threads: initialises the lock again. */
void u_log_forked(void);

/*
 * A rate limit, for lines that a neighbour, a relay or a client can cause without end.  In each
 * period of U_LOG_RATELIMIT_S seconds the first U_LOG_RATELIMIT_LINES pass; the others are left
 * out and counted, and later one line gives their number:
 *
 *	4711 more lines about ignored records of port left were left out
 *
 * It is written before the next line that passes, or by u_log_ratelimit_tell().  The owner's statistics
 * count every case, also those whose line was left out.  Debug lines have no rate limit.
 *
 * A rate limit is for one kind of line, and for one cause if the causes have to be distinguished;
 * it is a member of the object that it belongs to and needs no cleanup.  Any number of threads may use
 * it, without locks.  The clock is read for lines of an enabled level only.
 */
#define U_LOG_RATELIMIT_LINES 10u
#define U_LOG_RATELIMIT_S 10

struct u_log_ratelimit {
	enum u_log_level level;
	const char *area;
	const char *what;	/* in the plural, "ignored records of port" */
	const char *whose;	/* follows `what`, "left"; may be NULL; both live as long as this */
	_Atomic uint64_t state; /* the latest period, and how many lines passed in it */
	_Atomic uint64_t left_out; /* lines that were left out and are not reported yet */
};

#define U_LOG_RATELIMIT(level_, area_, what_, whose_)                                              \
	{                                                                                          \
		.level = (level_), .area = (area_), .what = (what_), .whose = (whose_)             \
	}

/*
 * Writes a line, unless the rate limit leaves it out, or its level is not enabled; before it, one with the number of
 * lines left out so far, if any.  errno stays as it is.
 */
void u_log_ratelimited(struct u_log_ratelimit *g, const char *fmt, ...) U_PRINTF(2, 3);

/*
 * Writes how many lines were left out in a period that is over.  Returns when to call again
 * (monotonic nanoseconds), U_NEVER if there is nothing to write, at the cost of one load.
 */
int64_t u_log_ratelimit_tell(struct u_log_ratelimit *g);

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
