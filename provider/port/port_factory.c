/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds a port with its decorators: from the names of its kind, and from the text of a view. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "port_cdev_priv.h"
#include "port_deco.h"
#include "port_emu_priv.h"
#include "port_fault.h"
#include "port_model.h"
#include "port_strict.h"
#include "u_fd.h"
#include "u_log.h"

#define MODEL_SEGMENT "model "
#define MODEL_WORD "+model"

/*
 * Adds one decorator from the text that its export_view() wrote: "strict seed=N", "fault seed=N [options]",
 * "model profile=NAME dilation=N", whose descriptor is `model_fd`.  0; or -errno, and `p` stays the caller's.
 */
static int attach_decorator(struct port *p, const char *text, int model_fd, struct port **out)
{
	uint64_t seed;
	int end = 0;

	if (sscanf(text, "strict seed=%" SCNu64 "%n", &seed, &end) == 1 && text[end] == '\0')
		return port_strict_wrap(p, seed, out);
	end = 0;
	if (sscanf(text, "fault seed=%" SCNu64 " %n", &seed, &end) == 1 && end > 0)
		return port_fault_wrap(p, text + end, seed, out);
	if (strncmp(text, MODEL_SEGMENT, strlen(MODEL_SEGMENT)) == 0 && model_fd >= 0)
		return port_model_attach(p, text, model_fd, out);
	return -EINVAL;
}

/* Removes the decorators from `p` down to `stop`, which is not closed and belongs to the caller again. */
static void undecorate(struct port *p, struct port *stop)
{
	struct port *inner;

	for (; p != stop; p = inner) {
		inner = p->inner;
		p->inner = NULL;
		port_close(p);
	}
}

/* Makes the port of a view text, which is cut into its segments, and its decorators; on failure nothing is left. */
static int attach_segments(char *text, const int *fds, unsigned int nfds, struct port_irq *irq,
			   struct port **out)
{
	bool model = strstr(text, PORT_VIEW_SEP MODEL_SEGMENT) != NULL;
	char *next = strstr(text, PORT_VIEW_SEP);
	int model_fd = -1;
	struct port *base;
	struct port *p;
	int err;

	if (model && nfds > 0)
		model_fd = fds[--nfds];
	if (next != NULL)
		*next = '\0';
	err = strncmp(text, "cdev ", 5) == 0 ? cdev_attach(text, fds, nfds, irq, &base)
					     : emu_attach(text, fds, nfds, irq, &base);
	if (err != 0)
		return err;
	p = base;
	while (next != NULL && err == 0) {
		text = next + strlen(PORT_VIEW_SEP);
		next = strstr(text, PORT_VIEW_SEP);
		if (next != NULL)
			*next = '\0';
		err = attach_decorator(p, text, model_fd, &p);
	}
	if (err != 0) {
		undecorate(p, base);
		port_close(base);
		return err;
	}
	*out = p;
	return 0;
}

int port_attach(const char *text, const int *fds, unsigned int nfds, struct port_irq *irq,
		struct port **out)
{
	char copy[PORT_VIEW_MAX];
	char why[U_FD_ERROR];
	int err = -EINVAL;

	if (strlen(text) < sizeof(copy) && nfds <= PORT_ATTACH_FDS) {
		memcpy(copy, text, strlen(text) + 1);
		err = attach_segments(copy, fds, nfds, irq, out);
	}
	if (err != 0) {
		u_error("port",
			"a port view was sought, \"%.255s\" with %u descriptor%s is none (%s); "
			"are agent and library of the same version?",
			text, nfds, nfds == 1 ? "" : "s", u_fd_error(-err, why));
		return err;
	}
	for (unsigned int i = 0; i < nfds; i++)
		close(fds[i]);
	return 0;
}

/* Is `word` NAME or NAME:OPTIONS?  Gives the options, "" when there are none. */
static bool word_is(const char *word, const char *name, const char **options_out)
{
	size_t n = strlen(name);

	if (strncmp(word, name, n) != 0 || (word[n] != '\0' && word[n] != ':'))
		return false;
	*options_out = word[n] == ':' ? word + n + 1 : word + n;
	return true;
}

/*
 * Wraps the port in one decorator.  0; or -errno, and the port is as before; -EINVAL: the word is none, or its
 * options are bad.
 */
static int decorate_word(struct port *p, const char *word, const char *fault_options, uint64_t seed,
			 struct port **out)
{
	const char *options;

	if (strcmp(word, "strict") == 0)
		return port_strict_wrap(p, seed, out);
	if (strcmp(word, "fault") == 0)
		return port_fault_wrap(p, fault_options, seed, out);
	if (word_is(word, "model", &options))
		return port_model_wrap(p, options, out);
	return -EINVAL;
}

/*
 * Wraps the port in all decorators of `kind`, which begins with the kind of the port and is cut into words; on
 * failure in none.
 */
static int decorate_words(struct port *base, char *kind, const char *fault_options, uint64_t seed,
			  struct port **out)
{
	struct port *p = base;
	char *rest = NULL;
	char *word = strtok_r(kind, "+", &rest);
	int err = word != NULL && strcmp(word, base->limits.kind) == 0 ? 0 : -EINVAL;

	while (err == 0 && (word = strtok_r(NULL, "+", &rest)) != NULL)
		err = decorate_word(p, word, fault_options, seed, &p);
	if (err != 0) {
		undecorate(p, base);
		return err;
	}
	*out = p;
	return 0;
}

/* Is it the name of a decorator, with valid options if it has any? */
static bool word_ok(const char *word)
{
	const char *options;

	if (word_is(word, "model", &options))
		return port_model_check(options) == 0;
	return strcmp(word, "strict") == 0 || strcmp(word, "fault") == 0;
}

int port_kind_check(const char *kind)
{
	char copy[sizeof(((struct port_limits *)NULL)->kind)];
	char *at = copy;
	char *word;

	if (strlen(kind) >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, kind, strlen(kind) + 1);
	word = strsep(&at, "+");
	if (strcmp(word, "emu") != 0 && strcmp(word, "cdev") != 0)
		return -EINVAL;
	while ((word = strsep(&at, "+")) != NULL) {
		if (!word_ok(word))
			return -EINVAL;
	}
	return 0;
}

int port_kind_profile(const char *kind, const char *profile, char out[PORT_KIND_MAX])
{
	const char *model = strstr(kind, MODEL_WORD);
	const char *end, *dilation;
	char made[PORT_KIND_MAX];
	int n;

	if (model == NULL || profile[0] == '\0' || port_kind_check(kind) != 0)
		return -EINVAL;
	end = strchrnul(model + 1, '+');
	dilation = model + strlen(MODEL_WORD);
	if (dilation < end) /* a colon, and the profile that is replaced */
		dilation += 1 + strcspn(dilation + 1, ":+");
	n = snprintf(made, sizeof(made), "%.*s" MODEL_WORD ":%s%s", (int)(model - kind), kind,
		     profile, dilation);
	if (n >= (int)sizeof(made) || strpbrk(profile, ":+") != NULL || port_kind_check(made) != 0)
		return -EINVAL;
	memcpy(out, made, sizeof(made));
	return 0;
}

int port_decorate(struct port *p, const char *kind, const char *fault_options, uint64_t seed,
		  struct port **out)
{
	char copy[sizeof(p->limits.kind)];
	int err = -EINVAL;

	if (strlen(kind) < sizeof(copy)) {
		memcpy(copy, kind, strlen(kind) + 1);
		err = decorate_words(p, copy, fault_options, seed, out);
	}
	if (err == -EINVAL)
		u_error("port",
			"a port kind was sought, \"%s\" is none for a port of kind %s; use "
			"%s[+strict][+fault][+model[:PROFILE[:DILATION]]]",
			kind, p->limits.kind, p->limits.kind);
	return err;
}
