/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dest.h"
#include "proto.h"

#define MARK ".vi_cp."
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int open_step(int dir, const char *name)
{
	int fd = openat(dir, name, DIR_FLAGS);

	/* Told apart from a missing directory: it may be an attempt to get out. */
	return fd >= 0 ? fd : errno == ELOOP ? -ENOTDIR : -errno;
}

int dest_open(int root, const char *path)
{
	char part[NAME_MAX + 1];
	int dir, next;

	if (*path && !cp_path_safe(path))
		return -EPERM;
	dir = open_step(root, ".");
	while (dir >= 0 && *path) {
		size_t length = strcspn(path, "/");

		memcpy(part, path, length);
		part[length] = 0;
		path += length + (path[length] == '/');
		next = open_step(dir, part);
		close(dir);
		dir = next;
	}
	return dir;
}

/* The directory that holds `path`, and the last component. */
static int open_parent(int base, const char *path, char name[NAME_MAX + 1])
{
	char parent[CP_PATH_MAX + 1];
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;
	pid_t pid;

	if (!cp_path_safe(path))
		return -EPERM;
	strcpy(name, slash ? slash + 1 : path);
	if (dest_is_temporary(name, &pid))
		return -EPERM;
	memcpy(parent, path, length);
	parent[length] = 0;
	return dest_open(base, parent);
}

/* `.name.vi_cp.PID`; a long name is cut so that it fits. */
static void temporary_name(char out[NAME_MAX + 1], const char *name)
{
	char tail[32];
	int room;

	snprintf(tail, sizeof(tail), MARK "%d", (int)getpid());
	room = NAME_MAX - 1 - (int)strlen(tail);
	snprintf(out, NAME_MAX + 1, ".%.*s%s", room, name, tail);
}

bool dest_is_temporary(const char *name, pid_t *pid_out)
{
	const char *mark = NULL, *at;
	char *end;
	long pid;

	if (name[0] != '.')
		return false;
	for (at = strstr(name + 1, MARK); at; at = strstr(at + 1, MARK))
		mark = at;
	if (!mark || !isdigit((unsigned char)mark[sizeof(MARK) - 1]))
		return false;
	errno = 0;
	pid = strtol(mark + sizeof(MARK) - 1, &end, 10);
	if (*end || errno || pid <= 0 || pid > INT_MAX)
		return false;
	*pid_out = (pid_t)pid;
	return true;
}

/* ---- files --------------------------------------------------------------------------------- */

/* A full disk is told before the data travels. */
static int reserve(int fd, uint64_t size)
{
	if (size > INT64_MAX)
		return -EFBIG;
	if (!size || !fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size) || errno == EOPNOTSUPP)
		return 0;
	return -errno;
}

int dest_file_create(int base, const char *path, uint64_t size, struct dest_file *file)
{
	int err;

	file->fd = -1;
	file->dir = open_parent(base, path, file->name);
	if (file->dir < 0)
		return file->dir;
	temporary_name(file->temporary, file->name);
	file->fd = openat(file->dir, file->temporary,
			  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file->fd < 0) {
		err = -errno;
		close(file->dir);
		return err;
	}
	err = flock(file->fd, LOCK_EX | LOCK_NB) ? -errno : reserve(file->fd, size);
	if (err)
		dest_file_discard(file);
	return err;
}

int dest_file_write(struct dest_file *file, const void *bytes, size_t length)
{
	const char *at = bytes;

	while (length) {
		ssize_t n = write(file->fd, at, length);

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			at += n;
			length -= (size_t)n;
		}
	}
	return 0;
}

void dest_file_discard(struct dest_file *file)
{
	if (file->fd < 0)
		return;
	unlinkat(file->dir, file->temporary, 0);
	close(file->fd);
	close(file->dir);
	file->fd = -1;
}

static int commit(struct dest_file *file, mode_t mode, const struct timespec *mtime)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, *mtime };

	off_t end = lseek(file->fd, 0, SEEK_CUR);

	/* Truncating gives back what was reserved in vain. */
	if (end < 0 || ftruncate(file->fd, end))
		return -errno;
	if (fchmod(file->fd, mode) || futimens(file->fd, times) || fsync(file->fd))
		return -errno;
	if (renameat(file->dir, file->temporary, file->dir, file->name))
		return -errno;
	return fsync(file->dir) && errno != EINVAL ? -errno : 0;
}

int dest_file_commit(struct dest_file *file, mode_t mode, const struct timespec *mtime)
{
	int err = commit(file, mode, mtime);

	if (err) {
		dest_file_discard(file);
		return err;
	}
	close(file->fd);
	close(file->dir);
	file->fd = -1;
	return 0;
}

/* ---- directories and links ----------------------------------------------------------------- */

int dest_dir(int base, const char *path)
{
	char name[NAME_MAX + 1];
	int dir = open_parent(base, path, name), fd, err = 0;

	if (dir < 0)
		return dir;
	if (mkdirat(dir, name, 0700) && errno != EEXIST)
		err = -errno;
	if (!err) {
		fd = open_step(dir, name);
		err = fd < 0 ? fd : 0;
		if (fd >= 0)
			close(fd);
	}
	close(dir);
	return err;
}

int dest_dir_finish(int base, const char *path, mode_t mode, const struct timespec *mtime)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, *mtime };
	int fd = *path ? dest_open(base, path) : -EPERM, err = 0;

	if (fd < 0)
		return fd;
	if (fchmod(fd, mode) || futimens(fd, times))
		err = -errno;
	close(fd);
	return err;
}

int dest_link(int base, const char *path, const char *target, const struct timespec *mtime)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, *mtime };
	char name[NAME_MAX + 1], temporary[NAME_MAX + 1];
	int dir = open_parent(base, path, name), err = 0;

	if (dir < 0)
		return dir;
	temporary_name(temporary, name);
	if (symlinkat(target, dir, temporary)) {
		err = -errno;
	} else if (utimensat(dir, temporary, times, AT_SYMLINK_NOFOLLOW) ||
		   renameat(dir, temporary, dir, name)) {
		err = -errno;
		unlinkat(dir, temporary, 0);
	}
	close(dir);
	return err;
}

/* ---- what killed receivers left ------------------------------------------------------------- */

/* Nobody holds its lock: its writer is gone, even where process numbers are another namespace's. */
static bool abandoned(int dir, const char *name, pid_t pid)
{
	struct stat st;
	bool free_lock;
	int fd;

	if (pid != getpid() && (!kill(pid, 0) || errno != ESRCH))
		return false;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return false;
	if (S_ISLNK(st.st_mode))
		return true;
	if (!S_ISREG(st.st_mode))
		return false;
	fd = openat(dir, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return false;
	free_lock = !flock(fd, LOCK_EX | LOCK_NB);
	close(fd);
	return free_lock;
}

static unsigned int clean_entry(int dir, const struct dirent *entry)
{
	unsigned int count = 0;
	pid_t pid;
	int fd;

	if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
		return 0;
	if (dest_is_temporary(entry->d_name, &pid))
		return abandoned(dir, entry->d_name, pid) && !unlinkat(dir, entry->d_name, 0);
	if (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
		return 0;
	fd = open_step(dir, entry->d_name);
	if (fd >= 0) {
		count = dest_clean(fd);
		close(fd);
	}
	return count;
}

unsigned int dest_clean(int root)
{
	unsigned int count = 0;
	struct dirent *entry;
	DIR *stream;
	int fd = open_step(root, ".");

	if (fd < 0)
		return 0;
	stream = fdopendir(fd);
	if (!stream) {
		close(fd);
		return 0;
	}
	while ((entry = readdir(stream)))
		count += clean_entry(dirfd(stream), entry);
	closedir(stream);
	return count;
}
