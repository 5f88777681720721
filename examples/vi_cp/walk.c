/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "beneath.h"
#include "walk.h"

/* One source. */
struct walk_state {
	const struct walk_options *options;
	walk_visit visit;
	void *context;
	const char *name;   /* as it was named */
	const char *as;	    /* its name at the destination; "": its contents go there */
	size_t root_length; /* of the source in the paths of fts */
	int top;
};

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

bool walk_is_contents(const char *name)
{
	const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;

	return !*last || !strcmp(last, ".") || !strcmp(last, "..");
}

/* The name of a source at its destination: its last component. */
static const char *name_of(const char *name)
{
	const char *slash = strrchr(name, '/');

	return slash ? slash + 1 : name;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Opens the file of an O_PATH descriptor once more, for reading. */
static int reopen(int top, int flags)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", top);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int walk_open(const struct walk_entry *entry)
{
	if (entry->kind == WALK_STREAM)
		return entry->top == STDIN_FILENO ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
						  : reopen(entry->top, O_RDONLY);
	if (!*entry->below)
		return reopen(entry->top, O_RDONLY | O_NONBLOCK);
	return beneath_open(entry->top, entry->below, O_RDONLY | O_NONBLOCK, 0);
}

ssize_t walk_readlink(const struct walk_entry *entry, char *target, size_t room)
{
	char path[PATH_MAX];
	const char *slash = strrchr(entry->below, '/');
	int dir = entry->top;
	ssize_t length;

	if (slash) {
		snprintf(path, sizeof(path), "%.*s", (int)(slash - entry->below), entry->below);
		dir = beneath_open(entry->top, path, O_PATH | O_DIRECTORY, 0);
		if (dir < 0)
			return dir;
	}
	length = readlinkat(dir, slash ? slash + 1 : entry->below, target, room - 1);
	if (length < 0)
		length = -errno;
	else
		target[length] = 0;
	if (slash)
		close(dir);
	return length;
}

/* ---- one source ----------------------------------------------------------------------------- */

static int bad(struct walk_state *w, const char *shown, const char *why)
{
	struct walk_entry entry = { .kind = WALK_BAD, .shown = shown, .path = shown, .why = why };

	return w->visit(w->context, &entry);
}

/* `below`: the path that fts found under the source, with a slash before it, or "". */
static int visit(struct walk_state *w, const char *below, enum walk_kind kind,
		 const struct stat *st)
{
	struct walk_entry entry = { .kind = kind, .st = st, .top = w->top };
	char path[2 * PATH_MAX], shown[2 * PATH_MAX];

	entry.below = *below == '/' ? below + 1 : below;
	if (snprintf(path, sizeof(path), "%s%s", w->as, *w->as ? below : entry.below) >= PATH_MAX)
		return bad(w, w->name, strerror(ENAMETOOLONG));
	snprintf(shown, sizeof(shown), "%s%s", w->name,
		 walk_is_contents(w->name) && w->name[strlen(w->name) - 1] == '/' ? entry.below
										  : below);
	if (!*path) /* the directory whose contents are copied */
		return 0;
	entry.path = path;
	entry.shown = shown;
	if (kind == WALK_BAD)
		entry.why = "it is no file, directory or symbolic link";
	return w->visit(w->context, &entry);
}

static int visit_found(struct walk_state *w, const FTSENT *ent)
{
	const char *below = ent->fts_path + w->root_length;

	switch (ent->fts_info) {
	case FTS_D:
		return visit(w, below, WALK_DIR, ent->fts_statp);
	case FTS_DP:
		return visit(w, below, WALK_DIR_END, ent->fts_statp);
	case FTS_F:
		return visit(w, below, WALK_FILE, ent->fts_statp);
	case FTS_SL:
	case FTS_SLNONE:
		return visit(w, below, WALK_LINK, ent->fts_statp);
	case FTS_DEFAULT:
		return visit(w, below, WALK_BAD, ent->fts_statp);
	default:
		return bad(w, *below ? below + 1 : w->name,
			   strerror(ent->fts_errno ? ent->fts_errno : ELOOP));
	}
}

static int walk_tree(struct walk_state *w)
{
	char root[32], *roots[2] = { root, NULL };
	const FTSENT *ent;
	int err = 0;
	FTS *fts;

	if (!w->options->recursive)
		return bad(w, w->name, "it is a directory; -r copies directories");
	snprintf(root, sizeof(root), "/proc/self/fd/%d", w->top);
	w->root_length = strlen(root);
	fts = fts_open(roots, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
	if (!fts)
		return -errno;
	while (!err && (errno = 0, ent = fts_read(fts)))
		err = visit_found(w, ent);
	fts_close(fts);
	return err;
}

static int walk_top(struct walk_state *w, const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return walk_tree(w);
	if (!*w->as)
		return bad(w, w->name, strerror(ENOTDIR));
	if (S_ISREG(st->st_mode) && w->top != STDIN_FILENO)
		return visit(w, "", WALK_FILE, st);
	if (S_ISLNK(st->st_mode))
		return visit(w, "", WALK_LINK, st);
	if (!w->options->input || S_ISSOCK(st->st_mode) || S_ISBLK(st->st_mode))
		return visit(w, "", WALK_BAD, st);
	return visit(w, "", WALK_STREAM, st);
}

static int open_top(const struct walk_options *o, const char *name)
{
	bool follow = o->follow_named || walk_is_contents(name);
	int flags = O_PATH | O_CLOEXEC | (follow ? 0 : O_NOFOLLOW), fd;

	if (o->root >= 0)
		return beneath_open(o->root, name, flags, follow);
	fd = open(name, flags);
	return fd < 0 ? -errno : fd;
}

static int walk_one(const struct walk_options *o, const struct walk_source *source,
		    walk_visit visit_all, void *context)
{
	struct walk_state w = { o, visit_all, context, source->name, source->as, 0, -1 };
	bool input = o->input && !strcmp(source->name, "-");
	struct stat st;
	int err;

	w.top = input ? STDIN_FILENO : open_top(o, source->name);
	if (w.top < 0)
		return bad(&w, source->name, strerror(-w.top));
	if (walk_is_contents(source->name))
		w.as = "";
	else if (!w.as && !input)
		w.as = name_of(source->name);
	if (!w.as)
		err = bad(&w, source->name, "standard input needs a name: HOST:DIR/NAME");
	else if (fstat(w.top, &st))
		err = bad(&w, source->name, strerror(errno));
	else
		err = walk_top(&w, &st);
	if (!input)
		close(w.top);
	return err;
}

int walk(const struct walk_options *options, const struct walk_source *sources, int count,
	 walk_visit visit_all, void *context)
{
	int i, err = 0;

	for (i = 0; i < count && !err; i++)
		err = walk_one(options, &sources[i], visit_all, context);
	return err;
}
