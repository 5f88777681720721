// SPDX-License-Identifier: BSD-2-Clause
/*
 * last PORT HOW - connects, sends some bytes, keeps some back by MSG_MORE, and ends at once: HOW is return, exit,
 * _exit, _Exit, quick_exit, exit_group, handler, exec, library or linger
 *
 * For sock_test.py. linger checks that the program's SO_LINGER stays as it was set, and that a
 * close with it resets the connection.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "parting.h"

static void handler(int number)
{
	(void)number;
	_exit(0);
}

static int check_linger(int fd)
{
	struct linger l = { 7, 7 };
	socklen_t n = sizeof(l);

	if (getsockopt(fd, SOL_SOCKET, SO_LINGER, &l, &n) != 0 || n != sizeof(l) || l.l_onoff != 0)
		return 3;
	l = (struct linger){ 1, 5 };
	if (setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, n) != 0)
		return 4;
	l.l_linger = 0;
	if (getsockopt(fd, SOL_SOCKET, SO_LINGER, &l, &n) != 0 || l.l_onoff != 1 || l.l_linger != 5)
		return 5;
	l.l_linger = 0;
	return setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, n) != 0 ? 6 : close(fd);
}

static int end(int fd, const char *how)
{
	if (strcmp(how, "exit") == 0)
		exit(0);
	if (strcmp(how, "_exit") == 0)
		_exit(0);
	if (strcmp(how, "_Exit") == 0)
		_Exit(0);
	if (strcmp(how, "quick_exit") == 0)
		quick_exit(0);
	if (strcmp(how, "exit_group") == 0)
		syscall(SYS_exit_group, 0);
	if (strcmp(how, "handler") == 0) {
		signal(SIGUSR1, handler);
		raise(SIGUSR1);
	}
	if (strcmp(how, "exec") == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
		execl("/bin/sh", "sh", "-c", ":", NULL);
	if (strcmp(how, "linger") == 0)
		return check_linger(fd);
	if (strcmp(how, "library") == 0) {
		parting_fd = fd;
		return 0;
	}
	return strcmp(how, "return") != 0;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	char bytes[1000];

	if (argc != 3)
		return 2;
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	a.sin_port = htons((uint16_t)atoi(argv[1]));
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
		return 2;
	memset(bytes, 'x', sizeof(bytes));
	if (send(fd, bytes, sizeof(bytes), 0) != sizeof(bytes) ||
	    send(fd, bytes, sizeof(bytes), MSG_MORE) != sizeof(bytes))
		return 2;
	return end(fd, argv[2]);
}
