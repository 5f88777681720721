/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * usage: refusing ptrace|populate PROGRAM [ARGUMENT]...
 * Runs a program without a system call: ptrace(), as containers do, or the advices of madvise() that Linux before 5.14
 * does not know.  The search for leaks of the address sanitizer needs ptrace(), so it is left out without it.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define POPULATE_READ 22
#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))

static struct sock_filter no_ptrace[] = {
	LOAD(nr),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ptrace, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static struct sock_filter no_populate[] = {
	LOAD(nr),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 4),
	LOAD(args[2]),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, POPULATE_READ, 1, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, POPULATE_READ + 1, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static int leave_leaks(void)
{
	const char *options = getenv("ASAN_OPTIONS");
	char more[1024];

	snprintf(more, sizeof(more), "%s%sdetect_leaks=0", options ? options : "",
		 options ? ":" : "");
	return setenv("ASAN_OPTIONS", more, 1);
}

int main(int argc, char **argv)
{
	struct sock_fprog ptrace = { 4, no_ptrace }, populate = { 7, no_populate }, *filter;

	if (argc < 3)
		return 2;
	filter = strcmp(argv[1], "ptrace") == 0 ? &ptrace : &populate;
	if (filter == &ptrace && leave_leaks() != 0)
		return 1;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter) != 0) {
		perror("the kernel takes no filter");
		return 77;
	}
	execv(argv[2], argv + 2);
	perror(argv[2]);
	return 1;
}
