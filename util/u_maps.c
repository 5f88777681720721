/* SPDX-License-Identifier: BSD-2-Clause */
#include "u_maps.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "u_base.h"
#include "u_fd.h"

#define MAPS "/proc/self/maps"

/*
 * Does the name show that the memory is anonymous?  The kernel's own mappings have other names in
 * brackets ("[vdso]", "[vvar]"), all files and devices names without brackets.
 */
static bool name_is_anonymous(const char *name)
{
	return name[0] == '\0' || strcmp(name, "[heap]") == 0 ||
	       strncmp(name, "[stack", strlen("[stack")) == 0 ||
	       strncmp(name, "[anon:", strlen("[anon:")) == 0;
}

/* ---- the list ------------------------------------------------------------------------------- */

/* Enough for all before the name of a file, and for names of other mappings. */
#define LINE_BYTES 128

/*
 * Reads the next mapping, of either list; the part of its line that exceeds LINE_BYTES is skipped.  False: the list
 * has ended, or the line is none of a mapping; then *out means nothing.
 */
static bool next_mapping(FILE *maps, struct u_mapping *out)
{
	char line[LINE_BYTES], rights[5];
	int c, name = 0;

	if (fgets(line, sizeof(line), maps) == NULL)
		return false;
	if (strchr(line, '\n') == NULL)
		while ((c = getc(maps)) != '\n' && c != EOF)
			;
	line[strcspn(line, "\n")] = '\0';
	if (sscanf(line,
		   "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n",
		   &out->from, &out->to, rights, &out->offset, &out->dev_major, &out->dev_minor,
		   &out->inode, &name) != 7)
		return false;
	out->readable = rights[0] == 'r';
	out->writable = rights[1] == 'w';
	out->executable = rights[2] == 'x';
	out->private_anonymous = rights[3] == 'p' && out->inode == 0 &&
				 name_is_anonymous(line + name);
	out->private_file = rights[3] == 'p' && out->inode != 0;
	out->stack = strncmp(line + name, "[stack", strlen("[stack")) == 0;
	return true;
}

/*
 * Checks [at, end), reading `most` lines of the list at most, also those below `at`; if `private`, mappings that are
 * not private anonymous memory are refused.  0; -EFAULT, also for a gap or if `most` was too small; -errno when /proc
 * cannot be read.  An error leaves *writable_out.
 */
static int check_list(uint64_t at, uint64_t end, uint64_t most, bool private, bool *writable_out)
{
	FILE *maps = fopen(MAPS, "re");
	bool writable = true, good = true;
	struct u_mapping m;

	if (maps == NULL)
		return -errno;
	/* The kernel lists them in the order of their addresses. */
	while (at < end && good && most-- > 0 && next_mapping(maps, &m) && m.from <= at) {
		if (m.to <= at)
			continue;
		good = m.readable && (m.private_anonymous || !private);
		writable = writable && m.writable;
		at = u_min64(m.to, end);
	}
	fclose(maps);
	if (at < end || !good)
		return -EFAULT;
	*writable_out = writable;
	return 0;
}

/* Is the sum of start and length free of overflow?  No process has memory at the end of the addresses. */
static bool addresses_ok(const void *start, uint64_t len)
{
	return len <= UINT64_MAX - (uintptr_t)start;
}

int u_maps_check(const void *start, uint64_t len, bool *writable_out)
{
	uint64_t at = (uintptr_t)start;

	if (!addresses_ok(start, len))
		return -EFAULT;
	return check_list(at, at + len, UINT64_MAX, false, writable_out);
}

int u_maps_find(const void *start, struct u_mapping *out)
{
	FILE *maps = fopen(MAPS, "re");
	bool found = false;

	if (maps == NULL)
		return -errno;
	while (!found && next_mapping(maps, out))
		found = out->to > (uintptr_t)start;
	fclose(maps);
	return found ? 0 : -ENOENT;
}

/* ---- the list with details ------------------------------------------------------------------- */

/* Enough for a line of attributes: each is a word of two letters, and 64 are possible. */
#define DETAIL_BYTES 256

/*
 * Attributes that any private memory has ("dw": an executable, before Linux 5.15), and hints: accounted, THP, merging,
 * order of access, soft-dirty; and "gu", which says that pages may be guarded, and stays when mappings with and
 * without such pages were merged.  Each other attribute is a promise that the pages of a window would not keep.
 */
static const char plain_attributes[] = " rd wr mr mw me dw ac nr sd hg nh mg sr rr gu ";

/* Is the word one of plain_attributes?  False also if it has not two letters. */
static bool attribute_is_plain(const char *word)
{
	char padded[] = { ' ', word[0], word[1], ' ', '\0' };

	return strlen(word) == 2 && strstr(plain_attributes, padded) != NULL;
}

/* Are all attributes plain?  0, or -EOPNOTSUPP, and `why` gets the reason.  Cuts `words` into words. */
static int check_attributes(char *words, char why[U_MAPS_WHY])
{
	char *rest = NULL;

	for (char *word = strtok_r(words, " \n", &rest); word != NULL;
	     word = strtok_r(NULL, " \n", &rest)) {
		if (attribute_is_plain(word))
			continue;
		if (strcmp(word, "lo") == 0)
			snprintf(why, U_MAPS_WHY, "part of it is locked; munlock() it");
		else if (strcmp(word, "ht") == 0)
			snprintf(why, U_MAPS_WHY, "part of it has huge pages (MAP_HUGETLB)");
		else
			snprintf(why, U_MAPS_WHY,
				 "part of it has the attribute '%.8s' of /proc/self/smaps", word);
		return -EOPNOTSUPP;
	}
	return 0;
}

/*
 * Reads and checks the details of a mapping, up to its attributes, which come last.  Called after next_mapping().  0,
 * or -EOPNOTSUPP, and `why` gets the reason.
 */
static int check_details(FILE *smaps, char why[U_MAPS_WHY])
{
	static const char key[] = "ProtectionKey:", attributes[] = "VmFlags:";
	char line[DETAIL_BYTES];

	while (fgets(line, sizeof(line), smaps) != NULL) {
		if (strncmp(line, key, strlen(key)) == 0 &&
		    line[strlen(key) + strspn(line + strlen(key), " 0\n")] != '\0') {
			snprintf(why, U_MAPS_WHY, "part of it has a protection key");
			return -EOPNOTSUPP;
		}
		if (strncmp(line, attributes, strlen(attributes)) == 0)
			return check_attributes(line + strlen(attributes), why);
	}
	snprintf(why, U_MAPS_WHY, "this kernel does not tell the attributes of memory");
	return -EOPNOTSUPP;
}

/* Skips the details of a mapping; false: the list has ended. */
static bool skip_details(FILE *smaps)
{
	char line[DETAIL_BYTES];

	while (fgets(line, sizeof(line), smaps) != NULL)
		if (strncmp(line, "VmFlags:", strlen("VmFlags:")) == 0)
			return true;
	return false;
}

/*
 * Is the mapping private memory that may be read and written, not executed, and no stack?  0, or -EOPNOTSUPP, and
 * `why` gets the reason.
 */
static int check_kind(const struct u_mapping *m, char why[U_MAPS_WHY])
{
	const char *kind = NULL;

	if (m->stack)
		kind = "a stack";
	else if (!m->private_anonymous && !m->private_file)
		kind = "shared or window memory, and not private";
	else if (!m->readable || !m->writable)
		kind = "not readable and writable";
	else if (m->executable)
		kind = "executable";
	if (kind == NULL)
		return 0;
	snprintf(why, U_MAPS_WHY, "part of it is %s", kind);
	return -EOPNOTSUPP;
}

int u_maps_check_plain(const void *start, uint64_t len, char why[U_MAPS_WHY])
{
	uint64_t at = (uintptr_t)start, end = at + len;
	struct u_mapping m;
	int err = 0;
	FILE *smaps;

	snprintf(why, U_MAPS_WHY, "part of it is not mapped");
	if (!addresses_ok(start, len))
		return -EFAULT;
	smaps = fopen("/proc/self/smaps", "re");
	if (smaps == NULL) {
		err = errno == ENOENT || errno == EACCES ? -EOPNOTSUPP : -errno;
		snprintf(why, U_MAPS_WHY, "/proc/self/smaps cannot be read");
		return err;
	}
	while (at < end && err == 0 && next_mapping(smaps, &m) && m.from <= at) {
		if (m.to <= at) {
			err = skip_details(smaps) ? 0 : -EOPNOTSUPP;
			continue;
		}
		err = check_kind(&m, why);
		if (err == 0)
			err = check_details(smaps, why);
		at = u_min64(m.to, end);
	}
	fclose(smaps);
	if (err == 0 && at < end)
		return -EFAULT;
	return err;
}

int u_maps_populate(void *start, uint64_t len, int advice)
{
	while (madvise(start, len, advice) != 0) {
		if (errno == EAGAIN || errno == EINTR)
			continue;
		return -errno;
	}
	return 0;
}

/* ---- one mapping at a time ------------------------------------------------------------------- */

/* PROCMAP_QUERY and its argument, which <linux/fs.h> has since Linux 6.11 only. */
struct query {
	uint64_t size, flags, address;
	uint64_t from, to, rights, page_size, offset, inode;
	uint32_t dev_major, dev_minor, name_bytes, build_id_bytes;
	uint64_t name, build_id;
};
#define QUERY _IOWR('f', 17, struct query)
_Static_assert(sizeof(struct query) == 104, "the kernel's");

#define QUERY_READABLE 1u
#define QUERY_WRITABLE 2u
#define QUERY_SHARED 8u

/* "[anon:", 80 bytes, "]": a longer name is one of a file, and the kernel refuses the query. */
#define NAME_BYTES 96

/*
 * Asks the kernel for the mapping at `at`, and sets the fields up to private_anonymous.  0, or the -errno of the
 * query: -ENOENT if there is none, -ENAMETOOLONG if it is of a file with a long name.
 */
static int query_mapping(int fd, uint64_t at, struct u_mapping *out)
{
	char name[NAME_BYTES] = "";
	struct query q = {
		.size = sizeof(q),
		.address = at,
		.name_bytes = sizeof(name),
		.name = (uintptr_t)name,
	};

	if (ioctl(fd, QUERY, &q) != 0)
		return -errno;
	out->from = q.from;
	out->to = q.to;
	out->readable = (q.rights & QUERY_READABLE) != 0;
	out->writable = (q.rights & QUERY_WRITABLE) != 0;
	out->private_anonymous = (q.rights & QUERY_SHARED) == 0 && q.inode == 0 &&
				 name_is_anonymous(name);
	return 0;
}

#define NOT_OPEN (-1)
#define NO_QUERIES (-2) /* the kernel has none, or a filter of system calls refuses them */

/* /proc/self/maps of this process.  Writers: any thread, once; u_maps_forked(). */
static _Atomic int query_fd = NOT_OPEN;

/*
 * The descriptor for query_mapping(), which the first call opens and which stays open; or NO_QUERIES; or NOT_OPEN: it
 * cannot be opened now, but perhaps by a later call.
 */
static int open_queries(void)
{
	int known = atomic_load_explicit(&query_fd, memory_order_relaxed), fd, result;
	struct u_mapping m;

	if (u_likely(known != NOT_OPEN))
		return known;
	fd = u_fd_above_std(open(MAPS, O_RDONLY | O_CLOEXEC));
	if (fd < 0)
		return NOT_OPEN;
	result = query_mapping(fd, (uintptr_t)&m, &m);
	/* -ENAMETOOLONG: this stack lies in a file; but the kernel has queries. */
	if (result == 0 || result == -ENAMETOOLONG)
		result = fd;
	else
		result = result == -ENOMEM ? NOT_OPEN : NO_QUERIES;
	if (atomic_compare_exchange_strong_explicit(&query_fd, &known, result, memory_order_relaxed,
						    memory_order_relaxed))
		known = result;
	if (known != fd)
		close(fd);
	return known;
}

void u_maps_forked(void)
{
	int fd = atomic_exchange_explicit(&query_fd, NOT_OPEN, memory_order_relaxed), err;
	struct u_mapping m;

	if (fd < 0)
		return;
	/* If the program has closed the number, another file may have it now, which must stay open. */
	err = query_mapping(fd, (uintptr_t)&m, &m);
	if (err == 0 || err == -ENAMETOOLONG || err == -ESRCH) /* -ESRCH: the parent has ended */
		close(fd);
}

/* Does the error show that the program has closed the descriptor by its number? */
static bool not_ours(int err)
{
	return err == -EBADF || err == -ENOTTY || err == -EINVAL;
}

/* With more mappings than this the caller touches the pages instead, which is then as fast as the queries. */
#define QUERIES_MAX 32u

/*
 * Checks [at, end) by queries.  0; -EFAULT for a gap, a part that is not readable private anonymous memory, or more
 * than QUERIES_MAX mappings; or an error that not_ours() knows.  An error leaves *writable_out.
 */
static int check_queries(int fd, uint64_t at, uint64_t end, bool *writable_out)
{
	bool writable = true;
	struct u_mapping m;

	for (uint32_t i = 0; at < end; i++) {
		int err = i == QUERIES_MAX ? -EFAULT : query_mapping(fd, at, &m);

		if (u_unlikely(not_ours(err)))
			return err;
		if (err != 0 || !m.readable || !m.private_anonymous || m.from > at || m.to <= at)
			return -EFAULT;
		writable = writable && m.writable;
		at = u_min64(m.to, end);
	}
	*writable_out = writable;
	return 0;
}

/*
 * A line of the list takes 0.5 us, in which the kernel populates 3 to 50 pages that are present.  So
 * with this limit the list never costs more than populating the pages.
 */
#define BYTES_PER_LINE (256u << 10)
#define LINES_MIN 32u

int u_maps_check_private(const void *start, uint64_t len, bool *writable_out)
{
	uint64_t at = (uintptr_t)start, lines = len / BYTES_PER_LINE;
	int fd, err;

	if (!addresses_ok(start, len))
		return -EFAULT;
	/* A second try if the program has closed the descriptor. */
	for (int tries = 0; tries < 2 && (fd = open_queries()) >= 0; tries++) {
		err = check_queries(fd, at, at + len, writable_out);
		if (u_likely(!not_ours(err)))
			return err;
		atomic_compare_exchange_strong_explicit(&query_fd, &fd, NOT_OPEN,
							memory_order_relaxed, memory_order_relaxed);
	}
	if (lines < LINES_MIN || check_list(at, at + len, lines, true, writable_out) != 0)
		return -EFAULT;
	return 0;
}
