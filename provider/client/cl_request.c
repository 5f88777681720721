/* SPDX-License-Identifier: BSD-2-Clause */
/* Synchronous requests to an agent: of tools, and to find a host while a NIC is opened. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cl_priv.h"
#include "u_close.h"
#include "u_fd.h"
#include "u_poll.h"
#include "u_time.h"

/* Waits until the socket has something to read or was hung up.  0, -ETIMEDOUT or another -errno. */
static int readable(int sock, int64_t deadline)
{
	struct pollfd pfd = { .fd = sock, .events = POLLIN };
	int n = u_poll(&pfd, 1, deadline);

	if (n < 0)
		return n;
	return n == 0 ? -ETIMEDOUT : 0;
}

/*
 * Moves descriptors above the numbers of standard input, output and error.  0; or -errno when one cannot be moved, and
 * then all are closed and *n is 0.
 */
static int fds_above_std(int fds[W_CTL_FDS], unsigned int *n)
{
	unsigned int i;
	int rc = 0;

	for (i = 0; i < *n; i++) {
		fds[i] = u_fd_above_std(fds[i]);
		if (fds[i] < 0)
			rc = -errno;
	}
	while (rc != 0 && *n > 0) {
		if (fds[--*n] >= 0)
			close(fds[*n]);
	}
	return rc;
}

int cl_recv(int sock, int64_t deadline, void *buf, int fds[W_CTL_FDS], unsigned int *nfds_out)
{
	int rc, len;

	*nfds_out = 0;
	rc = readable(sock, deadline);
	if (rc != 0)
		return rc;
	len = w_ctl_recv(sock, buf, W_CTL_MAX, fds, nfds_out);
	if (len == -ECONNRESET) /* reported before the agent's last message is read */
		len = w_ctl_recv(sock, buf, W_CTL_MAX, fds, nfds_out);
	if (len == 0 || len == -ECONNRESET)
		return -EPIPE;
	if (len < 0)
		return len;
	rc = fds_above_std(fds, nfds_out);
	if (rc != 0)
		return rc;
	rc = w_ctl_check(buf, (uint32_t)len);
	if (rc < 0) {
		while (*nfds_out > 0)
			close(fds[--*nfds_out]);
	}
	return rc;
}

/*
 * Reads the agent's messages first.  Closes descriptors of memory in them here; another thread
 * closes all other descriptors, since that could block.
 */
void cl_hang_up(int sock)
{
	_Alignas(8) uint8_t buf[W_CTL_MAX];
	int fds[W_CTL_FDS], len;
	unsigned int n;

	shutdown(sock, SHUT_RDWR);
	do {
		n = 0;
		len = w_ctl_recv(sock, buf, sizeof(buf), fds, &n);
		while (n > 0)
			close(fds[--n]);
	} while (len > 0);
	u_hang_up(sock);
}

/* All requests and answers begin with the header and the token. */
struct tokened {
	struct w_ctl_hdr hdr;
	uint64_t token;
};

/* Answers a tool that asks for the counters of a NIC which is being opened, unless that would wait: they are 0. */
static void count_nothing(struct cl_agent *agent, const struct w_count *asked)
{
	struct w_counted m = { .token = asked->token, .client = asked->client };

	w_ctl_init(&m, W_COUNTED, sizeof(m));
	w_ctl_try(agent->sock, &m); /* the next message tells whether the agent is gone */
}

/*
 * Sends `msg`, whose token is agent->next_token, and waits for the message of type `answer` with that token, which
 * goes to *buf, of W_CTL_MAX bytes; answers W_COUNT, and drops any other.  Returns 0, -ETIMEDOUT, -EPIPE (the agent is
 * gone) or -errno.
 */
static int ask_once(struct cl_agent *agent, const void *msg, enum w_ctl_type answer, void *buf)
{
	const struct tokened *got = buf;
	int ms = agent->patience_ms > 0 ? agent->patience_ms : CL_TIMEOUT_MS;
	int64_t deadline = u_deadline_ms((unsigned long)ms);
	unsigned int n;
	int fds[W_CTL_FDS], rc;

	rc = w_ctl_send(agent->sock, msg, NULL, 0);
	while (rc >= 0) {
		rc = cl_recv(agent->sock, deadline, buf, fds, &n);
		while (n > 0)
			close(fds[--n]);
		if (rc == (int)answer && got->token == agent->next_token)
			return 0;
		if (rc == W_COUNT)
			count_nothing(agent, buf);
		if (rc >= 0 && u_time_left(deadline) == 0)
			rc = -ETIMEDOUT;
	}
	return rc == -ECONNRESET ? -EPIPE : rc;
}

/*
 * Makes a request of `msg`, whose header and token it fills in; returns as ask_once(), and -ETIMEDOUT at once if the
 * agent did not answer an earlier one in time.
 */
static int ask(struct cl_agent *agent, void *msg, enum w_ctl_type type, uint32_t len,
	       enum w_ctl_type answer, void *buf)
{
	struct tokened *m = msg;
	int rc = -ETIMEDOUT;

	w_ctl_init(msg, type, len);
	m->token = ++agent->next_token;
	if (!agent->silent)
		rc = ask_once(agent, msg, answer, buf);
	agent->silent = rc == -ETIMEDOUT;
	return rc;
}

/* Makes a request about a name or an address.  0, -ENOENT (the agent does not know it) or as ask(). */
static int name_request(struct cl_agent *agent, struct w_name *m, enum w_ctl_type type,
			struct w_name *out)
{
	union {
		struct w_name name;
		uint8_t bytes[W_CTL_MAX];
	} buf;
	int rc = ask(agent, m, type, sizeof(*m), W_NAMED, &buf);

	if (rc != 0)
		return rc;
	if (buf.name.status != W_SUCCESS)
		return -ENOENT;
	*out = buf.name;
	return 0;
}

int cl_name(struct cl_agent *agent, const char *name, uint32_t index, struct w_name *out)
{
	struct w_name m = { .index = index };

	if (strlen(name) >= sizeof(m.name))
		return -ENOENT;
	memcpy(m.name, name, strlen(name));
	return name_request(agent, &m, W_NAME, out);
}

int cl_addr_name(struct cl_agent *agent, const uint8_t host[W_HOST_ADDR_LEN], struct w_name *out)
{
	struct w_name m = { 0 };

	memcpy(m.host_addr, host, W_HOST_ADDR_LEN);
	return name_request(agent, &m, W_ADDR_NAME, out);
}

int cl_route(struct cl_agent *agent, const uint8_t host[W_HOST_ADDR_LEN], struct w_route *out)
{
	union {
		struct w_route route;
		uint8_t bytes[W_CTL_MAX];
	} buf;
	struct w_route m = { 0 };
	int rc;

	memcpy(m.host_addr, host, W_HOST_ADDR_LEN);
	rc = ask(agent, &m, W_ROUTE, sizeof(m), W_ROUTED, &buf);
	if (rc == 0)
		*out = buf.route;
	return rc;
}

int cl_list(struct cl_agent *agent, enum w_list_what what, uint32_t index, char text_out[400])
{
	union {
		struct w_listed listed;
		uint8_t bytes[W_CTL_MAX];
	} buf;
	struct w_list m = { .what = what, .index = index };
	int rc = ask(agent, &m, W_LIST, sizeof(m), W_LISTED, &buf);

	if (rc != 0)
		return rc;
	if (buf.listed.more == 0)
		return -ENOENT;
	memcpy(text_out, buf.listed.text, sizeof(buf.listed.text));
	return 0;
}

int cl_list_ask(struct cl_agent *agent, enum w_list_what what, uint32_t index)
{
	struct w_list m = { .token = ++agent->next_token, .what = what, .index = index };
	int rc;

	w_ctl_init(&m, W_LIST, sizeof(m));
	rc = w_ctl_send(agent->sock, &m, NULL, 0);
	return rc == -ECONNRESET ? -EPIPE : rc < 0 ? rc : 0;
}

int cl_list_hear(struct cl_agent *agent, char text_out[400])
{
	union {
		struct w_listed listed;
		uint8_t bytes[W_CTL_MAX];
	} buf;
	unsigned int n;
	int fds[W_CTL_FDS], rc;

	rc = cl_recv(agent->sock, u_now_ns(), &buf, fds, &n);
	while (n > 0)
		close(fds[--n]);
	if (rc == -ETIMEDOUT ||
	    (rc >= 0 && (rc != W_LISTED || buf.listed.token != agent->next_token)))
		return -EAGAIN;
	if (rc < 0)
		return rc;
	if (buf.listed.more == 0)
		return -ENOENT;
	memcpy(text_out, buf.listed.text, sizeof(buf.listed.text));
	return 0;
}

union counted {
	struct w_counted counted;
	uint8_t bytes[W_CTL_MAX];
};

/*
 * Waits for a message, and takes an answer to one of the requests of `n` tokens from `first` on into its element of
 * `out`.  Returns 1 if it was one, 0 if it was another message, or -errno, as -ETIMEDOUT.
 */
static int count_hear(struct cl_agent *agent, uint64_t first, uint32_t n, int64_t deadline,
		      struct w_counted *out)
{
	unsigned int nfds;
	int fds[W_CTL_FDS], rc;
	union counted m;

	rc = readable(agent->sock, deadline);
	if (rc == 0)
		rc = cl_recv(agent->sock, deadline, &m, fds, &nfds);
	else
		nfds = 0;
	while (nfds > 0)
		close(fds[--nfds]);
	if (rc != W_COUNTED || m.counted.token - first >= n)
		return rc < 0 ? rc : 0;
	out[m.counted.token - first] = m.counted;
	return 1;
}

/* Sends as many requests as the socket takes, and reads answers in between. */
int cl_count(struct cl_agent *agent, uint32_t n, struct w_counted *out)
{
	int64_t deadline = u_deadline_ms(CL_TIMEOUT_MS);
	uint64_t first = agent->next_token + 1;
	uint32_t asked = 0, heard = 0;
	struct w_count m;
	int rc = 0;

	memset(out, 0, n * sizeof(*out));
	agent->next_token += n;
	while (rc >= 0 && heard < n) {
		m = (struct w_count){ .token = first + asked, .index = asked };
		w_ctl_init(&m, W_COUNT, sizeof(m));
		rc = asked < n ? w_ctl_try(agent->sock, &m) : -EAGAIN;
		if (rc == 0) {
			asked++;
		} else if (rc == -EAGAIN) {
			rc = count_hear(agent, first, n, deadline, out);
			heard += rc > 0;
		}
	}
	if (rc == -ETIMEDOUT && asked == n)
		return 0; /* some processes are stopped */
	return rc == -ECONNRESET ? -EPIPE : rc < 0 ? rc : 0;
}

/*
 * Makes the agent do what only the owner of the fabric, or root, may ask.  0; -EACCES or, for any other refusal,
 * -EINVAL with the agent's reason in `error`; or another error, with one line, if it did not answer.
 */
int cl_admin(struct cl_agent *agent, enum w_admin_verb verb, const char *name, char *error)
{
	union {
		struct w_refused done;
		uint8_t bytes[W_CTL_MAX];
	} buf;
	struct w_admin m = { .verb = verb };
	int rc;

	if (strlen(name) >= sizeof(m.name)) {
		cl_error(error, "%.80s...: too long", name);
		return -EINVAL;
	}
	memcpy(m.name, name, strlen(name));
	rc = ask(agent, &m, W_ADMIN, sizeof(m), W_DONE, &buf);
	if (rc != 0) {
		cl_error(error, "the agent of host %u did not answer: %s", agent->welcome.host_id,
			 strerror(-rc));
		return rc;
	}
	if (buf.done.status == W_SUCCESS)
		return 0;
	cl_error(error, "%s", buf.done.text);
	return buf.done.status == W_DENIED ? -EACCES : -EINVAL;
}
