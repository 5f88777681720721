/* SPDX-License-Identifier: BSD-2-Clause */
/* vi_fabric: starts and stops emulated hosts and their links, shows them and changes them. */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fabric/fab.h"
#include "fabric/fab_args.h"
#include "rt_load.h"
#include "tool_out.h"
#include "u_base.h"
#include "u_cfg.h"
#include "u_fd.h"
#include "u_time.h"

#define ARGS_MAX 480
#define HOSTS_DEFAULT 2
#define TAKE_OVERS 5 /* of agents that programs started */
#define CHECK_FD 3
#define CHECK_FD_TEXT "3"

enum { EXIT_OK = 0, EXIT_FAIL = 1, EXIT_USAGE = 2, DONE = -1 };

/* The options that every viaductd gets. */
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
	      "  down                    stop the agents, wait until they have ended\n"
	      "  status                  hosts, ports and links, processes, relayed packets\n"
	      "  start HOST              start the agent of one host again, like the others\n"
	      "  stop HOST               stop the agent of one host\n"
	      "  link HOST PORT up|down  take one end of a link up or down (PORT: left, right, up,\n"
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

/* Any agent that answers; -ENODEV when there is none. */
static int tool_open_any(const struct fabric *f, struct cl_agent *out, char *error)
{
	int rc = cl_open_some(f->owner, f->name, out, error);

	if (rc != -ENODEV && rc != -EPIPE)
		return rc;
	fab_not_up(f, error);
	return -ENODEV;
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

/* The arguments of one host's viaductd. */
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

/* Executes viaductd without standard error, and with `fd` as CHECK_FD. */
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

/* The exit status of the check; its error line goes to `line`. */
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

/* Lets viaductd check the options it will get.  Returns its exit status; its error is printed. */
static int up_check(const struct fabric *f, const struct up_args *up, const char *path)
{
	static const char *const check[] = { "--ready-fd", CHECK_FD_TEXT, "--check" };
	struct agent_args args = { .count = 0 };
	char line[CL_ERROR_MAX] = "", text[U_FD_ERROR];
	int fds[2], rc, status;
	pid_t pid;

	add_args(&args, &path, 1);
	add_args(&args, check, U_ARRAY_SIZE(check));
	host_args(&args, f, up, 0);
	if (pipe2(fds, O_CLOEXEC) != 0)
		return fail("%s cannot be started: %s", path, u_fd_error(errno, text));
	rc = run_check(path, &args, fds[1], &pid);
	close(fds[1]);
	status = rc == 0 ? await_check(fds[0], pid, line, sizeof(line)) : EXIT_FAIL;
	close(fds[0]);
	if (rc != 0)
		return fail("%s cannot be started: %s", path, u_fd_error(-rc, text));
	if (status == EXIT_OK)
		return EXIT_OK;
	if (line[0] == '\0' && u_fd_scarce(CL_FDS_LOADED))
		return fail("viaductd does not start: %s", u_fd_error(EMFILE, text));
	fail("%s",
	     line[0] != '\0' ? line : "viaductd ended at once; set VIADUCT_AGENT to its path");
	return status == EXIT_USAGE ? EXIT_USAGE : EXIT_FAIL;
}

/* A fabric that is starting is stopped by these signals, unless they are ignored. */
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

/* Is one of end_signals(), which are blocked, pending? */
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
	int64_t deadline = u_deadline_ms(FAB_WAIT_MS);
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

/* Ends an agent that a program started for itself, if no program has a NIC there. */
static int take_over(const struct fabric *f, char *error)
{
	struct cl_agent agent;
	int i, rc = 0;

	for (i = 0; i < TAKE_OVERS && (rc == 0 || rc == -EPIPE); i++) {
		rc = tool_open_any(f, &agent, error);
		if (rc != 0)
			return rc == -ENODEV ? 0 : rc;
		rc = fab_leave(&agent, error);
		cl_close(&agent);
	}
	if (rc == 0)
		snprintf(error, CL_ERROR_MAX,
			 "programs keep starting agents of fabric %s; set VIADUCT_AGENT=none "
			 "for them",
			 f->name);
	return rc != 0 ? rc : -EBUSY;
}

/* A program may start an agent between the check and this. */
static int start_host(const struct fabric *f, const struct up_args *up, unsigned int host,
		      const char *path, char *error)
{
	int i, rc = 1;

	for (i = 0; i < TAKE_OVERS && rc == 1; i++) {
		rc = spawn_host(f, up, host, path, error);
		if (rc != 1)
			return rc;
		snprintf(error, CL_ERROR_MAX,
			 "host %u of fabric %s has got another agent meanwhile", host, f->name);
		if (host == 0 && take_over(f, error) == 0)
			continue;
		rc = -EBUSY;
	}
	return rc == 1 ? -EBUSY : rc;
}

/* `*started_out`: hosts that have to be stopped if it fails. */
static int up_start(const struct fabric *f, const struct up_args *up, const char *path,
		    unsigned int *started_out, char *error)
{
	unsigned int *host = started_out;
	int rc = 0;

	for (*host = 0; *host < up->hosts && rc == 0; *host += rc == 0)
		rc = is_interrupted() ? -EINTR : start_host(f, up, *host, path, error);
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
	return fab_stop_hosts(f, CL_HOSTS_MAX, error) < 0 ? fail("%s", error) : EXIT_OK;
}

static int agents_start(const struct fabric *f, const struct up_args *up, const char *path)
{
	char error[CL_ERROR_MAX], ignored[CL_ERROR_MAX];
	sigset_t signals, starting;
	unsigned int started;

	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	end_signals(&starting);
	sigprocmask(SIG_BLOCK, up->foreground ? &signals : &starting, NULL);
	if (up_start(f, up, path, &started, error) != 0) {
		fab_stop_hosts(f, started, ignored);
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
	int rc;

	if (f->owner != geteuid())
		return fail("fabric %s belongs to uid %u; only its owner brings it up", f->name,
			    (unsigned int)f->owner);
	if (agent_path(path, sizeof(path)) != EXIT_OK)
		return EXIT_FAIL;
	rc = up_check(f, up, path);
	if (rc == EXIT_OK && take_over(f, error) != 0)
		return fail("%s", error);
	return rc == EXIT_OK ? agents_start(f, up, path) : rc;
}

/* All agents get the text that a file had when the fabric was started. */
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
	int n = fab_stop_hosts(f, CL_HOSTS_MAX, error);

	if (n == 0)
		fab_not_up(f, error);
	if (n <= 0)
		return fail("%s", error);
	printf("fabric %s is down\n", f->name);
	return EXIT_OK;
}

/* ---- status ---- */

/* Exit status 0 only when every agent answers and every link is up. */
static int cmd_status(const struct fabric *f, bool json)
{
	char error[CL_ERROR_MAX];
	struct json_object *status = fab_status(f, error);
	bool up;

	if (status == NULL)
		return fail("%s", error);
	up = fab_status_print(status, json);
	json_object_put(status);
	return up ? EXIT_OK : EXIT_FAIL;
}

/* ---- changes ---- */

/* Without an agent that answers and knows the names: the number of a host, or its default name. */
static int host_by_itself(const char *name, unsigned int *out)
{
	unsigned int host;
	char end;

	if (sscanf(name, "host%u%c", &host, &end) != 1 && sscanf(name, "%u%c", &host, &end) != 1)
		return -ENOENT;
	if (host >= CL_HOSTS_MAX)
		return -ENOENT;
	*out = host;
	return 0;
}

static int host_number(const struct fabric *f, const char *name, unsigned int *out, char *error)
{
	struct cl_agent agent;
	struct w_name found;
	int rc = tool_open_any(f, &agent, error);

	if (rc == -ETIMEDOUT && host_by_itself(name, out) == 0)
		return 0;
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

/* The answer of the agent of each host. */
struct survey {
	int rc[CL_HOSTS_MAX];
	char error[CL_HOSTS_MAX][CL_ERROR_MAX];
};

static int survey_take(void *arg, struct cl_greeted *g)
{
	struct survey *s = arg;

	s->rc[g->host] = g->rc == -EPIPE ? -ENODEV : g->rc;
	memcpy(s->error[g->host], g->error, sizeof(g->error));
	return 0;
}

/* Names that hosts were given after the start. */
static int names_copy(struct cl_agent *from, struct cl_agent *to, char *error)
{
	struct json_object *all = fab_list(from, W_LIST_ALIASES), *item, *host;
	uint8_t addr[W_HOST_ADDR_LEN];
	struct w_name name;
	char pair[2 * W_NAME_MAX + 2];
	size_t i, n = json_object_array_length(all);
	bool device;
	int rc = 0;

	for (i = 0; i < n && rc == 0; i++) {
		item = json_object_array_get_idx(all, i);
		device = strcmp(fab_text(item, "kind"), "device") == 0;
		if (!json_object_object_get_ex(item, "host", &host))
			continue;
		w_host_addr((uint16_t)json_object_get_int(host), addr);
		rc = cl_addr_name(from, addr, &name);
		if (rc != 0) {
			snprintf(error, CL_ERROR_MAX, "a host has no name: %s", strerror(-rc));
			break;
		}
		snprintf(pair, sizeof(pair), "%s=%s", fab_text(item, "name"), name.name);
		rc = cl_admin(to, device ? W_ADMIN_DEVICE : W_ADMIN_ALIAS, pair, error);
	}
	json_object_put(all);
	return rc;
}

/* Lists the links of the host to hosts whose agents answer; returns how many, or -errno. */
static int start_wait(const struct survey *s, struct cl_agent *agent, char *error)
{
	int64_t deadline = u_deadline_ms(FAB_WAIT_MS);
	struct json_object *ports = fab_list(agent, W_LIST_PORTS), *port, *peer;
	size_t i, n = json_object_array_length(ports);
	int rc = 0, links = 0;
	unsigned int host;

	for (i = 1; i < n && rc == 0; i++) {
		port = json_object_array_get_idx(ports, i);
		if (!json_object_object_get_ex(port, "peer", &peer))
			continue;
		host = (unsigned int)json_object_get_int(peer);
		if (host >= CL_HOSTS_MAX || s->rc[host] != 0)
			continue;
		rc = port_wait(agent, (uint32_t)i, deadline);
		if (rc == 0)
			links++;
		else
			snprintf(
				error, CL_ERROR_MAX,
				"host %u is up, but its link %.15s to host %.15s is not: %s; is the "
				"other end pulled? vi_fabric link plugs it",
				agent->welcome.host_id, fab_text(port, "name"),
				fab_text(port, "peer"), strerror(-rc));
	}
	json_object_put(ports);
	return rc != 0 ? rc : links;
}

/* Call it when the agent listens. Returns the number of its links, or -errno. */
static int start_join(const struct fabric *f, const struct survey *s, struct cl_agent *model,
		      unsigned int host, char *error)
{
	struct cl_agent agent;
	int rc = tool_open(f, host, &agent, error);

	if (rc != 0)
		return rc;
	rc = names_copy(model, &agent, error);
	if (rc == 0)
		rc = start_wait(s, &agent, error);
	cl_close(&agent);
	return rc;
}

/* Starts viaductd with the arguments of `model`; returns the number of its links, or -errno. */
static int start_like(const struct fabric *f, const struct survey *s, struct cl_agent *model,
		      unsigned int host, const char *path, char *error)
{
	pid_t pid = cl_agent_pid(model);
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
		rc = start_join(f, s, model, host, error);
	fab_args_free(&args);
	return rc;
}

/* With the arguments of any agent that answers and neither leaves nor stops meanwhile. */
static int start_as_others(const struct fabric *f, const struct survey *s, unsigned int host,
			   const char *path, char *error)
{
	struct cl_agent model;
	unsigned int other;
	int rc = -ENODEV;
	bool again = true;

	fab_not_up(f, error);
	for (other = 0; other < CL_HOSTS_MAX && again; other++) {
		if (s->rc[other] != 0)
			continue;
		rc = tool_open(f, other, &model, error);
		if (rc == 0) {
			rc = start_like(f, s, &model, host, path, error);
			again = rc == -ESRCH || rc == -EPIPE || model.silent;
			cl_close(&model);
		}
	}
	return rc;
}

static void print_silent(const struct survey *s)
{
	unsigned int host;

	for (host = 0; host < CL_HOSTS_MAX; host++) {
		if (s->rc[host] != 0 && s->rc[host] != -ENODEV)
			fprintf(stderr, "vi_fabric: %s\n", s->error[host]);
	}
}

/* Starts the agent of a host that died or was stopped, with the arguments of the others. */
static int cmd_start(const struct fabric *f, const char *name)
{
	static struct survey s;
	char error[CL_ERROR_MAX], path[4096];
	unsigned int host;
	int rc = host_number(f, name, &host, error);

	if (rc != 0)
		return fail("%s", error);
	if (f->owner != geteuid())
		return fail("fabric %s belongs to uid %u; only its owner starts agents", f->name,
			    (unsigned int)f->owner);
	cl_greet_all(f->owner, f->name, CL_HOSTS_MAX, survey_take, &s);
	if (s.rc[host] == 0)
		return fail("host %s of fabric %s is up already", name, f->name);
	if (s.rc[host] != -ENODEV)
		return fail("%s", s.error[host]);
	if (agent_path(path, sizeof(path)) != EXIT_OK)
		return EXIT_FAIL;
	rc = start_as_others(f, &s, host, path, error);
	if (rc < 0)
		return fail("%s", error);
	printf("host %s of fabric %s is up: %d link%s\n", name, f->name, rc, rc == 1 ? "" : "s");
	print_silent(&s);
	return EXIT_OK;
}

static int cmd_stop(const struct fabric *f, const char *name)
{
	char error[CL_ERROR_MAX];
	unsigned int host;
	int rc = host_number(f, name, &host, error);

	if (rc == 0)
		rc = fab_stop_host(f, host, error);
	if (rc != 0)
		return fail("%s", error);
	printf("host %s of fabric %s is down\n", name, f->name);
	return EXIT_OK;
}

struct telling {
	enum w_admin_verb verb;
	const char *pair;
	char error[CL_ERROR_MAX];
	unsigned int told, failed;
};

static int tell(void *arg, struct cl_greeted *g)
{
	struct telling *t = arg;
	int rc = g->rc;

	if (rc == -ENODEV || rc == -EPIPE)
		return 0;
	if (rc == 0)
		rc = cl_admin(&g->agent, t->verb, t->pair, g->error);
	if (rc == 0)
		t->told++;
	else if (t->failed++ == 0)
		snprintf(t->error, sizeof(t->error), "%s", g->error);
	return 0;
}

/* Tells every agent of the fabric. */
static int cmd_name(const struct fabric *f, enum w_admin_verb verb, const char *pair)
{
	struct telling t = { .verb = verb, .pair = pair };

	cl_greet_all(f->owner, f->name, CL_HOSTS_MAX, tell, &t);
	if (t.failed > 0)
		return fail("%s%s", t.error, t.told > 0 ? "; the other hosts were told" : "");
	if (t.told > 0)
		return EXIT_OK;
	fab_not_up(f, t.error);
	return fail("%s", t.error);
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

/* Reports the option for which getopt_long() returned ':' or '?'; `text` is that argument. */
static int option_refused(int c, const char *text)
{
	if (c == ':')
		return usage("%.80s needs an argument", text);
	if (optopt >= ' ')
		return usage("no option -%c", optopt);
	return optopt != 0 ? usage("%.80s: this option takes no argument", text)
			   : usage("no option %.80s", text);
}

/* Returns DONE when the error has been printed. */
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
	rc = w_fabric_parse(cl.fabric_text, &cl.fabric.owner, cl.fabric.name);
	if (rc == -ENOENT)
		return usage("fabric %s: there is no user of the name before the colon",
			     cl.fabric_text);
	if (rc != 0)
		return usage("fabric %s: NAME or OWNER:NAME of [A-Za-z0-9._-] expected",
			     cl.fabric_text);
	return run(&cl, argc - optind, argv + optind);
}

int main(int argc, char **argv)
{
	tool_out_begin();
	return tool_out_end("vi_fabric", fabric_main(argc, argv));
}
