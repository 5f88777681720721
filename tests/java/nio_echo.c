/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * nio_echo ADDRESS - a program that knows only sockets: prints the port at which it listens, and
 * sends back the bytes of one connection after another, until it is killed.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static int echo(int fd)
{
	static char bytes[65536];
	ssize_t n, done, m;

	while ((n = read(fd, bytes, sizeof(bytes))) > 0) {
		for (done = 0; done < n; done += m) {
			m = write(fd, bytes + done, (size_t)(n - done));
			if (m < 0)
				return -1;
		}
	}
	return close(fd);
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	socklen_t n = sizeof(a);
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd;

	if (argc != 2 || inet_pton(AF_INET, argv[1], &a.sin_addr) != 1)
		return 2;
	if (listener < 0 || bind(listener, (struct sockaddr *)&a, n) != 0 ||
	    listen(listener, 8) != 0 || getsockname(listener, (struct sockaddr *)&a, &n) != 0)
		return 1;
	printf("%d\n", ntohs(a.sin_port));
	fflush(stdout);
	while ((fd = accept(listener, NULL, NULL)) >= 0) {
		if (echo(fd) != 0)
			return 1;
	}
	return 1;
}
