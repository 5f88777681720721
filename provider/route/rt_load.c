/* SPDX-License-Identifier: BSD-2-Clause */
/* Topologies from files, and the number of hosts that a text asks for. */
#include "rt_load.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rt_priv.h"
#include "u_base.h"
#include "u_file.h"

#define FILE_WORD "file:"
#define LINE_MAX_CHARS 80u /* a link takes nine */

/* A file being read. */
struct lines {
	unsigned int line, hosts, links;
	uint8_t used[RT_HOSTS_MAX]; /* ports of each host */
	char *spec;
	size_t len;
	char *why;
	size_t size;
};

/* Writes the error line, which begins with the number of the line of the file.  Returns -EINVAL. */
static int U_PRINTF(2, 3) refuse(struct lines *f, const char *format, ...)
{
	int len = snprintf(f->why, f->size, "line %u: ", f->line);
	va_list args;

	if ((size_t)len < f->size) {
		va_start(args, format);
		vsnprintf(f->why + len, f->size - (size_t)len, format, args);
		va_end(args);
	}
	return -EINVAL;
}

/*
 * Appends a link to the spec.  0, or -EINVAL with the error line: both ends are one host, or a host is none, or has too
 * many links.
 */
static int link_add(struct lines *f, unsigned int a, unsigned int b)
{
	unsigned int ends[2] = { a, b }, i;

	if (a == b)
		return refuse(f, "link %u-%u joins a host to itself; leave it out", a, b);
	for (i = 0; i < 2; i++) {
		if (ends[i] >= f->hosts)
			return refuse(f, "no host %u in a fabric of %u host%s; use 0 to %u",
				      ends[i], f->hosts, f->hosts == 1 ? "" : "s", f->hosts - 1);
		if (f->used[ends[i]] == RT_PORTS_MAX - 1)
			return refuse(f, "host %u has more than %u links; leave some out", ends[i],
				      RT_PORTS_MAX - 1);
	}
	f->used[a]++;
	f->used[b]++;
	f->len += (size_t)snprintf(f->spec + f->len, RT_SPEC_MAX - f->len, "%s%u-%u",
				   f->links++ > 0 ? "," : "", a, b);
	return 0;
}

static const char *skip_blanks(const char *text)
{
	return text + strspn(text, " \t\r");
}

/*
 * Parses one line, given without its end and its comment; a blank one adds nothing.  0, or -EINVAL with the
 * error line.
 */
static int line_parse(struct lines *f, const char *line)
{
	char head[RT_SHOWN + 4];
	const char *begin = skip_blanks(line), *end;
	unsigned int a, b;

	if (*begin == '\0')
		return 0;
	end = rt_number(begin, &a);
	if (end != NULL)
		end = *end == '-' ? rt_number(end + 1, &b) : NULL;
	if (end != NULL && *skip_blanks(end) == '\0')
		return link_add(f, a, b);
	rt_shown(begin, head);
	return refuse(f, "\"%s\" is not a link; write two host numbers, as in 0-1", head);
}

/* Copies a line for line_parse(), without comment and blanks at its end; false when it is too long or holds a NUL. */
static bool line_cut(const char *text, size_t len, char out[LINE_MAX_CHARS + 1])
{
	const char *comment = memchr(text, '#', len);

	if (comment != NULL)
		len = (size_t)(comment - text);
	while (len > 0 && strchr(" \t\r", text[len - 1]) != NULL && text[len - 1] != '\0')
		len--;
	if (len > LINE_MAX_CHARS || memchr(text, '\0', len) != NULL)
		return false;
	memcpy(out, text, len);
	out[len] = '\0';
	return true;
}

int rt_lines_parse(const char *text, size_t len, unsigned int hosts, char spec[RT_SPEC_MAX],
		   char *why, size_t size)
{
	struct lines f = { .hosts = hosts > 0 && hosts < RT_HOSTS_MAX ? hosts : RT_HOSTS_MAX,
			   .spec = spec,
			   .why = why,
			   .size = size };
	const char *end = text + len, *stop;
	char line[LINE_MAX_CHARS + 1];
	int rc = 0;

	f.len = (size_t)snprintf(spec, RT_SPEC_MAX, "graph:");
	for (; text < end && rc == 0; text = stop + 1) {
		stop = memchr(text, '\n', (size_t)(end - text));
		if (stop == NULL)
			stop = end;
		f.line++;
		if (!line_cut(text, (size_t)(stop - text), line))
			return refuse(&f, "not a line of text with one link; write two host "
					  "numbers, as in 0-1");
		rc = line_parse(&f, line);
	}
	return rc;
}

/*
 * Returns one more than the greatest number in a text, 0 if there is none or one has more than four digits;
 * rt_topo_parse() reports its errors.
 */
static unsigned int graph_hosts(const char *text)
{
	unsigned int number, hosts = 0;

	while (*text != '\0') {
		if (*text < '0' || *text > '9') {
			text++;
			continue;
		}
		text = rt_number(text, &number);
		if (text == NULL)
			return 0;
		if (number >= hosts)
			hosts = number + 1;
	}
	return hosts;
}

unsigned int rt_spec_hosts(const char *spec)
{
	unsigned int width, height;
	const char *at;

	if (strncmp(spec, "graph:", 6) == 0)
		return graph_hosts(spec + 6);
	if (strncmp(spec, "mesh:", 5) != 0 && strncmp(spec, "torus:", 6) != 0)
		return 0;
	at = rt_number(strchr(spec, ':') + 1, &width);
	if (at != NULL)
		at = *at == 'x' ? rt_number(at + 1, &height) : NULL;
	return at != NULL && *at == '\0' ? width * height : 0;
}

/*
 * Parses a spec for the number of hosts that is given, else that it asks for, else the default.  0, -EINVAL or
 * -ENOMEM; then `why` says why.
 */
static int spec_load(const char *spec, struct rt_size hosts, struct rt_topo **out, char *why,
		     size_t size)
{
	unsigned int wanted = hosts.given != 0 ? hosts.given : rt_spec_hosts(spec);
	char head[RT_SHOWN + 4];

	if (wanted == 0)
		wanted = hosts.otherwise;
	if (wanted <= hosts.most)
		return rt_topo_parse(spec, wanted, out, why, size);
	rt_shown(spec, head);
	snprintf(why, size, "topology \"%s\": that is %u hosts, a fabric has up to %u; use fewer",
		 head, wanted, hosts.most);
	return -EINVAL;
}

/*
 * Loads the spec of a file.  0, -EINVAL (also if it cannot be read) or -ENOMEM; then `why` names the file and the error
 * found there.
 */
static int file_load(const char *path, struct rt_size hosts, struct rt_topo **out, char *why,
		     size_t size)
{
	char head[RT_SHOWN + 4], reason[160], *spec = NULL, *text = NULL;
	size_t len;
	int rc = u_file_read(path, RT_FILE_MAX, &text, &len);

	rt_shown(path, head);
	if (rc == 0)
		spec = malloc(RT_SPEC_MAX);
	if (rc == -ENOMEM || (rc == 0 && spec == NULL)) {
		snprintf(why, size, "no memory for file %s; free some", head);
		rc = -ENOMEM;
	} else if (rc != 0) {
		snprintf(why, size, "file %s cannot be read: %s; name a file of links A-B", head,
			 strerror(-rc));
		rc = -EINVAL;
	} else {
		rc = rt_lines_parse(text, len, hosts.given != 0 ? hosts.given : hosts.most, spec,
				    reason, sizeof(reason));
		if (rc == 0)
			rc = spec_load(spec, hosts, out, reason, sizeof(reason));
		if (rc != 0)
			snprintf(why, size, "file %s: %s", head, reason);
	}
	free(spec);
	free(text);
	return rc;
}

/* The hosts are `given`; if that is 0, those that the text asks for, else `otherwise`.  More than `most`: -EINVAL. */
int rt_load(const char *text, struct rt_size hosts, struct rt_topo **out, char *why, size_t size)
{
	if (strncmp(text, FILE_WORD, strlen(FILE_WORD)) == 0)
		return file_load(text + strlen(FILE_WORD), hosts, out, why, size);
	return spec_load(text, hosts, out, why, size);
}
