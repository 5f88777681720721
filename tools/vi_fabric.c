/* SPDX-License-Identifier: BSD-2-Clause */
/* vi_fabric: brings emulated hosts and their links up and down, shows them and changes them. */
#include <errno.h>
#include <getopt.h>
#include <json-c/json.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cl_client.h"
#include "fabric/fab_args.h"
#include "rt_load.h"
#include "tool_out.h"
#include "u_base.h"
#include "u_cfg.h"
#include "u_time.h"

#define WAIT_MS 10000
#define ARGS_MAX 480
#define HOSTS_DEFAULT 2
#define CHECK_FD 3
#define CHECK_FD_TEXT "3"
#define SCHEMA "viaduct.fabric"
#define SCHEMA_VERSION 1 /* raised when a key changes its meaning or goes */

enum { EXIT_OK = 0, EXIT_FAIL = 1, EXIT_USAGE = 2, DONE = -1 };

struct fabric {
	uid_t owner;
	char name[64];
};

/* What is passed on to every viaductd. */
struct up_args {
	const char *v[ARGS_MAX];
	unsigned int count;
	unsigned int hosts; /* 0: as many as the topology asks for, or HOSTS_DEFAULT */
	const char *topology;
	bool foreground;
};

static int U_PRINTF(1, 2) fail(const char *fmt, ...)
{
	va_list ap;

	fputs("vi_fabric: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return EXIT_FAIL;
}

static int U_PRINTF(1, 2) usage(const char *fmt, ...)
{
	va_list ap;

	fputs("vi_fabric: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputs("; try vi_fabric --help\n", stderr);
	return EXIT_USAGE;
}

static void help(void)
{
	fputs("Usage: vi_fabric COMMAND [ARGUMENT]... [OPTION]...\n"
	      "Brings a fabric of emulated hosts up and down, shows it and changes it.\n"
	      "\n"
	      "Commands:\n"
	      "  up                      start the agents of its hosts, wait for their links\n"
	      "  down                    stop them, wait until they are gone\n"
	      "  status                  hosts, ports and links, processes, what was relayed\n"
	      "  start HOST              start the agent of one host again, as the others were\n"
	      "  stop HOST               stop the agent of one host\n"
	      "  link HOST PORT up|down  plug or pull one end of a link (PORT: left, right, up,\n"
	      "                          down; to3 and the like in a graph; status lists them)\n"
	      "  alias NAME=HOST         give a host another name\n"
	      "  device DEV=HOST         let a device name open the NIC of a host\n"
	      "\n"
	      "Options:\n"
	      "  --name NAME             the fabric (VIADUCT_FABRIC)\n"
	      "  --json                  status: as one JSON object\n"
	      "  --help, --version\n"
	      "\n"
	      "Options of up:\n"
	      "  --hosts N               hosts, 1..64 (2, or as many as the topology asks for)\n"
	      "  --topology SPEC         links between them (VIADUCT_TOPOLOGY, ring):\n"
	      "                            ring, chain, mesh:WxH, torus:WxH;\n"
	      "                            graph:0-1,1-2,... with hosts by their numbers;\n"
	      "                            file:PATH with a link A-B on each line, # comments\n"
	      "  --names A,B,...         their names (host0,host1,...)\n"
	      "  --alias NAME=HOST       another name of a host; may be repeated\n"
	      "  --device-alias DEV=HOST device name that opens a host's NIC; may be repeated\n"
	      "  --group GROUP           members of the group may use the fabric too\n"
	      "  --window SIZE           memory window of a port, e.g. 64M (VIADUCT_WINDOW_BYTES)\n"
	      "  --doorbells N           doorbell bits of a port, 2..32 (VIADUCT_DOORBELLS)\n"
	      "  --scratchpads N         scratchpads of a port, 8..64 (VIADUCT_SCRATCHPADS)\n"
	      "  --port KIND             emu, with +strict, +fault and +model (VIADUCT_PORT)\n"
	      "  --relay-threads N       transfer threads of an agent that relays, 1..8\n"
	      "                          (VIADUCT_RELAY_THREADS)\n"
	      "  --relay-cpus LIST       processors they run on in turn, e.g. 2,3 or 2-5\n"
	      "                          (VIADUCT_RELAY_CPUS)\n"
	      "  --relay-wait HOW        adaptive, poll or block (VIADUCT_RELAY_WAIT)\n"
	      "  --foreground            stay, and take the fabric down at SIGINT or SIGTERM\n"
	      "\n"
	      "Exit status: 0 done, 1 failed, 2 wrong usage.\n",
	      stdout);
}

/* ---- agents ---- */

static int tool_open(const struct fabric *f, unsigned int host, struct cl_agent *out, char *error)
{
	return cl_open_host(f->owner, f->name, host, W_KIND_TOOL, out, error);
}

/* Any living agent; -ENODEV when there is none. */
static int tool_open_any(const struct fabric *f, struct cl_agent *out, char *error)
{
	unsigned int host;
	int rc = -ENODEV;

	for (host = 0; host < CL_HOSTS_MAX && rc == -ENODEV; host++)
		rc = tool_open(f, host, out, error);
	if (rc == -ENODEV)
		snprintf(error, CL_ERROR_MAX,
			 "fabric %s is not up: no agent answers; start it with "
			 "vi_fabric up --name %s",
			 f->name, f->name);
	return rc;
}

static bool readable(int fd, int64_t deadline)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int n;

	do {
		n = poll(&pfd, 1, (int)(u_time_left(deadline) / 1000000));
	} while (n < 0 && errno == EINTR);
	return n == 1;
}

/* -1: it does not tell. */
static pid_t agent_pid(const struct cl_agent *agent)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return getsockopt(agent->sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0 ? cred.pid : -1;
}

/* A descriptor that is readable when the agent's process has ended; -1 where there is none. */
static int agent_pidfd(const struct cl_agent *agent)
{
	return (int)syscall(SYS_pidfd_open, agent_pid(agent), 0);
}

/* The agent hung up and its process, if it can be watched, ended. */
static bool gone(const struct cl_agent *agent, int pidfd)
{
	int64_t deadline = u_deadline_ms(WAIT_MS);
	char byte;

	if (!readable(agent->sock, deadline) ||
	    recv(agent->sock, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0)
		return false;
	return pidfd < 0 || readable(pidfd, deadline);
}

/* Asks the agent to leave and waits until it is gone. */
static int stop_host(const struct fabric *f, unsigned int host, char *error)
{
	struct cl_agent agent;
	int pidfd, rc = tool_open(f, host, &agent, error);

	if (rc != 0)
		return rc;
	pidfd = agent_pidfd(&agent);
	rc = cl_admin(&agent, W_ADMIN_STOP, "", error);
	if (rc == 0 && !gone(&agent, pidfd)) {
		snprintf(error, CL_ERROR_MAX, "the agent of host %u did not leave within %d s",
			 host, WAIT_MS / 1000);
		rc = -ETIMEDOUT;
	}
	if (pidfd >= 0)
		close(pidfd);
	cl_close(&agent);
	return rc;
}

/* Returns how many agents were stopped, or -errno. */
static int stop_all(const struct fabric *f, char *error)
{
	unsigned int host;
	int rc, result = 0, stopped = 0;

	for (host = 0; host < CL_HOSTS_MAX; host++) {
		rc = stop_host(f, host, error);
		if (rc == 0)
			stopped++;
		else if (rc != -ENODEV && result == 0)
			result = rc;
	}
	return result != 0 ? result : stopped;
}

/* ---- up ---- */

static int agent_path(char *path, size_t size)
{
	int rc = cl_agent_path(path, size);

	if (rc == 0)
		return EXIT_OK;
	return fail(rc == -EPERM ? "VIADUCT_AGENT=none forbids to start agents"
				 : "viaductd was not found; set VIADUCT_AGENT to its path");
}

/* What the viaductd of one host is called with. */
struct agent_args {
	const char *v[ARGS_MAX + 16];
	unsigned int count;
	char id[16], hosts[16];
};

static void add_args(struct agent_args *a, const char *const *v, unsigned int count)
{
	memcpy(&a->v[a->count], v, count * sizeof(*v));
	a->count += count;
	a->v[a->count] = NULL;
}

static void host_args(struct agent_args *a, const struct fabric *f, const struct up_args *up,
		      unsigned int host)
{
	const char *const own[] = { "--fabric", f->name,  "--host-id",	a->id,
				    "--hosts",	a->hosts, "--topology", up->topology };

	snprintf(a->id, sizeof(a->id), "%u", host);
	snprintf(a->hosts, sizeof(a->hosts), "%u", up->hosts);
	add_args(a, own, U_ARRAY_SIZE(own));
	add_args(a, up->v, up->count);
}

static int spawn_host(const struct fabric *f, const struct up_args *up, unsigned int host,
		      const char *path, char *error)
{
	struct agent_args args = { .count = 0 };

	host_args(&args, f, up, host);
	return cl_spawn(path, args.v, error);
}

/* Runs viaductd with its standard error thrown away and CHECK_FD being `fd`. */
static int run_check(const char *path, const struct agent_args *args, int fd, pid_t *pid_out)
{
	posix_spawn_file_actions_t actions;
	int rc = posix_spawn_file_actions_init(&actions);

	if (rc != 0)
		return -rc;
	rc = posix_spawn_file_actions_adddup2(&actions, fd, CHECK_FD);
	if (rc == 0)
		rc = posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null",
						      O_WRONLY, 0);
	if (rc == 0)
		rc = posix_spawn(pid_out, path, &actions, NULL, (char *const *)(uintptr_t)args->v,
				 environ);
	posix_spawn_file_actions_destroy(&actions);
	return -rc;
}

/* The exit status of the check; its complaint goes to `line`. */
static int await_check(int fd, pid_t pid, char *line, size_t size)
{
	ssize_t n;
	int status = 0;

	do {
		n = read(fd, line, size - 1);
	} while (n < 0 && errno == EINTR);
	line[n > 0 ? n : 0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAIL;
}

/* Lets viaductd look at what would be passed on to it.  Returns the exit status, told. */
static int up_check(const struct fabric *f, const struct up_args *up, const char *path)
{
	static const char *const check[] = { "--ready-fd", CHECK_FD_TEXT, "--check" };
	struct agent_args args = { .count = 0 };
	char line[CL_ERROR_MAX] = "";
	int fds[2], rc, status;
	pid_t pid;

	add_args(&args, &path, 1);
	add_args(&args, check, U_ARRAY_SIZE(check));
	host_args(&args, f, up, 0);
	if (pipe2(fds, O_CLOEXEC) != 0)
		return fail("%s cannot be started: %s", path, strerror(errno));
	rc = run_check(path, &args, fds[1], &pid);
	close(fds[1]);
	status = rc == 0 ? await_check(fds[0], pid, line, sizeof(line)) : EXIT_FAIL;
	close(fds[0]);
	if (rc != 0)
		return fail("%s cannot be started: %s", path, strerror(-rc));
	if (status == EXIT_OK)
		return EXIT_OK;
	fail("%s",
	     line[0] != '\0' ? line : "viaductd ended at once; set VIADUCT_AGENT to its path");
	return status == EXIT_USAGE ? EXIT_USAGE : EXIT_FAIL;
}

/* A fabric that is coming up is taken down by these, unless they are ignored. */
static void end_signals(sigset_t *out)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa;
	size_t i;

	sigemptyset(out);
	for (i = 0; i < U_ARRAY_SIZE(signals); i++) {
		if (sigaction(signals[i], NULL, &sa) == 0 && sa.sa_handler != SIG_IGN)
			sigaddset(out, signals[i]);
	}
}

/* One of end_signals(), which are blocked, is there. */
static bool is_interrupted(void)
{
	sigset_t wanted, pending;

	end_signals(&wanted);
	sigpending(&pending);
	sigandset(&pending, &pending, &wanted);
	return !sigisemptyset(&pending);
}

/* Port `i` of the host has a link that is up; -ENOENT: there is no such port. */
static int port_wait(struct cl_agent *agent, uint32_t i, int64_t deadline)
{
	char text[400];
	int rc;

	for (;;) {
		rc = cl_list(agent, W_LIST_PORTS, i, text);
		if (rc != 0 || strstr(text, "\"link\":\"up\"") != NULL)
			return rc;
		if (is_interrupted())
			return -EINTR;
		if (u_time_left(deadline) == 0)
			return -ETIMEDOUT;
		poll(NULL, 0, 5);
	}
}

/* Every port has. */
static int links_wait(struct cl_agent *agent, int64_t deadline)
{
	uint32_t i = 0;
	int rc;

	do {
		rc = port_wait(agent, i++, deadline);
	} while (rc == 0);
	return rc == -ENOENT ? 0 : rc;
}

static int up_wait(const struct fabric *f, unsigned int hosts, char *error)
{
	int64_t deadline = u_deadline_ms(WAIT_MS);
	struct cl_agent agent;
	unsigned int host;
	int rc = 0;

	for (host = 0; host < hosts && rc == 0; host++) {
		rc = tool_open(f, host, &agent, error);
		if (rc != 0)
			return rc;
		rc = links_wait(&agent, deadline);
		cl_close(&agent);
		if (rc != 0)
			snprintf(
				error, CL_ERROR_MAX,
				"links of host %u did not come up: %s; set VIADUCT_LOG_FILE to see",
				host, strerror(-rc));
	}
	return rc;
}

static int up_start(const struct fabric *f, const struct up_args *up, const char *path, char *error)
{
	unsigned int host;
	int rc = 0;

	for (host = 0; host < up->hosts && rc == 0; host++)
		rc = is_interrupted() ? -EINTR : spawn_host(f, up, host, path, error);
	if (rc == 0)
		rc = up_wait(f, up->hosts, error);
	if (rc == 0 && is_interrupted() && !up->foreground)
		rc = -EINTR;
	if (rc == -EINTR)
		snprintf(error, CL_ERROR_MAX, "interrupted; what was started is stopped again");
	return rc;
}

static int stay(const struct fabric *f, const sigset_t *signals)
{
	char error[CL_ERROR_MAX];
	int sig;

	sigwait(signals, &sig);
	return stop_all(f, error) < 0 ? fail("%s", error) : EXIT_OK;
}

static int agents_start(const struct fabric *f, const struct up_args *up, const char *path)
{
	char error[CL_ERROR_MAX], ignored[CL_ERROR_MAX];
	sigset_t signals, starting;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	end_signals(&starting);
	sigprocmask(SIG_BLOCK, up->foreground ? &signals : &starting, NULL);
	if (up_start(f, up, path, error) != 0) {
		stop_all(f, ignored);
		return fail("%s", error);
	}
	printf("fabric %s is up: %u host%s, %.*s\n", f->name, up->hosts, up->hosts == 1 ? "" : "s",
	       (int)strcspn(up->topology, ":"), up->topology);
	tool_out_flush();
	return up->foreground ? stay(f, &signals) : EXIT_OK;
}

static int agents_bring_up(const struct fabric *f, const struct up_args *up)
{
	char error[CL_ERROR_MAX], path[4096];
	struct cl_agent agent;
	int rc;

	if (f->owner != geteuid())
		return fail("fabric %s belongs to uid %u; only its owner brings it up", f->name,
			    (unsigned int)f->owner);
	if (tool_open_any(f, &agent, error) != -ENODEV) {
		cl_close(&agent);
		return fail("fabric %s is up already; vi_fabric down --name %s takes it down",
			    f->name, f->name);
	}
	if (agent_path(path, sizeof(path)) != EXIT_OK)
		return EXIT_FAIL;
	rc = up_check(f, up, path);
	return rc == EXIT_OK ? agents_start(f, up, path) : rc;
}

/* All agents are told the same: what a file said when the fabric was brought up. */
static int cmd_up(const struct fabric *f, const struct up_args *asked)
{
	struct rt_size hosts = { asked->hosts, HOSTS_DEFAULT, CL_HOSTS_MAX };
	struct up_args up = *asked;
	struct rt_topo *topo = NULL;
	char why[CL_ERROR_MAX];
	int rc;

	if (up.topology == NULL)
		up.topology = u_cfg_str(U_CFG_TOPOLOGY);
	if (rt_load(up.topology, hosts, &topo, why, sizeof(why)) != 0) {
		if (asked->topology != NULL)
			return usage("%s", why);
		return fail("VIADUCT_TOPOLOGY: %s; correct or unset it", why);
	}
	up.hosts = rt_hosts(topo);
	up.topology = rt_topo_spec(topo);
	rc = agents_bring_up(f, &up);
	rt_topo_free(topo);
	return rc;
}

static int cmd_down(const struct fabric *f)
{
	char error[CL_ERROR_MAX];
	int n = stop_all(f, error);

	if (n < 0)
		return fail("%s", error);
	if (n == 0)
		return fail("fabric %s is not up: no agent answers", f->name);
	printf("fabric %s is down\n", f->name);
	return EXIT_OK;
}

/* ---- status ---- */

/* The items of a list as an array; takes what the agent says only if it is JSON. */
static struct json_object *list_json(struct cl_agent *agent, enum w_list_what what)
{
	struct json_object *array = json_object_new_array(), *item;
	char text[400];
	uint32_t i;

	for (i = 0; cl_list(agent, what, i, text) == 0; i++) {
		item = json_tokener_parse(text);
		if (item != NULL)
			json_object_array_add(array, item);
	}
	return array;
}

/* NULL from an agent that does not tell. */
static struct json_object *relay_json(struct cl_agent *agent)
{
	char text[400];

	return cl_list(agent, W_LIST_RELAY, 0, text) == 0 ? json_tokener_parse(text) : NULL;
}

static struct json_object *host_json(const struct fabric *f, unsigned int host, const char *name)
{
	struct json_object *o = json_object_new_object();
	struct cl_agent agent;
	char error[CL_ERROR_MAX];
	int rc = tool_open(f, host, &agent, error);

	json_object_object_add(o, "id", json_object_new_int((int)host));
	json_object_object_add(o, "name", json_object_new_string(name));
	json_object_object_add(o, "agent", json_object_new_string(rc == 0 ? "up" : "down"));
	if (rc != 0)
		return o;
	json_object_object_add(o, "ports", list_json(&agent, W_LIST_PORTS));
	json_object_object_add(o, "clients", list_json(&agent, W_LIST_CLIENTS));
	json_object_object_add(o, "relay", relay_json(&agent));
	cl_close(&agent);
	return o;
}

static struct json_object *status_json(const struct fabric *f, struct cl_agent *agent)
{
	struct json_object *root = json_object_new_object(), *hosts = json_object_new_array();
	struct w_name name;
	uint8_t addr[W_HOST_ADDR_LEN];
	unsigned int host;
	int rc;

	json_object_object_add(root, "schema", json_object_new_string(SCHEMA));
	json_object_object_add(root, "schema_version", json_object_new_int(SCHEMA_VERSION));
	json_object_object_add(root, "fabric", json_object_new_string(f->name));
	json_object_object_add(root, "owner", json_object_new_int64(f->owner));
	json_object_object_add(root, "host_count", json_object_new_int(agent->welcome.host_count));
	for (host = 0; host < agent->welcome.host_count; host++) {
		w_host_addr((uint16_t)host, addr);
		rc = cl_addr_name(agent, addr, &name);
		json_object_array_add(hosts, host_json(f, host, rc == 0 ? name.name : "?"));
	}
	json_object_object_add(root, "hosts", hosts);
	json_object_object_add(root, "aliases", list_json(agent, W_LIST_ALIASES));
	return root;
}

static const char *text_of(struct json_object *o, const char *key)
{
	struct json_object *v;

	return json_object_object_get_ex(o, key, &v) ? json_object_get_string(v) : "-";
}

static struct json_object *array_of(struct json_object *o, const char *key, size_t *count_out)
{
	struct json_object *v = NULL;

	json_object_object_get_ex(o, key, &v);
	*count_out = v != NULL ? json_object_array_length(v) : 0;
	return v;
}

/* A host with one link has no transfer threads. */
static void print_relay(struct json_object *host)
{
	struct json_object *relay = NULL;

	if (!json_object_object_get_ex(host, "relay", &relay) || relay == NULL ||
	    strcmp(text_of(relay, "threads"), "0") == 0)
		return;
	printf("  relay threads %s circuits %s slots %s bytes %s dropped %s refused %s\n",
	       text_of(relay, "threads"), text_of(relay, "circuits"), text_of(relay, "slots"),
	       text_of(relay, "bytes"), text_of(relay, "dropped"), text_of(relay, "refused"));
}

/* Returns whether all of the host is up. */
static bool print_host(struct json_object *host)
{
	struct json_object *ports, *port, *clients, *client;
	bool up = strcmp(text_of(host, "agent"), "up") == 0;
	size_t i, n;

	printf("host %s %s: agent %s\n", text_of(host, "id"), text_of(host, "name"),
	       text_of(host, "agent"));
	ports = array_of(host, "ports", &n);
	for (i = 0; i < n; i++) {
		port = json_object_array_get_idx(ports, i);
		up = up && strcmp(text_of(port, "link"), "up") == 0;
		printf("  port %-6s %-12s link %-4s peer %-3s window %s of %s bytes used\n",
		       text_of(port, "name"), text_of(port, "kind"), text_of(port, "link"),
		       text_of(port, "peer"), text_of(port, "window_used"),
		       text_of(port, "window_bytes"));
	}
	clients = array_of(host, "clients", &n);
	for (i = 0; i < n; i++) {
		client = json_object_array_get_idx(clients, i);
		printf("  process %s %s: %s connections\n", text_of(client, "pid"),
		       text_of(client, "program"), text_of(client, "conns"));
	}
	print_relay(host);
	return up;
}

static bool host_up(struct json_object *host)
{
	struct json_object *ports;
	bool up = strcmp(text_of(host, "agent"), "up") == 0;
	size_t i, n;

	ports = array_of(host, "ports", &n);
	for (i = 0; i < n; i++)
		up = up && strcmp(text_of(json_object_array_get_idx(ports, i), "link"), "up") == 0;
	return up;
}

static bool print_status(struct json_object *root, bool json)
{
	struct json_object *hosts;
	bool up = true;
	size_t i, n;

	hosts = array_of(root, "hosts", &n);
	if (json)
		puts(json_object_to_json_string_ext(root, JSON_C_TO_STRING_PRETTY));
	else
		printf("fabric %s: %zu hosts\n", text_of(root, "fabric"), n);
	for (i = 0; i < n; i++) {
		if (json)
			up = host_up(json_object_array_get_idx(hosts, i)) && up;
		else
			up = print_host(json_object_array_get_idx(hosts, i)) && up;
	}
	return up;
}

/* Exit status 0 only when every agent answers and every link is up. */
static int cmd_status(const struct fabric *f, bool json)
{
	struct cl_agent agent;
	struct json_object *root;
	char error[CL_ERROR_MAX];
	bool up;

	if (tool_open_any(f, &agent, error) != 0)
		return fail("%s", error);
	root = status_json(f, &agent);
	up = print_status(root, json);
	json_object_put(root);
	cl_close(&agent);
	return up ? EXIT_OK : EXIT_FAIL;
}

/* ---- changes ---- */

static int host_number(const struct fabric *f, const char *name, unsigned int *out, char *error)
{
	struct cl_agent agent;
	struct w_name found;
	int rc = tool_open_any(f, &agent, error);

	if (rc != 0)
		return rc;
	rc = cl_name(&agent, name, 0, &found);
	if (rc == 0)
		*out = (unsigned int)found.host_addr[4] << 8 | found.host_addr[5];
	else
		snprintf(error, CL_ERROR_MAX,
			 "fabric %s has no host %.60s; vi_fabric status lists them", f->name, name);
	cl_close(&agent);
	return rc;
}

static int cmd_link(const struct fabric *f, char **args)
{
	bool up = strcmp(args[2], "up") == 0;
	struct cl_agent agent;
	char error[CL_ERROR_MAX];
	unsigned int host;
	int rc;

	if (!up && strcmp(args[2], "down") != 0)
		return usage("link: up or down expected, found %s", args[2]);
	rc = host_number(f, args[0], &host, error);
	if (rc == 0)
		rc = tool_open(f, host, &agent, error);
	if (rc != 0)
		return fail("%s", error);
	rc = cl_admin(&agent, up ? W_ADMIN_LINK_UP : W_ADMIN_LINK_DOWN, args[1], error);
	cl_close(&agent);
	return rc == 0 ? EXIT_OK : fail("%s", error);
}

/* ---- one host ---- */

static bool has_agent(const struct fabric *f, unsigned int host)
{
	char ignored[CL_ERROR_MAX];
	struct cl_agent agent;

	if (tool_open(f, host, &agent, ignored) != 0)
		return false;
	cl_close(&agent);
	return true;
}

/* Names that hosts were given since they are up. */
static int names_copy(struct cl_agent *from, struct cl_agent *to, char *error)
{
	struct json_object *all = list_json(from, W_LIST_ALIASES), *item, *host;
	uint8_t addr[W_HOST_ADDR_LEN];
	struct w_name name;
	char pair[2 * W_NAME_MAX + 2];
	size_t i, n = json_object_array_length(all);
	bool device;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		item = json_object_array_get_idx(all, i);
		device = strcmp(text_of(item, "kind"), "device") == 0;
		if (!json_object_object_get_ex(item, "host", &host))
			continue;
		w_host_addr((uint16_t)json_object_get_int(host), addr);
		rc = cl_addr_name(from, addr, &name);
		if (rc != 0) {
			snprintf(error, CL_ERROR_MAX, "a host has no name: %s", strerror(-rc));
			break;
		}
		snprintf(pair, sizeof(pair), "%s=%s", text_of(item, "name"), name.name);
		rc = cl_admin(to, device ? W_ADMIN_DEVICE : W_ADMIN_ALIAS, pair, error);
	}
	json_object_put(all);
	return rc;
}

/* The links of the host, which it lists, to those that have agents; returns how many, or -errno. */
static int start_wait(const struct fabric *f, struct cl_agent *agent, char *error)
{
	int64_t deadline = u_deadline_ms(WAIT_MS);
	struct json_object *ports = list_json(agent, W_LIST_PORTS), *port, *peer;
	size_t i, n = json_object_array_length(ports);
	int rc = 0, links = 0;

	for (i = 1; i < n && rc == 0; i++) {
		port = json_object_array_get_idx(ports, i);
		if (!json_object_object_get_ex(port, "peer", &peer) ||
		    !has_agent(f, (unsigned int)json_object_get_int(peer)))
			continue;
		rc = port_wait(agent, (uint32_t)i, deadline);
		if (rc == 0)
			links++;
		else
			snprintf(
				error, CL_ERROR_MAX,
				"host %u is up, but its link %.15s to host %.15s is not: %s; is the "
				"other end pulled? vi_fabric link plugs it",
				agent->welcome.host_id, text_of(port, "name"),
				text_of(port, "peer"), strerror(-rc));
	}
	json_object_put(ports);
	return rc != 0 ? rc : links;
}

/* After it listens. Returns how many links it has, or -errno. */
static int start_join(const struct fabric *f, struct cl_agent *model, unsigned int host,
		      char *error)
{
	struct cl_agent agent;
	int rc = tool_open(f, host, &agent, error);

	if (rc != 0)
		return rc;
	rc = names_copy(model, &agent, error);
	if (rc == 0)
		rc = start_wait(f, &agent, error);
	cl_close(&agent);
	return rc;
}

/* Starts viaductd with what `model` was started with; returns how many links it has, or -errno. */
static int start_like(const struct fabric *f, struct cl_agent *model, unsigned int host,
		      const char *path, char *error)
{
	pid_t pid = agent_pid(model);
	struct fab_args args;
	int rc = fab_args_read(pid, host, &args);

	if (rc == 0)
		rc = fab_args_environ(pid);
	if (rc == 0)
		rc = cl_spawn(path, (const char *const *)args.v, error);
	else
		snprintf(error, CL_ERROR_MAX, "what agent %d was started with cannot be read: %s",
			 (int)pid, strerror(-rc));
	if (rc == 0)
		rc = start_join(f, model, host, error);
	fab_args_free(&args);
	return rc;
}

/* A host whose agent died or was stopped comes back as the others are. */
static int cmd_start(const struct fabric *f, const char *name)
{
	char error[CL_ERROR_MAX], path[4096];
	struct cl_agent model;
	unsigned int host;
	int rc = host_number(f, name, &host, error);

	if (rc != 0)
		return fail("%s", error);
	if (f->owner != geteuid())
		return fail("fabric %s belongs to uid %u; only its owner starts agents", f->name,
			    (unsigned int)f->owner);
	if (has_agent(f, host))
		return fail("host %s of fabric %s is up already", name, f->name);
	if (agent_path(path, sizeof(path)) != EXIT_OK)
		return EXIT_FAIL;
	rc = tool_open_any(f, &model, error);
	if (rc != 0)
		return fail("%s", error);
	rc = start_like(f, &model, host, path, error);
	cl_close(&model);
	if (rc < 0)
		return fail("%s", error);
	printf("host %s of fabric %s is up: %d link%s\n", name, f->name, rc, rc == 1 ? "" : "s");
	return EXIT_OK;
}

static int cmd_stop(const struct fabric *f, const char *name)
{
	char error[CL_ERROR_MAX];
	unsigned int host;
	int rc = host_number(f, name, &host, error);

	if (rc == 0)
		rc = stop_host(f, host, error);
	if (rc != 0)
		return fail("%s", error);
	printf("host %s of fabric %s is down\n", name, f->name);
	return EXIT_OK;
}

/* Tells every agent of the fabric. */
static int cmd_name(const struct fabric *f, enum w_admin_verb verb, const char *pair)
{
	struct cl_agent agent;
	char error[CL_ERROR_MAX];
	unsigned int host, told = 0;
	int rc;

	for (host = 0; host < CL_HOSTS_MAX; host++) {
		rc = tool_open(f, host, &agent, error);
		if (rc == -ENODEV)
			continue;
		if (rc != 0)
			return fail("%s", error);
		rc = cl_admin(&agent, verb, pair, error);
		cl_close(&agent);
		if (rc != 0)
			return fail("%s", error);
		told++;
	}
	return told > 0 ? EXIT_OK : fail("fabric %s is not up: no agent answers", f->name);
}

/* ---- command line ---- */

enum {
	OPT_NAME = 1,
	OPT_JSON,
	OPT_HOSTS,
	OPT_TOPOLOGY,
	OPT_FOREGROUND,
	OPT_PASS,
	OPT_WINDOW,
	OPT_DOORBELLS,
	OPT_SCRATCHPADS,
	OPT_HELP,
	OPT_VERSION
};

static const struct option options[] = {
	{ "name", required_argument, NULL, OPT_NAME },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "hosts", required_argument, NULL, OPT_HOSTS },
	{ "topology", required_argument, NULL, OPT_TOPOLOGY },
	{ "relay-threads", required_argument, NULL, OPT_PASS },
	{ "relay-cpus", required_argument, NULL, OPT_PASS },
	{ "relay-wait", required_argument, NULL, OPT_PASS },
	{ "foreground", no_argument, NULL, OPT_FOREGROUND },
	{ "names", required_argument, NULL, OPT_PASS },
	{ "alias", required_argument, NULL, OPT_PASS },
	{ "device-alias", required_argument, NULL, OPT_PASS },
	{ "group", required_argument, NULL, OPT_PASS },
	{ "port", required_argument, NULL, OPT_PASS },
	{ "window", required_argument, NULL, OPT_WINDOW },
	{ "doorbells", required_argument, NULL, OPT_DOORBELLS },
	{ "scratchpads", required_argument, NULL, OPT_SCRATCHPADS },
	{ "help", no_argument, NULL, OPT_HELP },
	{ "version", no_argument, NULL, OPT_VERSION },
	{ 0 },
};

struct command_line {
	struct fabric fabric;
	const char *fabric_text;
	struct up_args up;
	bool json;
	bool up_only; /* an option of `up` was given */
};

static bool in_range(const char *text, unsigned long min, unsigned long max, unsigned long *out)
{
	unsigned long v;
	char *end;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || v < min || v > max)
		return false;
	*out = v;
	return true;
}

static int pass_on(struct command_line *cl, const char *name, const char *arg)
{
	static const char *const dashed[] = { "--names",      "--alias",       "--device-alias",
					      "--group",      "--port",	       "--window",
					      "--doorbells",  "--scratchpads", "--relay-threads",
					      "--relay-cpus", "--relay-wait" };
	size_t i;

	if (cl->up.count + 2 > ARGS_MAX)
		return usage("too many options");
	for (i = 0; i < U_ARRAY_SIZE(dashed); i++) {
		if (strcmp(dashed[i] + 2, name) == 0)
			cl->up.v[cl->up.count++] = dashed[i];
	}
	cl->up.v[cl->up.count++] = arg;
	cl->up_only = true;
	return EXIT_OK;
}

static int option_take(struct command_line *cl, int c, const char *name, const char *arg)
{
	const struct u_cfg_entry *window = &u_cfg_table[U_CFG_WINDOW_BYTES];
	unsigned long v;
	uint64_t bytes;

	switch (c) {
	case OPT_NAME:
		cl->fabric_text = arg;
		return EXIT_OK;
	case OPT_JSON:
		cl->json = true;
		return EXIT_OK;
	case OPT_FOREGROUND:
		cl->up.foreground = cl->up_only = true;
		return EXIT_OK;
	case OPT_HOSTS:
		if (!in_range(arg, 1, CL_HOSTS_MAX, &v))
			return usage("--hosts: 1..%u expected, found %s", CL_HOSTS_MAX, arg);
		cl->up.hosts = (unsigned int)v;
		cl->up_only = true;
		return EXIT_OK;
	case OPT_TOPOLOGY:
		if (arg[0] == '\0')
			return usage("--topology: ring, chain, mesh:WxH, torus:WxH, graph:A-B,C-D "
				     "or file:PATH expected, found nothing");
		cl->up.topology = arg;
		cl->up_only = true;
		return EXIT_OK;
	case OPT_WINDOW:
		if (u_cfg_parse_bytes(arg, &bytes) != 0 || bytes < window->min ||
		    bytes > window->max)
			return usage("--window: a size like 64M, from %lluk to %lluG, expected, "
				     "found %s",
				     (unsigned long long)window->min >> 10,
				     (unsigned long long)window->max >> 30, arg);
		return pass_on(cl, name, arg);
	case OPT_DOORBELLS:
		if (!in_range(arg, 2, 32, &v))
			return usage("--doorbells: 2..32 expected, found %s", arg);
		return pass_on(cl, name, arg);
	case OPT_SCRATCHPADS:
		if (!in_range(arg, 8, 64, &v))
			return usage("--scratchpads: 8..64 expected, found %s", arg);
		return pass_on(cl, name, arg);
	default:
		return pass_on(cl, name, arg);
	}
}

/* What getopt_long() answered with ':' or '?'; `text` is the argument that it stopped at. */
static int option_refused(int c, const char *text)
{
	if (c == ':')
		return usage("%.80s needs an argument", text);
	if (optopt >= ' ')
		return usage("no option -%c", optopt);
	return optopt != 0 ? usage("%.80s: this option takes no argument", text)
			   : usage("no option %.80s", text);
}

/* Returns DONE when all was said already. */
static int parse(int argc, char **argv, struct command_line *cl)
{
	int c, which, rc = EXIT_OK;

	opterr = 0;
	while (rc == EXIT_OK && (c = getopt_long(argc, argv, ":", options, &which)) != -1) {
		if (c == OPT_HELP) {
			help();
			return DONE;
		}
		if (c == OPT_VERSION) {
			printf("vi_fabric (Viaduct) %s\n", VIADUCT_VERSION);
			return DONE;
		}
		if (c == ':' || c == '?')
			return option_refused(c, argv[optind - 1]);
		rc = option_take(cl, c, options[which].name, optarg);
	}
	return rc;
}

static int run(struct command_line *cl, int argc, char **argv)
{
	static const struct {
		const char *name;
		int args;
	} commands[] = { { "up", 0 },	 { "down", 0 },	  { "status", 0 }, { "link", 3 },
			 { "alias", 1 }, { "device", 1 }, { "start", 1 },  { "stop", 1 } };
	size_t i;

	for (i = 0; argc > 0 && i < U_ARRAY_SIZE(commands); i++) {
		if (strcmp(argv[0], commands[i].name) == 0)
			break;
	}
	if (argc == 0 || i == U_ARRAY_SIZE(commands))
		return usage(argc == 0 ? "a command is expected" : "no command %s", argv[0]);
	if (argc - 1 != commands[i].args)
		return usage("%s takes %d arguments, found %d", argv[0], commands[i].args,
			     argc - 1);
	if ((cl->up_only && i != 0) || (cl->json && i != 2))
		return usage("an option is not one of %s's", argv[0]);
	switch (i) {
	case 0:
		return cmd_up(&cl->fabric, &cl->up);
	case 1:
		return cmd_down(&cl->fabric);
	case 2:
		return cmd_status(&cl->fabric, cl->json);
	case 3:
		return cmd_link(&cl->fabric, argv + 1);
	case 6:
		return cmd_start(&cl->fabric, argv[1]);
	case 7:
		return cmd_stop(&cl->fabric, argv[1]);
	default:
		return cmd_name(&cl->fabric, i == 4 ? W_ADMIN_ALIAS : W_ADMIN_DEVICE, argv[1]);
	}
}

static int fabric_main(int argc, char **argv)
{
	static struct command_line cl;
	int rc = parse(argc, argv, &cl);

	if (rc != EXIT_OK)
		return rc == DONE ? EXIT_OK : rc;
	if (u_cfg_load() != 0)
		return EXIT_FAIL;
	if (cl.fabric_text == NULL)
		cl.fabric_text = u_cfg_str(U_CFG_FABRIC);
	if (w_fabric_parse(cl.fabric_text, &cl.fabric.owner, cl.fabric.name) != 0)
		return usage("fabric %s: NAME or OWNER:NAME of [A-Za-z0-9._-] expected",
			     cl.fabric_text);
	return run(&cl, argc - optind, argv + optind);
}

int main(int argc, char **argv)
{
	tool_out_begin();
	return tool_out_end("vi_fabric", fabric_main(argc, argv));
}
