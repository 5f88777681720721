/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line, error lines and --help. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "u_option.h"
#include "u_option_value.h"

#define ROWS_MAX 64 /* of a table; rows after these are ignored */
#define LONG 256    /* above all letters: getopt_long() returns this for the first row */
#define TEXT_MAX 320

/* This row or, if the tool does not have it, the next that it has; NULL at the end of the table. */
static const struct u_option *row(const struct u_option_tool *t, const struct u_option *o)
{
	while (o->tools != 0 && (o->tools & t->mask) == 0)
		o++;
	return o->name != NULL || o->help != NULL ? o : NULL;
}

/* ---- error lines ---- */

/* Writes an error line, cut to TEXT_MAX, with '?' for control characters: by t->say, or to standard error. */
static void say(const struct u_option_tool *t, const char *fmt, va_list ap)
{
	char line[TEXT_MAX], *c;

	vsnprintf(line, sizeof(line), fmt, ap);
	for (c = line; *c != '\0'; c++) {
		if (iscntrl((unsigned char)*c))
			*c = '?'; /* it stays one line */
	}
	if (t->say != NULL)
		t->say(line);
	else
		fprintf(stderr, "%s: %s\n", t->name, line);
}

int u_option_refuse(const struct u_option_tool *t, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(t, fmt, ap);
	va_end(ap);
	return 2;
}

/* Appends to the text, which has room for TEXT_MAX bytes; what does not fit is cut. */
static void add(char *text, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void add(char *text, const char *fmt, ...)
{
	size_t n = strlen(text);
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text + n, TEXT_MAX - n, fmt, ap);
	va_end(ap);
}

/* Adds `before` and a number; where o->size, 65536 as 64k. */
static void add_number(char *text, const struct u_option *o, const char *before, uint64_t v)
{
	static const char *const unit[] = { "", "k", "M", "G", "T" };
	size_t i = 0;

	while (o->size && v != 0 && v % 1024 == 0 && i < 4) {
		v /= 1024;
		i++;
	}
	add(text, "%s%llu%s", before, (unsigned long long)v, unit[i]);
}

/* Adds the words as «a, b or c». */
static void add_words(char *text, const char *const *words)
{
	size_t i;

	for (i = 0; words[i] != NULL; i++)
		add(text, "%s%s", i == 0 ? "" : words[i + 1] != NULL ? ", " : " or ", words[i]);
}

/* Writes the text that follows "is not" in an error line. */
static void expectation(const struct u_option *o, char text[TEXT_MAX])
{
	text[0] = '\0';
	if (o->expected != NULL) {
		add(text, "%s", o->expected);
	} else if (o->call != NULL) {
		add(text, "%s", o->arg);
	} else if (o->words != NULL) {
		add_words(text, o->words);
	} else if (o->kind == U_OPTION_DECIMAL) {
		add(text, "a number from %g to %g", o->least, o->most);
	} else if (o->kind == U_OPTION_STRING || o->kind == U_OPTION_LIST) {
		add(text, "a text");
		if (o->max != 0)
			add(text, " of %u to %u characters", (unsigned)o->min, (unsigned)o->max);
	} else {
		if (o->kind == U_OPTION_PAIR)
			add(text, "%s with numbers", o->arg);
		else if (o->step != 0)
			add(text, "a multiple of %llu", (unsigned long long)o->step);
		else
			add(text, o->size ? "a size" : "a number");
		add_number(text, o, " from ", o->min);
		if (u_option_most(o) != UINT64_MAX)
			add_number(text, o, " to ", u_option_most(o));
	}
}

/* Writes the error line for an argument that was refused with `rc`, unless that was done.  Returns the exit status. */
static int refused(const struct u_option_tool *t, const struct u_option *o, const char *arg, int rc)
{
	char text[TEXT_MAX];

	if (rc == -ECANCELED)
		return 2;
	if (rc == -ENOSPC)
		return u_option_refuse(t, "--%s is given too often", o->name);
	if (rc != -EINVAL) {
		u_option_refuse(t, "--%s: %s", o->name, strerror(-rc));
		return 1;
	}
	if (arg != NULL && *arg == '\0' && o->min == 1 && o->max == 0 && o->expected == NULL &&
	    o->call == NULL && (o->kind == U_OPTION_STRING || o->kind == U_OPTION_LIST))
		return u_option_refuse(t, "--%s '' is empty; see --help", o->name);
	expectation(o, text);
	return u_option_refuse(t, "--%s '%.80s' is not %.160s; see --help", o->name,
			       arg != NULL ? arg : "", text);
}

/* Returns the row that getopt_long() means by `c`, a letter or the number of a row; NULL: there is none. */
static const struct u_option *find(const struct u_option_tool *t, int c)
{
	const struct u_option *o;

	if (c >= LONG)
		return &t->options[c - LONG];
	for (o = row(t, t->options); c > 0 && o != NULL; o = row(t, o + 1)) {
		if (o->letter == c)
			return o;
	}
	return NULL;
}

/* Returns how many options begin with this name. */
static unsigned int begun_by(const struct u_option_tool *t, const char *name)
{
	const struct u_option *o;
	unsigned int count = 0;

	for (o = row(t, t->options); o != NULL; o = row(t, o + 1))
		count += o->name != NULL && strncmp(o->name, name, strcspn(name, "=")) == 0;
	return count;
}

/*
 * Writes the error line when getopt_long() has returned ':' or '?', the latter also for an argument that an option
 * cannot have.  Returns the exit status.
 */
static int unknown(const struct u_option_tool *t, int c, const char *word)
{
	const struct u_option *o = find(t, optopt);

	if (o != NULL && c == ':')
		return u_option_refuse(t, "--%s needs an argument; see --help", o->name);
	if (o != NULL)
		return u_option_refuse(t, "--%s takes no argument; see --help", o->name);
	if (optopt != 0)
		return u_option_refuse(t, "no option -%c; see --help", optopt);
	if (begun_by(t, word + strspn(word, "-")) > 1)
		return u_option_refuse(t, "%.80s may be several options; see --help", word);
	return u_option_refuse(t, "no option %.80s; see --help", word);
}

/* The row of a name that ends at a '=' or the end of the text; NULL: there is none. */
static const struct u_option *named(const struct u_option_tool *t, const char *name)
{
	const struct u_option *o;
	size_t n = strcspn(name, "=");

	for (o = row(t, t->options); o != NULL; o = row(t, o + 1)) {
		if (o->name != NULL && strlen(o->name) == n && strncmp(o->name, name, n) == 0)
			return o;
	}
	return NULL;
}

/*
 * Is `word`, which begins after the '-', letters of options that take nothing, or one letter of an option that takes an
 * argument?  Only a number may follow that letter in the word; any argument may be the next word.
 */
static bool is_letters(const struct u_option_tool *t, const char *word)
{
	const struct u_option *o = find(t, word[0]);

	if (o != NULL && o->arg != NULL)
		return word[1] == '\0' ||
		       (o->kind == U_OPTION_NUMBER && isdigit((unsigned char)word[1]));
	for (; o != NULL && o->arg == NULL && *word != '\0'; word++)
		o = find(t, word[1]);
	return *word == '\0';
}

/*
 * Is the word the full name of an option, letters, or no option at all?  Command lines of such a program may have
 * options of other launchers.  One of these may be the beginning of a name here, or begin with a letter that is an
 * option here: it must not be taken for that.
 */
static bool is_spelled_out(const struct u_option_tool *t, const char *word)
{
	if (word == NULL || word[0] != '-' || word[1] == '\0')
		return true;
	if (word[1] == '-')
		return word[2] == '\0' || named(t, word + 2) != NULL;
	return named(t, word + 1) != NULL || is_letters(t, word + 1);
}

/* ---- --help ---- */

/* The option, its letter and its argument; `letters`: some option has one.  Returns the width. */
static int left_side(const struct u_option *o, bool letters, char text[TEXT_MAX])
{
	const char *arg = o->arg != NULL ? o->arg : "";

	text[0] = '\0';
	if (o->letter != 0)
		add(text, "-%c, ", o->letter);
	else if (letters)
		add(text, "    ");
	if (o->name != NULL)
		add(text, "--%s%s%s", o->name, strchr("=[", *arg) != NULL ? "" : " ", arg);
	return (int)strlen(text);
}

/* Prints the text, its lines after the first indented by `column`, and ends the last. */
static void print_text(const char *text, int column)
{
	for (; *text != '\0'; text++) {
		putchar(*text);
		if (*text == '\n')
			printf("%*s", column, "");
	}
	putchar('\n');
}

/* Prints --help to standard output. */
static void print_help(const struct u_option_tool *t)
{
	const struct u_option *o;
	char left[TEXT_MAX];
	bool letters = false;
	int width, column = 0;

	for (o = row(t, t->options); o != NULL; o = row(t, o + 1))
		letters |= o->letter != 0;
	for (o = row(t, t->options); o != NULL; o = row(t, o + 1)) {
		width = left_side(o, letters, left) + 4;
		column = width > column ? width : column;
	}
	fputs(t->head, stdout);
	for (o = row(t, t->options); o != NULL; o = row(t, o + 1)) {
		left_side(o, letters, left);
		if (o->name != NULL)
			printf("  %-*s", column - 2, left);
		print_text(o->help, o->name != NULL ? column : 0);
	}
	if (t->more != NULL)
		t->more();
	if (t->tail != NULL)
		fputs(t->tail, stdout);
}

/* ---- the command line ---- */

/* Writes the table as getopt_long() takes it: `longs` has room for ROWS_MAX + 1, and letters are added to `letters`. */
static void translate(const struct u_option_tool *t, struct option *longs, char letters[TEXT_MAX])
{
	const struct u_option *o;
	int how;

	for (o = row(t, t->options); o != NULL && o - t->options < ROWS_MAX; o = row(t, o + 1)) {
		if (o->name == NULL)
			continue;
		how = o->arg == NULL	 ? no_argument
		      : o->arg[0] == '[' ? optional_argument
					 : required_argument;
		*longs++ = (struct option){ o->name, how, NULL, LONG + (int)(o - t->options) };
		if (o->letter != 0)
			add(letters, "%c%.*s", o->letter, how, "::");
	}
	*longs = (struct option){ 0 };
}

/* Carries out an option: sets its member, or prints the help or the version.  U_OPTION_GO_ON or the exit status. */
static int take(const struct u_option_tool *t, const struct u_option *o, void *into,
		const char *arg)
{
	int rc;

	if (o->kind == U_OPTION_HELP) {
		print_help(t);
		return 0;
	}
	if (o->kind == U_OPTION_VERSION) {
		printf("%s (Viaduct) %s\n", t->name, VIADUCT_VERSION);
		return 0;
	}
	rc = u_option_set(o, into, arg);
	return rc == 0 ? U_OPTION_GO_ON : refused(t, o, arg, rc);
}

int u_option_parse(const struct u_option_tool *t, int argc, char **argv, void *into)
{
	struct option longs[ROWS_MAX + 1];
	char letters[TEXT_MAX] =
		"+:"; /* options end early; a missing argument is returned as ':' */
	__typeof__(getopt_long) *next = t->starts_program ? getopt_long_only : getopt_long;
	char *first = t->starts_program ? letters : letters + 1;
	const char *word;
	int c, rc;

	translate(t, longs, letters);
	opterr = 0;
	optind = 0; /* getopt_long() begins again, also after another command line */
	for (;;) {
		word = argv[optind != 0 ? optind : 1];
		if (t->starts_program && !is_spelled_out(t, word))
			return u_option_refuse(t, "no option %.80s; see --help", word);
		c = next(argc, argv, first, longs, NULL);
		if (c == -1)
			break;
		if (c == '?' || c == ':')
			return unknown(t, c, argv[optind - 1]);
		rc = take(t, find(t, c), into, optarg);
		if (rc != U_OPTION_GO_ON)
			return rc;
	}
	if (argc - optind > t->operands)
		return u_option_refuse(t, "no argument '%.80s' is known; see --help",
				       argv[optind + t->operands]);
	return U_OPTION_GO_ON;
}
