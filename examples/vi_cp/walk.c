/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "walk.h"

struct walk_state {
	walk_visit visit;
	void *context;
	int report;
	unsigned int *unread;
	const char *name;   /* what the source is called at the destination */
	size_t root_length; /* of the source in the paths of fts */
};

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static void unreadable(struct walk_state *w, const char *path, int err)
{
	(*w->unread)++;
	if (w->report)
		fprintf(stderr, "vi_cp: %s: %s; not copied\n", path, strerror(err));
}

static int visit_entry(struct walk_state *w, const FTSENT *ent, enum walk_kind kind)
{
	struct walk_entry entry = { .kind = kind,
				    .source = ent->fts_accpath,
				    .st = ent->fts_statp };
	char path[2 * PATH_MAX];
	int length;

	length = snprintf(path, sizeof(path), "%s%s", w->name, ent->fts_path + w->root_length);
	if (length < 0 || (size_t)length >= sizeof(path)) {
		unreadable(w, ent->fts_path, ENAMETOOLONG);
		return 0;
	}
	entry.path = path;
	return w->visit(w->context, &entry);
}

static int visit_any(struct walk_state *w, const FTSENT *ent)
{
	switch (ent->fts_info) {
	case FTS_D:
		return visit_entry(w, ent, WALK_DIR);
	case FTS_DP:
		return visit_entry(w, ent, WALK_DIR_END);
	case FTS_F:
		return visit_entry(w, ent, WALK_FILE);
	case FTS_SL:
	case FTS_SLNONE:
		return visit_entry(w, ent, WALK_LINK);
	case FTS_DEFAULT:
		return visit_entry(w, ent, WALK_SPECIAL);
	default:
		unreadable(w, ent->fts_path, ent->fts_errno ? ent->fts_errno : ELOOP);
		return 0;
	}
}

/* The last component, or that of what "." and ".." stand for.  NULL for the root directory. */
static const char *name_of(char *source, char real[PATH_MAX])
{
	size_t length = strlen(source);
	const char *base;

	while (length > 1 && source[length - 1] == '/')
		source[--length] = 0;
	base = strrchr(source, '/') ? strrchr(source, '/') + 1 : source;
	if (!strcmp(base, ".") || !strcmp(base, "..")) {
		if (!realpath(source, real))
			return NULL;
		base = strrchr(real, '/') + 1;
	}
	return *base ? base : NULL;
}

static int walk_tree(struct walk_state *w, char *source)
{
	char *roots[2] = { source, NULL };
	char real[PATH_MAX];
	const FTSENT *ent;
	int err = 0;
	FTS *fts;

	w->name = name_of(source, real);
	if (!w->name) {
		unreadable(w, source, *source ? EISDIR : ENOENT);
		return 0;
	}
	w->root_length = strlen(source);
	fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
	if (!fts)
		return -errno;
	while (!err && (errno = 0, ent = fts_read(fts)))
		err = visit_any(w, ent);
	fts_close(fts);
	return err;
}

int walk(char *const *sources, int count, walk_visit visit, void *context, int report,
	 unsigned int *unread)
{
	struct walk_state w = { visit, context, report, unread, NULL, 0 };
	int i, err = 0;

	for (i = 0; i < count && !err; i++) {
		char *source = strdup(sources[i]);

		err = source ? walk_tree(&w, source) : -ENOMEM;
		free(source);
	}
	return err;
}
