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
#define FLUSH_BYTES (8u << 20)
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static int open_step(int dir, const char *name)
{
	int fd = openat(dir, name, DIR_FLAGS);

	/* Not reported as a missing directory: it may be an attempt to leave the directory. */
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

/* A directory that may be anywhere, or below `root`. */
static int open_any(int root, const char *path)
{
	int fd;

	if (root >= 0)
		return dest_open(root, path);
	fd = open(*path ? path : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Splits `path`, which has no slash at its end, and opens the directory part. */
static int open_directory_of(int root, char *path, char name[NAME_MAX + 1])
{
	char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;

	if (strlen(last) > NAME_MAX)
		return -ENAMETOOLONG;
	strcpy(name, last);
	if (!cp_path_safe(name))
		return -EPERM;
	if (slash == path && root < 0)
		return open_any(root, "/");
	*(slash ? slash : path) = 0;
	return open_any(root, path);
}

/* As rsync: the last directory of a path is made. */
static int make_in(int dir, const char *name)
{
	if (mkdirat(dir, name, 0777) && errno != EEXIST)
		return -errno;
	return open_step(dir, name);
}

int dest_resolve(int root, const char *given, bool directory, char name[NAME_MAX + 1])
{
	char path[CP_PATH_MAX + 1];
	size_t length = strlen(given);
	int dir, made;

	if (length > CP_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(path, given, length + 1);
	while (length > 1 && path[length - 1] == '/') {
		path[--length] = 0;
		directory = true;
	}
	name[0] = 0;
	dir = open_any(root, path);
	if (dir >= 0 || (dir != -ENOENT && (directory || dir != -ENOTDIR)))
		return dir;
	dir = open_directory_of(root, path, name);
	if (dir < 0 || !directory)
		return dir;
	made = make_in(dir, name);
	close(dir);
	name[0] = 0;
	return made;
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

/* A full disk is reported before the data is sent. */
static int reserve(int fd, uint64_t size)
{
	if (size > INT64_MAX)
		return -EFBIG;
	if (!size || !fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size) || errno == EOPNOTSUPP)
		return 0;
	return -errno;
}

/* May the file replace an existing one of that name? */
static int check_name(int dir, const char *name, bool no_clobber)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	return no_clobber ? -EEXIST : S_ISDIR(st.st_mode) ? -EISDIR : 0;
}

static int create(struct dest_file *file, uint64_t room, const struct dest_attrs *attrs)
{
	int err = check_name(file->dir, file->name, attrs->no_clobber);

	if (err)
		return err;
	temporary_name(file->temporary, file->name);
	file->fd = openat(file->dir, file->temporary,
			  O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (file->fd < 0)
		return -errno;
	err = flock(file->fd, LOCK_EX | LOCK_NB) ? -errno : reserve(file->fd, room);
	if (err)
		dest_file_discard(file);
	return err;
}

int dest_file_create(int base, const char *path, uint64_t room, const struct dest_attrs *attrs,
		     struct dest_file *file)
{
	int err;

	file->fd = -1;
	file->written = file->flushed = 0;
	file->dir = open_parent(base, path, file->name);
	if (file->dir < 0)
		return file->dir;
	err = create(file, room, attrs);
	if (err && file->dir >= 0)
		close(file->dir);
	return err;
}

/* Starts writing to the disk while more data arrives; dest_sync() checks for errors. */
static void begin_flush(struct dest_file *file)
{
	if (file->written - file->flushed < FLUSH_BYTES)
		return;
	(void)sync_file_range(file->fd, (off_t)file->flushed,
			      (off_t)(file->written - file->flushed), SYNC_FILE_RANGE_WRITE);
	file->flushed = file->written;
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
			file->written += (uint64_t)n;
		}
	}
	begin_flush(file);
	return 0;
}

int dest_file_hole(struct dest_file *file, uint64_t length)
{
	if (length > INT64_MAX - file->written)
		return -EFBIG;
	file->written += length;
	return lseek(file->fd, (off_t)file->written, SEEK_SET) < 0 ? -errno : 0;
}

void dest_file_discard(struct dest_file *file)
{
	if (file->fd < 0)
		return;
	unlinkat(file->dir, file->temporary, 0);
	close(file->fd);
	close(file->dir);
	file->fd = file->dir = -1;
}

/* As cp: a file keeps the mode of the one it replaces, a new one is subject to the umask. */
static mode_t mode_for(const struct dest_file *file, const struct dest_attrs *attrs)
{
	struct stat st;

	if (attrs->preserve)
		return attrs->mode;
	if (!fstatat(file->dir, file->name, &st, AT_SYMLINK_NOFOLLOW) && S_ISREG(st.st_mode))
		return st.st_mode & 01777;
	return attrs->mode & 0777 & ~attrs->umask;
}

/* Owner before mode: a change of the owner takes mode bits away. */
static int set_attrs(int fd, mode_t mode, const struct dest_attrs *attrs)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, attrs->mtime };

	if (attrs->owner && fchown(fd, attrs->uid, attrs->gid))
		return -errno;
	if (fchmod(fd, mode) || (attrs->preserve && futimens(fd, times)))
		return -errno;
	return 0;
}

/* Not all file systems can rename without replacing. */
static int give_name(int dir, const char *temporary, const char *name, bool no_clobber)
{
	if (!no_clobber)
		return renameat(dir, temporary, dir, name) ? -errno : 0;
	if (!renameat2(dir, temporary, dir, name, RENAME_NOREPLACE))
		return 0;
	if (errno != EINVAL && errno != ENOSYS)
		return -errno;
	if (linkat(dir, temporary, dir, name, 0))
		return -errno;
	return unlinkat(dir, temporary, 0) ? -errno : 0;
}

/* Truncating frees space that was reserved in vain, and makes a hole at the end. */
static int commit(struct dest_file *file, const struct dest_attrs *attrs)
{
	int err;

	if (ftruncate(file->fd, (off_t)file->written))
		return -errno;
	err = set_attrs(file->fd, mode_for(file, attrs), attrs);
	return err ? err : give_name(file->dir, file->temporary, file->name, attrs->no_clobber);
}

int dest_file_commit(struct dest_file *file, const struct dest_attrs *attrs)
{
	int err = commit(file, attrs);

	if (err) {
		dest_file_discard(file);
		return err;
	}
	close(file->fd);
	close(file->dir);
	file->fd = file->dir = -1;
	return 0;
}

int dest_sync(int base)
{
	return syncfs(base) ? -errno : 0;
}

/* ---- directories and links ----------------------------------------------------------------- */

/* The receiver can write into it; it gets its final mode when it is complete. */
int dest_dir(int base, const char *path, const struct dest_attrs *attrs)
{
	char name[NAME_MAX + 1];
	int dir = open_parent(base, path, name), fd, err = 0;
	mode_t mode = attrs->preserve ? 0 : attrs->mode & 0777;

	if (dir < 0)
		return dir;
	if (mkdirat(dir, name, 0700 | mode) && errno != EEXIST)
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

int dest_dir_finish(int base, const char *path, const struct dest_attrs *attrs)
{
	int fd = *path ? dest_open(base, path) : -EPERM, err = 0;

	if (fd < 0)
		return fd;
	if (attrs->preserve)
		err = set_attrs(fd, attrs->mode, attrs);
	close(fd);
	return err;
}

static int link_in(int dir, const char *name, const char *target, const struct dest_attrs *attrs)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT }, attrs->mtime };
	char temporary[NAME_MAX + 1];
	int err = check_name(dir, name, attrs->no_clobber);

	if (err)
		return err;
	temporary_name(temporary, name);
	if (symlinkat(target, dir, temporary))
		return -errno;
	if ((attrs->preserve && utimensat(dir, temporary, times, AT_SYMLINK_NOFOLLOW)) ||
	    (attrs->owner && fchownat(dir, temporary, attrs->uid, attrs->gid, AT_SYMLINK_NOFOLLOW)))
		err = -errno;
	if (!err)
		err = give_name(dir, temporary, name, attrs->no_clobber);
	if (err)
		unlinkat(dir, temporary, 0);
	return err;
}

int dest_link(int base, const char *path, const char *target, const struct dest_attrs *attrs)
{
	char name[NAME_MAX + 1];
	int dir = open_parent(base, path, name), err;

	if (dir < 0)
		return dir;
	err = link_in(dir, name, target, attrs);
	close(dir);
	return err;
}

/* ---- files of killed receivers ------------------------------------------------------------- */

/* Its lock is free, so its writer has ended, even if its process id is of another name space. */
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
