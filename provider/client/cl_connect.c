/* SPDX-License-Identifier: BSD-2-Clause */
/* Finding, starting and greeting the agent of a host. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "cl_priv.h"
#include "u_cfg.h"
#include "u_fd.h"
#include "u_time.h"

#define ATTEMPTS 5 /* an agent started on demand may leave just before we greet it */

void cl_error(char *error, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(error, CL_ERROR_MAX, fmt, ap);
	va_end(ap);
}

void cl_error_fds(char *error)
{
	struct rlimit rl = { 0 };

	getrlimit(RLIMIT_NOFILE, &rl);
	cl_error(error, "no file descriptor left (limit %llu); raise it with ulimit -n",
		 (unsigned long long)rl.rlim_cur);
}

struct where {
	uid_t owner;
	char fabric[64];
	uint32_t kind;
};

static void send_timeout(int sock, int seconds)
{
	struct timeval tv = { .tv_sec = seconds };

	setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
}

/* The agent may be busy; a signal of the application is no reason to give up. */
static int connect_in_time(int sock, const struct sockaddr_un *un, socklen_t len)
{
	int64_t deadline = u_deadline_ms(CL_TIMEOUT_MS);
	int rc;

	send_timeout(sock, CL_TIMEOUT_MS / 1000);
	do {
		rc = connect(sock, (const struct sockaddr *)un, len);
	} while (rc != 0 && errno == EINTR && u_time_left(deadline) > 0);
	return rc;
}

static int dial(const struct where *w, unsigned int host, int *sock_out, char *error)
{
	struct sockaddr_un un;
	socklen_t len = w_agent_addr(&un, w->owner, w->fabric, host);
	int rc = 0, sock = u_fd_above_std(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));

	if (sock < 0) {
		rc = -errno;
		if (rc == -EMFILE)
			cl_error_fds(error);
		else
			cl_error(error, "no socket to the agent: %s", strerror(-rc));
		return rc;
	}
	if (connect_in_time(sock, &un, len) != 0) {
		rc = errno == ECONNREFUSED || errno == ENOENT ? -ENODEV : -errno;
		cl_error(error,
			 "host %u of fabric %s has no agent (%s); start the fabric with "
			 "vi_fabric up, the host with vi_fabric start, or choose another with "
			 "VIADUCT_FABRIC and VIADUCT_HOST",
			 host, w->fabric, strerror(errno));
	} else if (w_agent_cred_check(sock, w->owner) != 0) {
		rc = -EACCES;
		cl_error(error,
			 "whoever listens as host %u of fabric %s is neither uid %u nor root: "
			 "not trusted",
			 host, w->fabric, (unsigned int)w->owner);
	}
	if (rc != 0) {
		close(sock);
		return rc;
	}
	send_timeout(sock, 0);
	*sock_out = sock;
	return 0;
}

static void program_name(char out[W_NAME_MAX])
{
	snprintf(out, W_NAME_MAX, "%s", program_invocation_short_name);
}

union answer {
	struct w_ctl_hdr hdr;
	struct w_welcome welcome;
	struct w_refused refused;
	uint8_t bytes[W_CTL_MAX];
};

static int refused(const union answer *m, char *error)
{
	cl_error(error, "%s", m->refused.text);
	switch (m->refused.status) {
	case W_DENIED:
		return -EACCES;
	case W_BAD_VERSION:
		return -EPROTONOSUPPORT;
	default:
		return -ENOMEM;
	}
}

/* Returns 0, or why not; -EPIPE when the agent left meanwhile. */
static int welcomed(const struct where *w, int sock, struct cl_agent *out, char *error)
{
	union answer m;
	int fds[W_CTL_FDS], rc;
	unsigned int n;

	rc = cl_recv(sock, &m, fds, &n);
	if (rc == -EPROTONOSUPPORT)
		cl_error(error, "the agent speaks version %u, this library %u; use one release",
			 m.hdr.version, W_CTL_VERSION);
	else if (rc == -EMFILE)
		cl_error_fds(error);
	else if (rc == -ETIMEDOUT)
		cl_error(error,
			 "the agent did not answer within %d s; see whether viaductd is stopped",
			 CL_TIMEOUT_MS / 1000);
	else if (rc < 0)
		cl_error(error, "the agent did not answer: %s",
			 rc == -EPIPE ? "it hung up" : strerror(-rc));
	if (rc < 0)
		return rc;
	if (rc == W_WELCOME && n == (w->kind == W_KIND_NIC ? 1u : 0u)) {
		out->irq_fd = n == 1 ? fds[0] : -1;
		out->welcome = m.welcome;
		return 0;
	}
	while (n > 0)
		close(fds[--n]);
	if (rc == W_DONE)
		return refused(&m, error);
	if (rc == W_WELCOME && n == 0) {
		/* A message keeps none of its descriptors when there is no number for them. */
		cl_error_fds(error);
		return -EMFILE;
	}
	cl_error(error, "the agent answered nonsense (type %d)", rc);
	return -EPROTO;
}

static int greet(const struct where *w, int sock, struct cl_agent *out, char *error)
{
	struct w_hello hello = { .kind = w->kind, .pid = (uint32_t)getpid() };

	program_name(hello.program);
	w_ctl_init(&hello, W_HELLO, sizeof(hello));
	/* An agent that turned us away has hung up, but its reason can still be read. */
	w_ctl_send(sock, &hello, NULL, 0);
	out->sock = sock;
	out->owner = w->owner;
	out->next_token = 0;
	return welcomed(w, sock, out, error);
}

static int open_at(const struct where *w, unsigned int host, struct cl_agent *out, char *error)
{
	struct cl_agent agent = { .irq_fd = -1 };
	int sock = -1, rc;

	rc = dial(w, host, &sock, error);
	if (rc != 0)
		return rc;
	rc = greet(w, sock, &agent, error);
	if (rc != 0) {
		close(sock);
		return rc;
	}
	*out = agent;
	return 0;
}

int cl_open_host(uid_t owner, const char *fabric, unsigned int host, uint32_t kind,
		 struct cl_agent *out, char *error)
{
	struct where w = { .owner = owner, .kind = kind };

	snprintf(w.fabric, sizeof(w.fabric), "%s", fabric);
	out->sock = out->irq_fd = -1;
	return open_at(&w, host, out, error);
}

void cl_close(struct cl_agent *agent)
{
	if (agent->sock >= 0)
		close(agent->sock);
	if (agent->irq_fd >= 0)
		close(agent->irq_fd);
	agent->sock = agent->irq_fd = -1;
}

/* Any agent of the fabric that lives, `first` before the others. */
static int open_any(const struct where *w, unsigned int first, struct cl_agent *out, char *error)
{
	unsigned int i, host;
	int rc = -ENODEV;

	for (i = 0; i <= CL_HOSTS_MAX && (rc == -ENODEV || rc == -EPIPE); i++) {
		host = i == 0 ? first : i - 1;
		if (i == 0 || host != first)
			rc = open_at(w, host, out, error);
	}
	return rc;
}

static int start_agent(const struct where *w, char *error)
{
	const char *args[] = { "--fabric", w->fabric, "--on-demand", NULL };
	char path[4096];
	int rc;

	if (w->owner != geteuid()) {
		cl_error(error, "fabric %s of uid %u has no agent and only its owner may start one",
			 w->fabric, (unsigned int)w->owner);
		return -ENODEV;
	}
	rc = cl_agent_path(path, sizeof(path));
	if (rc == -EPERM) {
		cl_error(error,
			 "fabric %s has no agent and VIADUCT_AGENT=none forbids to start one; use "
			 "vi_fabric up",
			 w->fabric);
		return -ENODEV;
	}
	if (rc != 0) {
		cl_error(error,
			 "fabric %s has no agent and viaductd was not found (%s); set "
			 "VIADUCT_AGENT to its path",
			 w->fabric,
			 u_cfg_str(U_CFG_AGENT)[0] != '\0' ? u_cfg_str(U_CFG_AGENT)
							   : VIADUCTD_PATH);
		return -ENODEV;
	}
	return cl_spawn(path, args, error);
}

/* Any living agent, or one started for the purpose. */
static int open_or_start(const struct where *w, unsigned int first, struct cl_agent *out,
			 char *error)
{
	int i, rc = -ENODEV;

	for (i = 0; i < ATTEMPTS; i++) {
		rc = open_any(w, first, out, error);
		if (rc != -ENODEV && rc != -EPIPE)
			return rc;
		rc = start_agent(w, error);
		if (rc != 0)
			return rc;
		rc = open_at(w, 0, out, error);
		if (rc != -ENODEV && rc != -EPIPE)
			return rc;
	}
	return rc;
}

/* The host that VIADUCT_DEVICE ("NAME=HOST,...") gives a device. */
static int device_alias(const char *device, char host_out[W_NAME_MAX])
{
	const char *at = u_cfg_str(U_CFG_DEVICE);
	size_t len, name = strlen(device);

	while (at != NULL && *at != '\0') {
		len = strcspn(at, ",");
		if (len > name + 1 && at[name] == '=' && memcmp(at, device, name) == 0 &&
		    len - name - 1 < W_NAME_MAX) {
			memcpy(host_out, at + name + 1, len - name - 1);
			host_out[len - name - 1] = '\0';
			return 0;
		}
		at += len;
		at += *at == ',';
	}
	return -ENOENT;
}

static int host_of_name(struct cl_agent *agent, const char *name, uint32_t index,
			unsigned int *host_out)
{
	struct w_name found;
	int rc = cl_name(agent, name, index, &found);

	if (rc == 0)
		*host_out = (unsigned int)found.host_addr[4] << 8 | found.host_addr[5];
	return rc;
}

static int no_answer(struct cl_agent *agent, int rc, char *error)
{
	cl_error(error, "the agent of host %u did not answer: %s", agent->welcome.host_id,
		 strerror(-rc));
	return rc == -EPIPE ? -EPIPE : -EHOSTDOWN;
}

static int no_such_host(struct cl_agent *agent, const char *variable, const char *name, int rc,
			char *error)
{
	if (rc != -ENOENT)
		return no_answer(agent, rc, error);
	cl_error(error,
		 "%s names host %s; fabric %s has %u hosts and none is called so (vi_info "
		 "lists them)",
		 variable, name, agent->welcome.fabric, agent->welcome.host_count);
	return -ENODEV;
}

/* Which host `device` means, asked at `agent`. -EPIPE when it left meanwhile. */
static int resolve(struct cl_agent *agent, const char *device, unsigned int *host_out, char *error)
{
	const char *chosen = u_cfg_str(U_CFG_HOST);
	char host[W_NAME_MAX];
	int rc;

	if (device != NULL && device[0] != '\0') {
		if (device_alias(device, host) == 0) {
			rc = host_of_name(agent, host, 0, host_out);
			return rc == 0 ? 0 : no_such_host(agent, "VIADUCT_DEVICE", host, rc, error);
		}
		rc = host_of_name(agent, device, W_NAME_DEVICE, host_out);
		if (rc != -ENOENT)
			return rc == 0 ? 0 : no_answer(agent, rc, error);
		if (u_cfg_uint(U_CFG_DEFAULT_NIC) == 0) {
			cl_error(error,
				 "device %.60s is neither an alias nor a host of fabric %s and "
				 "VIADUCT_DEFAULT_NIC=no; use vi_fabric device or VIADUCT_DEVICE",
				 device, agent->welcome.fabric);
			return -ENODEV;
		}
	}
	*host_out = 0;
	if (chosen == NULL || chosen[0] == '\0')
		return 0;
	rc = host_of_name(agent, chosen, 0, host_out);
	return rc == 0 ? 0 : no_such_host(agent, "VIADUCT_HOST", chosen, rc, error);
}

/* The host to knock at first: right most of the time, so that one connection does. */
static unsigned int likely_host(void)
{
	const char *text = u_cfg_str(U_CFG_HOST);
	unsigned int host = 0;
	char end;

	if (text != NULL && sscanf(text, "%u%c", &host, &end) == 1 && host < CL_HOSTS_MAX)
		return host;
	return 0;
}

/* Why there is no agent is in the error text; callers need not tell the reasons apart. */
static int no_agent(int rc)
{
	switch (rc) {
	case 0:
	case -EMFILE:
	case -ENFILE:
	case -ENOMEM:
	case -EPROTONOSUPPORT:
		return rc;
	default:
		return -EHOSTDOWN;
	}
}

/* Any agent, asked which host `device` means; another one when it leaves before it has answered. */
static int open_resolved(const struct where *w, const char *device, struct cl_agent *out,
			 unsigned int *host_out, char *error)
{
	int i, rc = -EPIPE;

	for (i = 0; i < ATTEMPTS && rc == -EPIPE; i++) {
		rc = no_agent(open_or_start(w, likely_host(), out, error));
		if (rc != 0)
			return rc;
		rc = resolve(out, device, host_out, error);
		if (rc != 0)
			cl_close(out);
	}
	return rc == -EPIPE ? -EHOSTDOWN : rc;
}

int cl_open(const char *device, uint32_t kind, struct cl_agent *out, char *error)
{
	struct where w = { .kind = kind };
	struct cl_agent agent;
	unsigned int host = 0;
	int rc;

	out->sock = out->irq_fd = -1;
	if (u_cfg_load() != 0) {
		cl_error(error, "a VIADUCT_ variable has a bad value; the log says which");
		return -EINVAL;
	}
	if (w_fabric_parse(u_cfg_str(U_CFG_FABRIC), &w.owner, w.fabric) != 0) {
		cl_error(error, "VIADUCT_FABRIC=%.80s: NAME or OWNER:NAME expected",
			 u_cfg_str(U_CFG_FABRIC));
		return -EINVAL;
	}
	rc = open_resolved(&w, device, &agent, &host, error);
	if (rc != 0)
		return rc;
	if (host == agent.welcome.host_id) {
		*out = agent;
		return 0;
	}
	cl_close(&agent);
	return no_agent(open_at(&w, host, out, error));
}
