/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "run_end.h"
#include "run_output.h"

#define LINE_MAX_BYTES 65536u /* a longer line is written in parts, each with the number */
#define TAG_BYTES 16u	      /* before it in the same buffer */

static bool write_all(int fd, const char *at, size_t bytes)
{
	ssize_t n;

	while (bytes > 0) {
		n = write(fd, at, bytes);
		if (n < 0 && errno == EAGAIN) /* oshrun was given a pipe that does not block */
			poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0)
			return false;
		at += n;
		bytes -= (size_t)n;
	}
	return true;
}

/* One write of the number, the text and the end of the line, for which there is room behind the text. */
static bool put(struct run_job *job, const struct run_pe *pe, unsigned int stream, char *text,
		size_t bytes)
{
	char tag[TAG_BYTES + 1], kept = text[bytes];
	int n = snprintf(tag, sizeof(tag), "[%d] ", pe->pe);
	char *start = text - n, before[TAG_BYTES];
	bool ok;

	memcpy(before, start, (size_t)n);
	memcpy(start, tag, (size_t)n);
	text[bytes] = '\n';
	ok = write_all(STDOUT_FILENO + (int)stream, start, (size_t)n + bytes + 1);
	if (!ok && errno != EPIPE)
		run_end(job, EXIT_FAIL, "standard %s cannot be written: %s",
			stream == 0 ? "output" : "error", strerror(errno));
	memcpy(start, before, (size_t)n);
	text[bytes] = kept;
	return ok;
}

static bool line_room(struct run_stream *s)
{
	if (s->line == NULL)
		s->line = malloc(TAG_BYTES + LINE_MAX_BYTES + 1);
	return s->line != NULL;
}

static void close_stream(struct run_stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	free(s->line);
	*s = (struct run_stream){ .fd = -1 };
}

/* Writes the whole lines of the buffer, and keeps the rest unless it fills it. */
static bool put_lines(struct run_job *job, const struct run_pe *pe, unsigned int stream,
		      struct run_stream *s)
{
	char *text = s->line + TAG_BYTES, *at = text, *end;
	size_t left = s->bytes;
	bool ok = true;

	while (ok && (end = memchr(at, '\n', left)) != NULL) {
		ok = put(job, pe, stream, at, (size_t)(end - at));
		left -= (size_t)(end - at) + 1;
		at = end + 1;
	}
	if (ok && left == LINE_MAX_BYTES) {
		ok = put(job, pe, stream, at, left);
		left = 0;
	}
	memmove(text, at, left);
	s->bytes = left;
	return ok;
}

/* --serve: as it comes. */
static bool pass_on(struct run_job *job, struct run_pe *pe, unsigned int stream)
{
	struct run_stream *s = &pe->streams[stream];
	char data[RUN_WIRE_OUTPUT_MAX];
	ssize_t n;

	do {
		n = read(s->fd, data, sizeof(data));
	} while (n < 0 && errno == EINTR);
	if (n > 0)
		run_up_send(job, stream == 0 ? RUN_WIRE_OUT : RUN_WIRE_ERR, (uint32_t)pe->pe, data,
			    (size_t)n, NULL, 0);
	if (n == 0)
		close_stream(s);
	return n > 0;
}

bool run_output_read(struct run_job *job, struct run_pe *pe, unsigned int stream)
{
	struct run_stream *s = &pe->streams[stream];
	bool ok = true;
	ssize_t n;

	if (job->up != NULL)
		return pass_on(job, pe, stream);
	if (!line_room(s)) {
		close_stream(s);
		return false;
	}
	do {
		n = read(s->fd, s->line + TAG_BYTES + s->bytes, LINE_MAX_BYTES - s->bytes);
	} while (n < 0 && errno == EINTR);
	if (n > 0) {
		s->bytes += (size_t)n;
		ok = put_lines(job, pe, stream, s);
	} else if (n == 0 && s->bytes > 0) {
		put(job, pe, stream, s->line + TAG_BYTES, s->bytes);
	}
	/* Nobody reads oshrun's output any more: then the PE gets SIGPIPE as it would without oshrun. */
	if (!ok || n == 0)
		close_stream(s);
	return n > 0;
}

static void cannot_write(struct run_job *job, unsigned int stream)
{
	if (errno == EPIPE)
		run_end(job, 128 + SIGPIPE, NULL);
	else
		run_end(job, EXIT_FAIL, "standard %s cannot be written: %s",
			stream == 0 ? "output" : "error", strerror(errno));
}

void run_output_take(struct run_job *job, struct run_pe *pe, unsigned int stream, const char *data,
		     size_t bytes)
{
	struct run_stream *s = &pe->streams[stream];
	bool ok = true;
	size_t n;

	if (!job->options->tag) {
		if (!write_all(STDOUT_FILENO + (int)stream, data, bytes))
			cannot_write(job, stream);
		return;
	}
	for (; ok && bytes > 0 && line_room(s); data += n, bytes -= n) {
		n = bytes < LINE_MAX_BYTES - s->bytes ? bytes : LINE_MAX_BYTES - s->bytes;
		memcpy(s->line + TAG_BYTES + s->bytes, data, n);
		s->bytes += n;
		ok = put_lines(job, pe, stream, s);
	}
	if (!ok && errno == EPIPE)
		cannot_write(job, stream);
}

static void drain(struct run_job *job, struct run_pe *pe, unsigned int stream)
{
	struct run_stream *s = &pe->streams[stream];

	while (s->fd >= 0 && run_output_read(job, pe, stream))
		;
	if (s->bytes > 0)
		put(job, pe, stream, s->line + TAG_BYTES, s->bytes);
	close_stream(s);
}

void run_output_drain(struct run_job *job, struct run_pe *pe)
{
	drain(job, pe, 0);
	drain(job, pe, 1);
}

void run_output_end(struct run_job *job)
{
	int i;

	for (i = 0; i < job->n_pes; i++)
		run_output_drain(job, &job->pes[i]);
}
