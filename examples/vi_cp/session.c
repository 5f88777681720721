/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "session.h"

#define TURN_MS 200u			 /* how soon a signal is noticed */
#define LINE_MAX_BYTES (3 * CP_PATH_MAX) /* of a complaint: two names and a reason */

uint64_t session_now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

void session_spent(struct session *s, enum cp_spent what, uint64_t *since_ns)
{
	uint64_t now_ns = session_now_ns();

	s->spent_ns[what] += now_ns - *since_ns;
	*since_ns = now_ns;
}

/* The connection may be lost because of the signal that the other side got, too. */
static int wait_event(struct session *s, struct link_event *event)
{
	unsigned int silent_ms = 0;
	int err;

	for (;;) {
		err = link_receive(&s->link, TURN_MS, event);
		if (err != -ETIMEDOUT)
			return err;
		if (s->stop && *s->stop)
			return -EINTR;
		silent_ms += TURN_MS;
		if (s->idle_ms && silent_ms >= s->idle_ms)
			return -ETIMEDOUT;
	}
}

int session_next(struct session *s, struct link_event *event)
{
	uint64_t begin_ns = session_now_ns();
	int err = wait_event(s, event);

	session_spent(s, CP_SPENT_WAIT, &begin_ns);
	if (!err && !event->is_data)
		err = cp_parse(event->bytes, event->length, &s->message);
	return err ? err : link_release(&s->link, event);
}

int session_say(struct session *s, enum cp_type type)
{
	struct cp_header header;

	cp_header_init(&header, type, sizeof(header));
	return link_send(&s->link, &header, sizeof(header));
}

int session_tell(struct session *s, enum cp_type type, enum cp_verdict verdict, const char *text)
{
	struct cp_result result;
	size_t length = cp_result_init(&result, type, verdict, text);

	memcpy(result.spent_ns, s->spent_ns, sizeof(result.spent_ns));
	return link_send(&s->link, &result, length);
}

int session_welcome(struct session *s, const char *name)
{
	struct cp_welcome welcome;
	size_t length;

	memset(&welcome, 0, sizeof(welcome));
	welcome.name_length = (uint32_t)strnlen(name, CP_NAME_MAX);
	memcpy(welcome.name, name, welcome.name_length);
	length = offsetof(struct cp_welcome, name) + welcome.name_length;
	cp_header_init(&welcome.header, CP_WELCOME, length);
	welcome.address = (uintptr_t)s->link.window;
	welcome.handle = s->link.window_handle;
	welcome.buffers = CP_BUFFERS;
	welcome.buffer_bytes = CP_BUFFER_BYTES;
	return link_send(&s->link, &welcome, length);
}

int session_result(struct session *s)
{
	struct link_event event;
	int err = session_next(s, &event);

	return err ? err : event.is_data || s->message.type != CP_RESULT ? -EPROTO : 0;
}

void session_complain(struct session *s, const char *format, ...)
{
	char text[LINE_MAX_BYTES];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	cp_make_printable(text);
	progress_clear(&s->progress);
	fprintf(stderr, "vi_cp: %s\n", text);
}

void session_print_digest(struct session *s, const uint8_t *digest, const char *name)
{
	char shown[CP_PATH_MAX + 1];
	unsigned int i;

	snprintf(shown, sizeof(shown), "%s", name);
	cp_make_printable(shown);
	progress_clear(&s->progress);
	for (i = 0; i < CP_DIGEST_BYTES; i++)
		printf("%02x", digest[i]);
	printf("  %s\n", shown);
}
