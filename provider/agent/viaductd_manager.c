/* SPDX-License-Identifier: BSD-2-Clause */
/* The exchange with a service manager: variables of the environment from it and a datagram to it. */
#include "viaductd_manager.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "u_option.h"
#include "viaductd_options.h"

#define FIRST_FD 3 /* the descriptors begin there, by the protocol */

/* Reads a number from a variable.  False: not set, not a number, or above `max`. */
static bool number_of(const char *name, uint64_t max, uint64_t *out)
{
	const char *text = secure_getenv(name);

	return text != NULL && u_option_number(text, false, 0, max, out) == 0;
}

int vd_manager_socket(int *sock_out)
{
	uint64_t pid, count = 0;
	/* The variables may belong to another process, from which a program in between has inherited them. */
	bool ours = number_of("LISTEN_PID", INT32_MAX, &pid) && pid == (uint64_t)getpid() &&
		    number_of("LISTEN_FDS", INT32_MAX - FIRST_FD, &count);

	unsetenv("LISTEN_PID");
	unsetenv("LISTEN_FDS");
	unsetenv("LISTEN_FDNAMES");
	if (ours && count > 1) {
		vd_complain("%llu sockets were handed over; an agent takes one, so give its unit "
			    "one Listen line",
			    (unsigned long long)count);
		return -EINVAL;
	}
	*sock_out = ours && count == 1 ? FIRST_FD : 0;
	return 0;
}

void vd_manager_ready(void)
{
	static const char word[] = "READY=1";
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const char *to = secure_getenv("NOTIFY_SOCKET");
	size_t len = to != NULL ? strlen(to) : 0;
	int sock;

	if (len == 0 || len >= sizeof(un.sun_path) || (to[0] != '/' && to[0] != '@'))
		return;
	memcpy(un.sun_path, to, len);
	if (to[0] == '@')
		un.sun_path[0] = '\0';
	sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (sock < 0)
		return;
	/* This fails only if the manager is gone, or has closed its socket. */
	sendto(sock, word, sizeof(word) - 1, MSG_NOSIGNAL, (struct sockaddr *)&un,
	       (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
	close(sock);
}
