/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "run_end.h"
#include "run_output.h"
#include "run_sink.h"

#define LINE_MAX_BYTES 65536u /* a longer line is written in parts, each with the number */
#define TAG_BYTES 16u	      /* before it in the same buffer */

/*
 * Hands output to its sink, or drops it. When the job ends nobody waits for who reads its output: what has then to be
 * written is bounded by memory alone.
 */
static void write_out(const struct run_job *job, unsigned int stream, const char *data,
		      size_t bytes)
{
	if (!job->ending || !run_sink_over((enum run_sink)stream, RUN_SINK_MOST))
		run_sink_put((enum run_sink)stream, data, bytes);
}

/* Writes the number, the text and the end of the line at once, for which there is room before and after the text. */
static void put(const struct run_job *job, const struct run_pe *pe, unsigned int stream, char *text,
		size_t bytes)
{
	char tag[TAG_BYTES + 1], kept = text[bytes];
	int n = snprintf(tag, sizeof(tag), "[%d] ", pe->pe);
	char *start = text - n, before[TAG_BYTES];

	memcpy(before, start, (size_t)n);
	memcpy(start, tag, (size_t)n);
	text[bytes] = '\n';
	write_out(job, stream, start, (size_t)n + bytes + 1);
	memcpy(start, before, (size_t)n);
	text[bytes] = kept;
}

/* Gives the stream a buffer, if it has none. False: no memory. */
static bool line_room(struct run_stream *s)
{
	if (s->line == NULL)
		s->line = malloc(TAG_BYTES + LINE_MAX_BYTES + 1);
	return s->line != NULL;
}

/* Closes a stream, and drops a line that has not ended. */
static void close_stream(struct run_stream *s)
{
	if (s->fd >= 0)
		close(s->fd);
	free(s->line);
	*s = (struct run_stream){ .fd = -1 };
}

/* Writes the whole lines of the buffer, and keeps the rest unless it fills it. */
static void put_lines(const struct run_job *job, const struct run_pe *pe, unsigned int stream,
		      struct run_stream *s)
{
	char *text = s->line + TAG_BYTES, *at = text, *end;
	size_t left = s->bytes;

	while ((end = memchr(at, '\n', left)) != NULL) {
		put(job, pe, stream, at, (size_t)(end - at));
		left -= (size_t)(end - at) + 1;
		at = end + 1;
	}
	if (left == LINE_MAX_BYTES) {
		put(job, pe, stream, at, left);
		left = 0;
	}
	memmove(text, at, left);
	s->bytes = left;
}

/* As read(), without EINTR. */
static ssize_t read_some(int fd, char *to, size_t bytes)
{
	ssize_t n;

	do {
		n = read(fd, to, bytes);
	} while (n < 0 && errno == EINTR);
	return n;
}

/* --serve: sends what one read gives to the oshrun that has the job. As read(). */
static ssize_t pass_on(struct run_job *job, struct run_pe *pe, unsigned int stream)
{
	char data[RUN_WIRE_OUTPUT_MAX];
	ssize_t n = read_some(pe->streams[stream].fd, data, sizeof(data));

	if (n > 0)
		run_up_send(job, stream == 0 ? RUN_WIRE_OUT : RUN_WIRE_ERR, (uint32_t)pe->pe, data,
			    (size_t)n, NULL, 0);
	return n;
}

/* Takes what one read gives; at the end of the stream writes what has no end of line. As read(), or 0: no memory. */
static ssize_t take(struct run_job *job, struct run_pe *pe, unsigned int stream)
{
	struct run_stream *s = &pe->streams[stream];
	ssize_t n;

	if (job->up != NULL)
		return pass_on(job, pe, stream);
	if (!line_room(s))
		return 0;
	n = read_some(s->fd, s->line + TAG_BYTES + s->bytes, LINE_MAX_BYTES - s->bytes);
	if (n > 0) {
		s->bytes += (size_t)n;
		put_lines(job, pe, stream, s);
	} else if (n == 0 && s->bytes > 0) {
		put(job, pe, stream, s->line + TAG_BYTES, s->bytes);
		s->bytes = 0;
	}
	return n;
}

bool run_output_full(const struct run_job *job)
{
	if (job->ending)
		return false;
	return job->up != NULL ? run_sink_full(RUN_SINK_UP)
			       : run_sink_full(RUN_SINK_OUT) || run_sink_full(RUN_SINK_ERR);
}

void run_output_read(struct run_job *job, struct run_pe *pe, unsigned int stream)
{
	struct run_stream *s = &pe->streams[stream];

	if (s->fd < 0)
		return;
	if (run_output_full(job)) {
		epoll_ctl(job->poll, EPOLL_CTL_DEL, s->fd, NULL);
		s->paused = job->paused = true;
	} else if (take(job, pe, stream) == 0) {
		close_stream(s);
	}
}

void run_output_resume(struct run_job *job)
{
	int i;
	unsigned int stream;

	for (i = 0; i < job->n_pes; i++) {
		for (stream = 0; stream < 2; stream++) {
			struct run_stream *s = &job->pes[i].streams[stream];

			if (s->paused && s->fd >= 0)
				run_watch(job, RUN_STREAM_OUT + stream, i, s->fd, false);
			s->paused = false;
		}
	}
}

/*
 * Closes this stream of all PEs: nobody reads it any more, so they get SIGPIPE as they would without oshrun. A job on
 * several machines ends.
 */
static void close_streams(struct run_job *job, unsigned int stream)
{
	int i;

	for (i = 0; i < job->n_pes; i++)
		close_stream(&job->pes[i].streams[stream]);
	if (job->n_fars > 0)
		run_end(job, 128 + SIGPIPE, NULL);
}

void run_output_check(struct run_job *job)
{
	unsigned int stream;
	int error;

	if (job->up != NULL) {
		job->up_lost |= run_sink_error(RUN_SINK_UP) != 0;
		return;
	}
	for (stream = 0; stream < 2 && (job->options->tag || job->n_fars > 0); stream++) {
		error = run_sink_error((enum run_sink)stream);
		if (error == EPIPE)
			close_streams(job, stream);
		else if (error != 0)
			run_end(job, EXIT_FAIL, "standard %s cannot be written: %s",
				stream == 0 ? "output" : "error", run_error(error));
	}
}

void run_output_take(struct run_job *job, struct run_pe *pe, unsigned int stream, const char *data,
		     size_t bytes)
{
	struct run_stream *s = &pe->streams[stream];
	size_t n;

	if (!job->options->tag) {
		write_out(job, stream, data, bytes);
		return;
	}
	for (; bytes > 0 && line_room(s); data += n, bytes -= n) {
		n = bytes < LINE_MAX_BYTES - s->bytes ? bytes : LINE_MAX_BYTES - s->bytes;
		memcpy(s->line + TAG_BYTES + s->bytes, data, n);
		s->bytes += n;
		put_lines(job, pe, stream, s);
	}
}

/* Writes what is there now, and closes the stream: a child of the PE may write on for ever. */
static void drain(struct run_job *job, struct run_pe *pe, unsigned int stream)
{
	struct run_stream *s = &pe->streams[stream];
	int bytes = 0;
	ssize_t n = 0;

	if (s->fd >= 0 && ioctl(s->fd, FIONREAD, &bytes) != 0)
		bytes = 0;
	for (; bytes > 0; bytes -= (int)n) {
		n = take(job, pe, stream);
		if (n <= 0)
			break;
	}
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
