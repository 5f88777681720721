/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The options of a program: one table drives the parser, --help and the error lines.
 *
 * A row of the table names an option and the member of the program's structure that it sets.  The
 * member's type says which argument the option takes, and the row gives its limits.  This unit needs
 * nothing else of this project.
 */
#ifndef U_OPTION_H
#define U_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define U_OPTION_GO_ON (-1) /* differs from the exit statuses 0, 1 and 2 */

enum u_option_kind {
	U_OPTION_FLAG,	  /* bool: becomes true, or false if `off` */
	U_OPTION_NUMBER,  /* integer or enum of 4 or 8 bytes: min to max; without an argument min */
	U_OPTION_DECIMAL, /* double: least to most */
	U_OPTION_STRING,  /* const char *: of min to max characters; without an argument "" */
	U_OPTION_LIST,	  /* array of const char *: each use sets the next; the others stay NULL */
	U_OPTION_PAIR,	  /* int[2]: A,B, both from min to max; "A[,B]": without B, A sets both */
	U_OPTION_HELP,
	U_OPTION_VERSION,
};

struct u_option {
	const char *name; /* NULL: `help` is a heading */
	char letter;	  /* 0: none */
	const char *arg;  /* its name; NULL: none. "=X": shown with '='; "[=X]": may be missing */
	const char *help; /* may have several lines */

	enum u_option_kind kind; /* this and the next two by U_OPTION_AT() */
	size_t offset, bytes;
	uint64_t min, max;	  /* max 0: only the type's limit, for an int INT_MAX */
	uint64_t step;		  /* a number that divides the argument; 0: any */
	double least, most;	  /* limits of a double */
	bool size;		  /* a number in bytes, which may end with k, M, G or T */
	bool off;		  /* a bool becomes false */
	unsigned int tools;	  /* a mask of the tools that have it; 0: all */
	const char *const *words; /* a text is one of these, a number its index; NULL ends them */
	/*
	 * Sets what no member alone can hold.  0; -EINVAL: the argument is not what is expected;
	 * -ECANCELED: refused, and an error line was written; another error: it is printed in the error line.
	 */
	int (*call)(void *into, const struct u_option *o, const char *arg);
	const char *expected; /* follows "is not" in the error line; NULL: by kind and limits */
};

/* In a row: the option sets this member, whose type says which argument the option takes. */
#define U_OPTION_AT(type, field)                                                                   \
	.kind = _Generic(((type *)0)->field, bool: U_OPTION_FLAG, int: U_OPTION_NUMBER,           \
		unsigned int: U_OPTION_NUMBER, unsigned long: U_OPTION_NUMBER,                     \
		unsigned long long: U_OPTION_NUMBER, double: U_OPTION_DECIMAL,                     \
		const char *: U_OPTION_STRING, const char **: U_OPTION_LIST, int *: U_OPTION_PAIR), \
	.offset = offsetof(type, field), .bytes = sizeof(((type *)0)->field)

/* The last rows of every table. */
#define U_OPTION_LAST(help_letter, version_letter)                                                 \
	{ "help", help_letter, NULL, "print this and end", .kind = U_OPTION_HELP },                \
		{ "version", version_letter, NULL, "print the version and end",                    \
		  .kind = U_OPTION_VERSION },                                                      \
	{                                                                                          \
		0                                                                                  \
	}

struct u_option_tool {
	const char *name;
	const char *head; /* the beginning of --help, up to the options */
	const struct u_option *options;
	void (*more)(void); /* prints what stands between options and tail; NULL: nothing */
	const char *tail;   /* may be NULL */
	unsigned int mask;  /* rows whose `tools` has none of these bits are not known */
	int operands;	    /* the most arguments that are no options */
	void (*say)(const char *line); /* takes an error line; NULL: standard error, after `name` */
	/*
	 * The operands are another program's command line: options end before the first operand.  Names
	 * of options may follow a single dash, as in launchers of parallel programs, and are not shortened.
	 */
	bool starts_program;
};

/*
 * Parses the command line and sets the members, which otherwise keep what they have; texts point into argv, which may
 * be put into another order.  Returns U_OPTION_GO_ON, and then optind is the first operand; or the exit status: 0 after
 * --help or --version, 1 or 2 after an error line, and options before the wrong one are set.
 */
int u_option_parse(const struct u_option_tool *t, int argc, char **argv, void *into);

/* Writes an error line as the parser does, after the tool's name.  Returns 2, the exit status of wrong usage. */
int u_option_refuse(const struct u_option_tool *t, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Reads all of the text as a number from `min` to `max`; a size may end with k, M, G or T, of either case.  0, or
 * -EINVAL, and then nothing is written.  The other: as a number with a decimal point, whatever the locale.
 */
int u_option_number(const char *text, bool size, uint64_t min, uint64_t max, uint64_t *out);
int u_option_decimal(const char *text, double least, double most, double *out);

#endif
