/* SPDX-License-Identifier: BSD-2-Clause */
#include "vr_explain.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vr_filter.h"

/* ---- the program ---- */

/* Finds an executable file, by PATH unless the name has a slash.  False: there is none. */
static bool find(const char *name, char *path)
{
	const char *dirs = getenv("PATH"), *end;

	if (strchr(name, '/')) {
		snprintf(path, PATH_MAX, "%s", name);
		return access(path, X_OK) == 0;
	}
	for (dirs = dirs ? dirs : "/usr/bin:/bin"; *dirs; dirs = *end ? end + 1 : end) {
		end = strchrnul(dirs, ':');
		snprintf(path, PATH_MAX, "%.*s/%s", (int)(end - dirs), dirs, name);
		if (access(path, X_OK) == 0)
			return true;
	}
	return false;
}

/*
 * Judges an ELF file of this word size in memory by whether it names a loader, and has a Go build id; VR_OTHER_ABI if
 * its headers do not fit, for whatever processor it is.
 */
static enum vr_program judge(const char *at, size_t size)
{
	const ElfW(Ehdr) *h = (const ElfW(Ehdr) *)(const void *)at;
	const ElfW(Phdr) *p = (const ElfW(Phdr) *)(const void *)(at + h->e_phoff);
	enum vr_program kind = VR_STATIC;
	size_t i;

	if (h->e_phentsize != sizeof(*p) || h->e_phoff > size ||
	    (size - h->e_phoff) / sizeof(*p) < h->e_phnum)
		return VR_OTHER_ABI;
	for (i = 0; i < h->e_phnum; i++) {
		if (p[i].p_type == PT_INTERP)
			kind = VR_HELPED;
	}
	return memmem(at, size, "\xff Go buildinf:", 14) ? VR_GO : kind;
}

/* Judges an open file; one that is no ELF file, or cannot be mapped, counts as helped. */
static enum vr_program read_kind(int fd, const struct stat *st)
{
	size_t size = (size_t)st->st_size;
	enum vr_program kind = VR_HELPED; /* a script: its interpreter is another program */
	char *at;

	if (size < sizeof(ElfW(Ehdr)))
		return kind;
	at = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (at == MAP_FAILED)
		return kind;
	if (memcmp(at, ELFMAG, SELFMAG) == 0)
		kind = at[EI_CLASS] == (__ELF_NATIVE_CLASS == 64 ? ELFCLASS64 : ELFCLASS32)
			       ? judge(at, size)
			       : VR_OTHER_ABI;
	munmap(at, size);
	return kind;
}

enum vr_program vr_program_kind(const char *name, char *path)
{
	enum vr_program kind;
	struct stat st;
	int fd;

	if (!find(name, path))
		return VR_MISSING;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0) {
		if (fd >= 0)
			close(fd);
		return VR_HELPED; /* it can be run, but not read */
	}
	kind = read_kind(fd, &st);
	close(fd);
	if (kind == VR_HELPED && (((st.st_mode & S_ISUID) && st.st_uid != geteuid()) ||
				  ((st.st_mode & S_ISGID) && st.st_gid != getegid())))
		kind = VR_SETUID;
	return kind;
}

const char *vr_program_text(enum vr_program kind, bool all)
{
	static const char *const text[][2] = {
		[VR_HELPED] = { "its TCP connections can be promoted",
				"its TCP connections can be promoted" },
		[VR_MISSING] = { "there is no such program", "there is no such program" },
		[VR_STATIC] = { "it is linked statically: the library is not loaded, and it talks "
				"TCP",
				"it is linked statically: vi_forward carries its connections" },
		[VR_GO] = { "a Go program makes system calls by itself, and talks TCP",
			    "a Go program makes system calls by itself: vi_forward carries its "
			    "connections" },
		[VR_SETUID] = { "it is set-user-ID: the library is not loaded, and it talks TCP",
				"it is set-user-ID: the library is not loaded; vi_forward carries "
				"its connections if it may look into it" },
		[VR_OTHER_ABI] = { "it is for another processor or word size: the library is not "
				   "loaded, and it talks TCP",
				   "it is for another processor or word size: the library is not "
				   "loaded, vi_forward is not asked, and it talks TCP" },
	};

	return text[kind][all];
}

/* ---- what would be done ---- */

static const char *policy_text(enum vs_policy policy)
{
	return policy == VS_NEVER ? "never" : policy == VS_AUTO ? "auto" : "eager";
}

static void explain_rules(const struct vs_rules *r)
{
	const struct vs_rule *rule;
	char text[64];
	size_t i;

	for (rule = r->rule; rule < r->rule + r->rules; rule++) {
		vs_addr_text(&rule->addr, text, sizeof(text));
		printf("rule        %s: program %s, address %s", policy_text(rule->policy),
		       rule->program[0] ? rule->program : "any", rule->bits ? text : "any");
		if (rule->bits)
			printf("/%u", vs_addr_is_v4(&rule->addr) ? rule->bits - 96 : rule->bits);
		if (rule->port_min == 0 && rule->port_max == UINT16_MAX)
			printf(", port any\n");
		else
			printf(", port %u to %u\n", rule->port_min, rule->port_max);
	}
	for (i = 0; i < r->mapped; i++) {
		vs_addr_text(&r->map[i].addr, text, sizeof(text));
		printf("map         %s/%u is %s\n", text,
		       vs_addr_is_v4(&r->map[i].addr) ? r->map[i].bits - 96 : r->map[i].bits,
		       r->map[i].host);
	}
}

static void explain_service(const struct vs_env *env)
{
	const char *affinity = getenv("VIADUCT_AFFINITY");

	if (env->pollers)
		printf("service     %u poller%s for epoll sets\n", env->pollers,
		       env->pollers > 1 ? "s" : "");
	else
		printf("service     none: the program's threads do all the work\n");
	if (affinity && affinity[0])
		printf("placement   VIADUCT_AFFINITY=\"%s\"; vi_info --placement says what that "
		       "gives here\n",
		       affinity);
}

/* What --all does, and what it cannot do. */
static void explain_all(const struct vr_options *o, const char *forward)
{
	int rc;

	if (!o->all) {
		printf("others      talk TCP: static programs, Go, system calls of their own; --all "
		       "carries them\n");
		return;
	}
	rc = vr_filter_try();
	if (rc != 0) {
		printf("others      cannot be had: the kernel takes no filter that asks (Linux 5.14, "
		       "x86-64 or arm64),\n"
		       "            or does not let vi_forward look into programs: %s\n",
		       strerror(-rc));
		return;
	}
	printf("others      %s carries what connect() and accept() make, slower than the library\n"
	       "            not had: MSG_FASTOPEN, io_uring, MPTCP, programs of 32 bits, sockets "
	       "bound to a\n"
	       "            port or device before connect(), connections made before or received from others\n",
	       forward);
}

void vr_explain(const struct vr_options *o, const struct vs_env *env, const char *library,
		const char *forward)
{
	const char *fabric = getenv("VIADUCT_FABRIC"), *host = getenv("VIADUCT_HOST");
	char path[PATH_MAX], text[64];
	enum vr_program kind;

	printf("library     %s\n", library);
	printf("fabric      %s\n", fabric && fabric[0] ? fabric : "the default one");
	printf("host        %s\n", host && host[0] ? host : "that of the machine, or 0");
	if (env->bound) {
		vs_addr_text(&env->address, text, sizeof(text));
		printf("address     %s: for 0.0.0.0, and of connections to emulated hosts\n", text);
	}
	printf("promote     %s\n", policy_text(env->promote));
	printf("loopback    %s\n", env->loopback ? "connections to 127.0.0.1 and ::1, too"
						 : "127.0.0.1 and ::1 stay with the kernel");
	printf("io_uring    %s\n", o->no_uring ? "refused: the program gets ENOSYS"
					       : "ends promotion in a process that sets it up");
	explain_all(o, forward);
	explain_service(env);
	explain_rules(&env->rules);
	if (!o->program[0])
		return;
	kind = vr_program_kind(o->program[0], path);
	printf("program     %s: %s\n", kind == VR_MISSING ? o->program[0] : path,
	       vr_program_text(kind, o->all));
}
