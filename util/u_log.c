/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "u_cancel.h"
#include "u_fd.h"
#include "u_log_spec.h"
#include "u_time.h"

#define LINE_BYTES 1024
#define HOST_BYTES 64

struct sink {
	struct u_log_spec spec;
	char host[HOST_BYTES]; /* empty, or the host's name and a blank */
	int fd;
};

static const char *const level_names[] = { "error", "warn", "info", "debug" };
static const char *const area_names[] = { "vip", "vi", "nvi", "ag", "rl", "port", "u" };

/* Built by the first call, then read without a lock. */
static struct sink *_Atomic current;
static pthread_mutex_t build_lock = PTHREAD_MUTEX_INITIALIZER;

/* Reads a word of `length` bytes as a level.  0 or -EINVAL. */
static int level_parse(const char *text, size_t length, enum u_log_level *out)
{
	for (unsigned int i = 0; i < U_ARRAY_SIZE(level_names); i++) {
		if (strlen(level_names[i]) == length && memcmp(level_names[i], text, length) == 0) {
			*out = (enum u_log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* Is the word of `length` bytes the name of an area? */
static bool area_known(const char *text, size_t length)
{
	for (unsigned int i = 0; i < U_ARRAY_SIZE(area_names); i++) {
		if (strlen(area_names[i]) == length && memcmp(area_names[i], text, length) == 0)
			return true;
	}
	return false;
}

/* Adds "level" or "area=level", of `length` bytes, to the spec.  0, or -EINVAL: unknown words, or too many areas. */
static int item_parse(const char *text, size_t length, struct u_log_spec *spec)
{
	const char *equals = memchr(text, '=', length);
	struct u_log_area *area = &spec->area[spec->area_count];
	size_t name_length;

	if (equals == NULL)
		return level_parse(text, length, &spec->level);
	name_length = (size_t)(equals - text);
	if (spec->area_count == U_LOG_AREAS || !area_known(text, name_length))
		return -EINVAL;
	if (level_parse(equals + 1, length - name_length - 1, &area->level) != 0)
		return -EINVAL;
	memcpy(area->name, text, name_length);
	spec->area_count++;
	return 0;
}

int u_log_spec_parse(const char *text, struct u_log_spec *out)
{
	struct u_log_spec spec = { .level = U_LOG_WARN };

	for (;;) {
		size_t length = strcspn(text, ",");

		if (item_parse(text, length, &spec) != 0)
			return -EINVAL;
		if (text[length] == '\0')
			break;
		text += length + 1;
	}
	*out = spec;
	return 0;
}

enum u_log_level u_log_spec_level(const struct u_log_spec *spec, const char *area)
{
	for (unsigned int i = 0; i < spec->area_count; i++) {
		if (strcmp(spec->area[i].name, area) == 0)
			return spec->area[i].level;
	}
	return spec->level;
}

/* Returns the value of a variable; NULL if it is not set, or empty. */
static const char *env_text(const char *name)
{
	const char *text = secure_getenv(name);

	return text != NULL && text[0] != '\0' ? text : NULL;
}

/* Opens the log file; returns standard error for NULL, or if that fails, which it says there. */
static int sink_open(const char *path)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	int fd;

	if (path == NULL)
		return STDERR_FILENO;
	fd = u_fd_above_std(open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600));
	if (fd >= 0)
		return fd;
	dprintf(STDERR_FILENO,
		"viaduct: VIADUCT_LOG_FILE: cannot append to '%s' (%s); logging to standard error\n",
		path, strerror(errno));
	return STDERR_FILENO;
}

/*
 * Reads the variables, and opens the file.  A bad VIADUCT_LOG is reported by u_cfg_load(); here it means the default.
 */
static void sink_fill(struct sink *sink)
{
	const char *text = env_text("VIADUCT_LOG");
	const char *host = env_text("VIADUCT_HOST");

	if (text == NULL || u_log_spec_parse(text, &sink->spec) != 0)
		sink->spec = (struct u_log_spec){ .level = U_LOG_WARN };
	if (host != NULL)
		snprintf(sink->host, sizeof(sink->host), "%.*s ", HOST_BYTES - 2, host);
	sink->fd = sink_open(env_text("VIADUCT_LOG_FILE"));
}

/* The place where lines go, made by the first call; NULL: out of memory. */
static struct sink *sink_get(void)
{
	struct sink *sink = atomic_load_explicit(&current, memory_order_acquire);

	if (u_likely(sink != NULL))
		return sink;
	pthread_mutex_lock(&build_lock);
	sink = atomic_load_explicit(&current, memory_order_relaxed);
	if (sink == NULL) {
		sink = calloc(1, sizeof(*sink));
		if (sink != NULL) {
			sink_fill(sink);
			atomic_store_explicit(&current, sink, memory_order_release);
		}
	}
	pthread_mutex_unlock(&build_lock);
	return sink;
}

void u_log_reset(void)
{
	struct sink *sink = atomic_exchange_explicit(&current, NULL, memory_order_acq_rel);

	if (sink == NULL)
		return;
	if (sink->fd != STDERR_FILENO)
		close(sink->fd);
	free(sink);
}

void u_log_forked(void)
{
	build_lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
}

bool u_log_enabled(enum u_log_level level, const char *area)
{
	int saved = errno;
	const struct sink *sink = sink_get();

	errno = saved;
	return sink != NULL && level <= u_log_spec_level(&sink->spec, area);
}

/* Replaces control characters, which a peer or a user may have put into a name, by blanks. */
static void flatten(char *text, size_t length)
{
	for (size_t i = 0; i < length; i++) {
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			text[i] = ' ';
	}
}

/* Returns how many characters, without the NUL, a call of snprintf() with so much room, not 0, has written. */
static size_t clip(int printed, size_t room)
{
	if (printed < 0)
		return 0;
	return (size_t)printed < room ? (size_t)printed : room - 1;
}

/* Writes "[seconds.microseconds] host pid:tid area level: ", the host only if it is set.  Returns the length. */
static size_t line_begin(char *line, const struct sink *sink, enum u_log_level level,
			 const char *area)
{
	uint64_t now_us = u_calendar_ns() / 1000;

	return clip(snprintf(line, LINE_BYTES,
			     "[%llu.%06u] %s%d:%d %s %s: ", (unsigned long long)(now_us / 1000000),
			     (unsigned int)(now_us % 1000000), sink->host, (int)getpid(),
			     (int)gettid(), area, level_names[level]),
		    LINE_BYTES);
}

/* Writes the line by one call; if that fails the line is lost.  No cancellation point. */
static void line_write(int fd, const char *line, size_t length)
{
	const int cancel U_AT_END(u_cancel_back) = u_cancel_off();
	ssize_t rc;

	do {
		rc = write(fd, line, length);
	} while (rc < 0 && errno == EINTR);
}

void u_vlog(enum u_log_level level, const char *area, const char *fmt, va_list args)
{
	int saved = errno;
	const struct sink *sink;
	char line[LINE_BYTES];
	size_t length;

	if (!u_log_enabled(level, area))
		return;
	sink = sink_get();
	length = line_begin(line, sink, level, area);
	errno = saved; /* for %m */
	length +=
		clip(vsnprintf(line + length, LINE_BYTES - length, fmt, args), LINE_BYTES - length);
	flatten(line, length);
	line[length++] = '\n';
	line_write(sink->fd, line, length);
	errno = saved;
}

void u_log(enum u_log_level level, const char *area, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	u_vlog(level, area, fmt, args);
	va_end(args);
}
