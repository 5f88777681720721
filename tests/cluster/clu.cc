/* SPDX-License-Identifier: BSD-2-Clause */
#include "clu.h"

#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <gtest/gtest.h>

extern "C" {
#include "cl_client.h"
}

extern char **environ;

namespace clu {

/* ---- scale and time ------------------------------------------------------------------------ */

bool stress()
{
	static const char *value = getenv("CLUSTER_STRESS");
	return value != nullptr && strcmp(value, "0") != 0;
}

bool sanitized()
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return true;
#else
	return false;
#endif
}

int64_t now_ns()
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return static_cast<int64_t>(ts.tv_sec) * 1000000000 + ts.tv_nsec;
}

std::string text(const char *format, ...)
{
	char room[600];
	va_list ap;
	va_start(ap, format);
	vsnprintf(room, sizeof(room), format, ap);
	va_end(ap);
	return room;
}

void fail(const char *file, int line, const std::string &what)
{
	throw std::runtime_error(
		text("%s:%d: expected %s (errno %s)", file, line, what.c_str(), strerror(errno)));
}

void need_rc(const char *file, int line, VIP_RETURN expected, VIP_RETURN found, const char *call)
{
	if (found != expected)
		fail(file, line,
		     text("%s from %s, found %s", VipxErrorString(expected), call,
			  VipxErrorString(found)));
}

namespace {

/* Deadlines of all threads; one thread watches the earliest. */
struct Watch {
	struct Item {
		std::string what;
		std::chrono::steady_clock::time_point end;
	};
	std::mutex lock;
	std::condition_variable changed;
	std::map<uint64_t, Item> items;
	uint64_t next = 1;
	bool running = false;

	void run()
	{
		std::unique_lock<std::mutex> guard(lock);
		for (;;) {
			if (items.empty()) {
				changed.wait(guard);
				continue;
			}
			auto first = items.begin();
			for (auto it = items.begin(); it != items.end(); ++it)
				if (it->second.end < first->second.end)
					first = it;
			auto end = first->second.end;
			if (std::chrono::steady_clock::now() >= end)
				expire(first->second);
			changed.wait_until(guard, end);
		}
	}

	[[noreturn]] void expire(const Item &item)
	{
		fprintf(stderr, "cluster: pid %d: awaited too long: %s\n", getpid(),
			item.what.c_str());
		for (auto &other : items)
			fprintf(stderr, "cluster: pid %d: under way: %s\n", getpid(),
				other.second.what.c_str());
		fflush(nullptr);
		abort();
	}
};

Watch &watch()
{
	static Watch *w = new Watch;
	return *w;
}

} // namespace

Await::Await(const std::string &what, unsigned seconds)
{
	Watch &w = watch();
	std::lock_guard<std::mutex> guard(w.lock);
	if (!w.running)
		std::thread([&w] { w.run(); }).detach();
	w.running = true;
	id = w.next++;
	w.items[id] = { what, std::chrono::steady_clock::now() +
				      std::chrono::seconds(seconds * limit_factor()) };
	w.changed.notify_one();
}

Await::~Await()
{
	Watch &w = watch();
	std::lock_guard<std::mutex> guard(w.lock);
	w.items.erase(id);
	w.changed.notify_one();
}

bool until(const std::function<bool()> &good, unsigned ms)
{
	int64_t end = now_ns() + int64_t{ ms } * limit_factor() * 1000000;
	while (!good()) {
		if (now_ns() > end)
			return good();
		poll(nullptr, 0, 1);
	}
	return true;
}

void compute(int64_t ns)
{
	int64_t end = now_ns() + ns;
	while (now_ns() < end)
		;
}

static uint64_t seed()
{
	static uint64_t value = [] {
		const char *given = getenv("CLUSTER_SEED");
		uint64_t v = 4711;
		if (given)
			v = strtoull(given, nullptr, 10);
		else if (getenv("CLUSTER_STRESS"))
			v = static_cast<uint64_t>(now_ns());
		if (!given) {
			printf("cluster: seed %llu (CLUSTER_SEED repeats it)\n",
			       static_cast<unsigned long long>(v));
			setenv("CLUSTER_SEED", std::to_string(v).c_str(), 1);
		}
		return v;
	}();
	return value;
}

Random::Random(uint64_t stream) : state(seed() ^ (stream * 0x9e3779b97f4a7c15u)) {}

uint64_t Random::next()
{
	uint64_t z = state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* ---- the board ------------------------------------------------------------------------------ */

static std::atomic<uint64_t> *board()
{
	static std::atomic<uint64_t> *cells = [] {
		const char *given = getenv("CLUSTER_BOARD");
		int fd = given ? atoi(given)
			       : static_cast<int>(syscall(SYS_memfd_create, "board", 0));
		size_t bytes = kCells * sizeof(uint64_t);
		void *p = MAP_FAILED;
		if (fd >= 0 && (given || ftruncate(fd, static_cast<off_t>(bytes)) == 0))
			p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		if (p == MAP_FAILED)
			abort();
		if (!given)
			setenv("CLUSTER_BOARD", std::to_string(fd).c_str(), 1);
		return static_cast<std::atomic<uint64_t> *>(p);
	}();
	return cells;
}

std::atomic<uint64_t> &cell(size_t i)
{
	NEED(i < kCells);
	return board()[i];
}

void board_clear()
{
	for (size_t i = 0; i < kCells; i++)
		board()[i].store(0);
}

Standstill::Record &standstill(size_t i)
{
	static_assert(sizeof(Standstill::Record) == 2 * sizeof(std::atomic<uint64_t>));
	NEED(i + 1 < kCells);
	return reinterpret_cast<Standstill::Record &>(board()[i]);
}

std::vector<std::unique_ptr<Standstill>> watch_processors(size_t first, size_t most)
{
	std::vector<std::unique_ptr<Standstill>> all;
	cpu_set_t set;

	NEED(sched_getaffinity(0, sizeof(set), &set) == 0);
	for (size_t cpu = 0; cpu < CPU_SETSIZE && all.size() < most; cpu++)
		if (CPU_ISSET(cpu, &set))
			all.push_back(std::make_unique<Standstill>(
				standstill(first + 2 * all.size()), static_cast<int>(cpu)));
	return all;
}

int64_t stood_still(size_t first, size_t count)
{
	int64_t sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += standstill(first + 2 * i).ns();
	return sum;
}

/* ---- processes ------------------------------------------------------------------------------ */

static std::map<std::string, void (*)(const Args &)> &roles()
{
	static std::map<std::string, void (*)(const Args &)> map;
	return map;
}

Role::Role(const char *name, void (*run)(const Args &))
{
	roles()[name] = run;
}

static std::vector<std::string> environment(const Env &env)
{
	std::vector<std::string> all;
	for (char **e = environ; *e; e++)
		if (env.find(std::string(*e, strcspn(*e, "="))) == env.end())
			all.push_back(*e);
	for (auto &pair : env)
		all.push_back(pair.first + "=" + pair.second);
	return all;
}

static std::vector<char *> pointers(std::vector<std::string> &strings)
{
	std::vector<char *> all;
	for (auto &s : strings)
		all.push_back(s.data());
	all.push_back(nullptr);
	return all;
}

Process::Process(const std::string &program, const Args &args, const Env &env, uint64_t fd_limit)
{
	std::vector<std::string> words = args, variables = environment(env);
	words.insert(words.begin(), program);
	std::vector<char *> argv = pointers(words), envp = pointers(variables);
	struct rlimit limit = { fd_limit, fd_limit };
	fflush(nullptr);
	id = fork();
	NEED(id >= 0);
	if (id == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fd_limit != 0)
			setrlimit(RLIMIT_NOFILE, &limit);
		execve(program.c_str(), argv.data(), envp.data());
		_exit(127);
	}
}

Process &Process::operator=(Process &&other) noexcept
{
	std::swap(id, other.id);
	std::swap(status, other.status);
	return *this;
}

Process::~Process()
{
	if (id > 0 && !ended()) {
		kill(SIGKILL);
		int ignored;
		waitpid(id, &ignored, 0);
	}
}

/* The exit code, or 128 + signal, of what waitpid() tells. */
static int code_of(int how)
{
	return WIFEXITED(how) ? WEXITSTATUS(how) : 128 + WTERMSIG(how);
}

bool Process::ended()
{
	int how;
	if (status >= 0)
		return true;
	if (id <= 0 || waitpid(id, &how, WNOHANG) != id)
		return false;
	status = code_of(how);
	return true;
}

int Process::wait(unsigned seconds)
{
	Await awaited(text("process %d to end", id), seconds + 5);
	if (!until([this] { return ended(); }, seconds * 1000))
		fail(__FILE__, __LINE__, text("process %d to end within %u s", id, seconds));
	return status;
}

void Process::kill(int sig)
{
	if (status < 0 && id > 0)
		::kill(id, sig);
}

void Process::stop()
{
	int how = 0;

	kill(SIGSTOP);
	if (status < 0 && id > 0 && waitpid(id, &how, WUNTRACED) == id && !WIFSTOPPED(how))
		status = code_of(how);
}

Process role(const std::string &name, const Args &args, const Env &env, uint64_t fd_limit)
{
	seed();
	board();
	Args all = args;
	all.insert(all.begin(), "--child=" + name);
	return Process("/proc/self/exe", all, env, fd_limit);
}

static std::vector<std::string> entries(const std::string &dir)
{
	std::vector<std::string> names;
	DIR *d = opendir(dir.c_str());
	if (!d)
		return names;
	while (struct dirent *e = readdir(d))
		if (e->d_name[0] != '.')
			names.push_back(e->d_name);
	closedir(d);
	return names;
}

static std::string contents(const std::string &path)
{
	std::string all;
	char room[4096];
	size_t n;
	FILE *f = fopen(path.c_str(), "re");
	if (!f)
		return all;
	while ((n = fread(room, 1, sizeof(room), f)) > 0)
		all.append(room, n);
	fclose(f);
	return all;
}

size_t fd_count(pid_t pid)
{
	/* To list its own descriptors a process opens one. */
	return entries(text("/proc/%d/fd", pid)).size() - (pid == getpid() ? 1 : 0);
}

size_t quiet_fds(pid_t pid)
{
	size_t least = fd_count(pid);
	until(
		[&] {
			least = std::min(least, fd_count(pid));
			return false;
		},
		30);
	return least;
}

uint64_t rss_bytes(pid_t pid)
{
	unsigned long size = 0, resident = 0;
	sscanf(contents(text("/proc/%d/statm", pid)).c_str(), "%lu %lu", &size, &resident);
	return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t own_memory(pid_t pid)
{
	std::string rollup = contents(text("/proc/%d/smaps_rollup", pid));
	uint64_t kib = 0;
	for (const char *key : { "Pss_Anon:", "Pss_Shmem:" }) {
		size_t at = rollup.find(key);
		NEED(at != std::string::npos);
		kib += strtoull(rollup.c_str() + at + strlen(key), nullptr, 10);
	}
	return kib << 10;
}

/* Field 0 or 1 of the scheduler's account of each thread. */
static int64_t sched_sum(pid_t pid, int field)
{
	int64_t sum = 0;
	std::string tasks = text("/proc/%d/task", pid);
	for (auto &task : entries(tasks)) {
		long long value[2] = { 0, 0 };
		sscanf(contents(tasks + "/" + task + "/schedstat").c_str(), "%lld %lld", &value[0],
		       &value[1]);
		sum += value[field];
	}
	return sum;
}

int64_t cpu_ns(pid_t pid)
{
	return sched_sum(pid, 0);
}

int64_t sleeps(pid_t pid)
{
	static const char name[] = "\nvoluntary_ctxt_switches:";
	int64_t sum = 0;
	std::string tasks = text("/proc/%d/task", pid);
	for (auto &task : entries(tasks)) {
		std::string status = contents(tasks + "/" + task + "/status");
		size_t at = status.find(name);
		if (at != status.npos)
			sum += strtoll(status.c_str() + at + sizeof(name) - 1, nullptr, 10);
	}
	return sum;
}

size_t awake(pid_t pid)
{
	size_t count = 0;
	std::string tasks = text("/proc/%d/task", pid);
	for (auto &task : entries(tasks)) {
		std::string stat = contents(tasks + "/" + task + "/stat");
		size_t name = stat.rfind(')');
		count += name != stat.npos && stat.compare(name, 3, ") R") == 0;
	}
	return count;
}

uint64_t disk_faults(pid_t pid)
{
	unsigned long long faults = 0;
	std::string stat = contents(text("/proc/%d/stat", pid));
	/* The name of the program, in parentheses, may hold anything. */
	sscanf(stat.c_str() + stat.rfind(')') + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %llu",
	       &faults);
	return faults;
}

int64_t delay_ns(pid_t pid)
{
	return sched_sum(pid, 1);
}

std::string stacks(pid_t pid, const Args &variables)
{
	std::string all, tasks = text("/proc/%d/task", pid);
	for (auto &task : entries(tasks))
		all += task + " " + contents(tasks + "/" + task + "/comm") +
		       contents(tasks + "/" + task + "/stat") +
		       contents(tasks + "/" + task + "/wchan") + "\n";
	std::string command = text("timeout 60 gdb -p %d -batch -ex 'thread apply all bt'", pid);
	for (auto &variable : variables)
		command += " -ex 'print " + variable + "'";
	FILE *debugger = popen((command + " 2>&1").c_str(), "re");
	char line[1000];
	while (debugger && fgets(line, sizeof(line), debugger))
		all += line;
	if (debugger)
		pclose(debugger);
	return all;
}

/* ---- fabrics -------------------------------------------------------------------------------- */

/* One per process, since the library reads its environment once: fabrics follow each other. */
static std::string unique_name()
{
	return text("clu-%d", getpid());
}

static Process start_agent(const Args &args, uint64_t fd_limit, const Env &env)
{
	const char *program = getenv("VIADUCT_AGENT");
	int ready[2];
	char line[256] = "";
	NEED(program != nullptr);
	NEED(pipe2(ready, O_CLOEXEC) == 0);
	NEED(fcntl(ready[1], F_SETFD, 0) == 0);
	Args all = args;
	all.push_back("--ready-fd");
	all.push_back(std::to_string(ready[1]));
	Process agent(program, all, env, fd_limit);
	close(ready[1]);
	Await awaited("an agent to listen", kSeconds);
	ssize_t n = read(ready[0], line, sizeof(line) - 1);
	close(ready[0]);
	if (n <= 0 || strcmp(line, "ready\n") != 0)
		fail(__FILE__, __LINE__, text("an agent that is ready, found \"%s\"", line));
	return agent;
}

Args Fabric::arguments(unsigned host) const
{
	Args args = { "--fabric",	   name, "--hosts", std::to_string(hosts), "--host-id",
		      std::to_string(host) };
	args.insert(args.end(), agent_args.begin(), agent_args.end());
	return args;
}

void Fabric::kill(unsigned host)
{
	agents.at(host).kill(SIGKILL);
	agents.at(host).wait();
}

void Fabric::restart(unsigned host)
{
	agents.at(host) = start_agent(arguments(host), agent_fd_limit, agent_env);
}

Fabric::Fabric(unsigned count, const Args &args, uint64_t fd_limit, const Env &env)
    : name(unique_name()), agent_args(args), agent_fd_limit(fd_limit), agent_env(env), hosts(count)
{
	setenv("VIADUCT_FABRIC", name.c_str(), 1);
	for (unsigned i = 0; i < hosts; i++)
		agents.push_back(start_agent(arguments(i), agent_fd_limit, agent_env));
	await_links();
}

Fabric::~Fabric()
{
	try {
		stop();
	} catch (const std::exception &e) {
		ADD_FAILURE() << e.what();
	}
	until([this] { return left_behind().empty(); }, 5000);
	EXPECT_EQ("", left_behind());
}

void Fabric::stop()
{
	for (auto &agent : agents) {
		/*
		 * It may be stopped.  The signal to continue comes first: sent to a process that
		 * checks for leaks at its end, it would take back the signal by which that check
		 * stops the process, and the check would wait for ever.
		 */
		agent.kill(SIGCONT);
		agent.kill(SIGTERM);
	}
	for (auto &agent : agents) {
		int code = agent.wait();
		EXPECT_TRUE(code == 0 || code == 128 + SIGKILL) << "an agent ended with " << code;
	}
}

std::string Fabric::left_behind() const
{
	std::string found, sockets = contents("/proc/net/unix");
	if (sockets.find("/" + name + "/") != std::string::npos)
		found += "a socket in /proc/net/unix; ";
	for (auto &file : entries("/dev/shm"))
		if (file.find(name) != std::string::npos)
			found += "/dev/shm/" + file + "; ";
	for (auto &pid : entries("/proc")) {
		if (pid[0] < '0' || pid[0] > '9' || atoi(pid.c_str()) == getpid())
			continue;
		if (contents("/proc/" + pid + "/cmdline").find(name) != std::string::npos)
			found += "process " + pid + "; ";
	}
	return found;
}

std::vector<pid_t> agents_of(const std::string &fabric)
{
	std::vector<pid_t> found;
	std::string option = std::string("--fabric") + '\0' + fabric + '\0';
	for (auto &pid : entries("/proc"))
		if (contents("/proc/" + pid + "/comm") == "viaductd\n" &&
		    (contents("/proc/" + pid + "/cmdline") + '\0').find(option) !=
			    std::string::npos)
			found.push_back(atoi(pid.c_str()));
	return found;
}

bool kernel_holds(pid_t pid)
{
	std::string tasks = text("/proc/%d/task", pid);
	for (auto &task : entries(tasks)) {
		std::string stat = contents(tasks + "/" + task + "/stat");
		size_t end = stat.rfind(')');
		if (end != std::string::npos && stat.compare(end, 3, ") D") == 0)
			return true;
	}
	return false;
}

std::vector<std::string> Fabric::list(unsigned host, int what) const
{
	std::vector<std::string> items;
	struct cl_agent agent;
	char error[CL_ERROR_MAX] = "", item[400];
	while (cl_open_host(geteuid(), name.c_str(), host, W_KIND_TOOL, &agent, error) != 0)
		if (!kernel_holds(agents.at(host).pid()))
			fail(__FILE__, __LINE__,
			     text("agent of host %u to answer, found %s", host, error));
	for (uint32_t i = 0; cl_list(&agent, static_cast<enum w_list_what>(what), i, item) == 0;
	     i++)
		items.push_back(item);
	cl_close(&agent);
	return items;
}

uint64_t json_number(const std::string &object, const std::string &key)
{
	size_t at = object.find("\"" + key + "\":");
	NEED(at != std::string::npos);
	return strtoull(object.c_str() + at + key.size() + 3, nullptr, 10);
}

uint64_t Fabric::window_used(unsigned host) const
{
	uint64_t sum = 0;
	for (auto &port : list(host, W_LIST_PORTS))
		sum += json_number(port, "window_used");
	return sum;
}

unsigned Fabric::connections(unsigned host) const
{
	uint64_t sum = 0;
	for (auto &client : list(host, W_LIST_CLIENTS))
		sum += json_number(client, "conns");
	return static_cast<unsigned>(sum);
}

unsigned Fabric::clients(unsigned host) const
{
	return static_cast<unsigned>(list(host, W_LIST_CLIENTS).size());
}

bool Fabric::links_up() const
{
	for (unsigned i = 0; i < size(); i++)
		for (auto &port : list(i, W_LIST_PORTS))
			if (port.find("\"link\":\"up\"") == std::string::npos)
				return false;
	return true;
}

void Fabric::await_links() const
{
	if (until([this] { return links_up(); }))
		return;
	for (unsigned i = 0; i < size(); i++)
		printf("host %u\n%s%s", i, report(i).c_str(), stacks(agents.at(i).pid()).c_str());
	fail(__FILE__, __LINE__, "links to come up");
}

std::string Fabric::report(unsigned host) const
{
	std::string all;
	for (int what : { W_LIST_PORTS, W_LIST_CLIENTS, W_LIST_LINKS, W_LIST_RELAY })
		for (auto &item : list(host, what))
			all += item + "\n";
	return all;
}

void Fabric::link(unsigned host, const std::string &port, bool up) const
{
	struct cl_agent agent;
	char error[CL_ERROR_MAX] = "";
	int rc;
	do {
		rc = cl_open_host(geteuid(), name.c_str(), host, W_KIND_TOOL, &agent, error);
		if (rc != 0)
			continue;
		rc = cl_admin(&agent, up ? W_ADMIN_LINK_UP : W_ADMIN_LINK_DOWN, port.c_str(),
			      error);
		cl_close(&agent);
	} while (rc != 0 && kernel_holds(agents.at(host).pid()));
	if (rc != 0)
		fail(__FILE__, __LINE__, text("to switch link %s, found %s", port.c_str(), error));
}

/* ---- NICs ----------------------------------------------------------------------------------- */

Nic::Nic(const std::string &device)
{
	NEED_RC(VIP_SUCCESS, VipOpenNic(device.c_str(), &h));
	NEED_RC(VIP_SUCCESS, VipQueryNic(h, &attrs));
	NEED_RC(VIP_SUCCESS, VipErrorCallback(h, this, handler));
}

void Nic::close()
{
	VIP_RETURN rc = VIP_SUCCESS;
	if (h)
		rc = VipCloseNic(h);
	h = nullptr;
	NEED_RC(VIP_SUCCESS, rc);
}

Nic::~Nic()
{
	if (h) {
		EXPECT_EQ(VIP_SUCCESS, VipCloseNic(h));
	}
}

void Nic::handler(VIP_PVOID context, VIP_ERROR_DESCRIPTOR *error)
{
	Nic *self = static_cast<Nic *>(context);
	std::lock_guard<std::mutex> guard(self->lock);
	self->events.push_back({ *error, now_ns() });
	self->changed.notify_all();
}

bool Nic::event(VIP_ERROR_CODE code, VIP_VI_HANDLE vi, unsigned ms)
{
	auto end = std::chrono::steady_clock::now() +
		   std::chrono::milliseconds(int64_t{ ms } * limit_factor());
	std::unique_lock<std::mutex> guard(lock);
	for (;;) {
		for (auto it = events.begin(); it != events.end(); ++it)
			if (it->what.ErrorCode == code && (!vi || it->what.ViHandle == vi)) {
				events.erase(it);
				return true;
			}
		if (changed.wait_until(guard, end) == std::cv_status::timeout)
			return false;
	}
}

size_t Nic::count(VIP_ERROR_CODE code)
{
	std::lock_guard<std::mutex> guard(lock);
	size_t n = 0;
	for (auto &e : events)
		n += e.what.ErrorCode == code;
	return n;
}

int64_t Nic::first_event_at()
{
	std::lock_guard<std::mutex> guard(lock);
	return events.empty() ? 0 : events.front().at;
}

VIPX_COUNTERS Nic::counters(VIP_VI_HANDLE vi) const
{
	VIPX_COUNTERS c = {};
	c.Size = sizeof(c);
	NEED_RC(VIP_SUCCESS, VipxQueryCounters(h, vi, &c));
	return c;
}

static void addr_fill(unsigned char *room, const void *host, size_t len, const std::string &disc)
{
	VIP_NET_ADDRESS *p = reinterpret_cast<VIP_NET_ADDRESS *>(room);
	size_t at = offsetof(VIP_NET_ADDRESS, HostAddress);
	memset(room, 0, sizeof(Addr::room));
	p->HostAddressLen = static_cast<VIP_UINT16>(len);
	p->DiscriminatorLen = static_cast<VIP_UINT16>(disc.size());
	memcpy(room + at, host, len);
	memcpy(room + at + len, disc.data(), disc.size());
}

Addr::Addr(const Nic &nic, const std::string &disc)
{
	addr_fill(room, nic.attrs.LocalNicAddress, nic.attrs.NicAddressLen, disc);
}

Addr::Addr(unsigned host, const std::string &disc)
{
	uint8_t bytes[W_HOST_ADDR_LEN];
	w_host_addr(static_cast<uint16_t>(host), bytes);
	addr_fill(room, bytes, sizeof(bytes), disc);
}

/* ---- memory and VIs ------------------------------------------------------------------------- */

Slab::Slab(Nic &n, size_t c, size_t b, bool rdma) : count(c), bytes(b), nic(n)
{
	VIP_MEM_ATTRIBUTES mem = { nullptr, rdma, rdma };
	room = count * (64 + bytes) + 64;
	base = static_cast<char *>(
		mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	NEED(base != MAP_FAILED);
	NEED_RC(VIP_SUCCESS, VipRegisterMem(nic, base, room, &mem, &h));
}

Slab::~Slab()
{
	EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(nic, base, h));
	munmap(base, room);
}

VIP_DESCRIPTOR *Slab::fill(size_t i, size_t length, VIP_UINT16 control)
{
	VIP_DESCRIPTOR *d = desc(i);
	memset(d, 0, sizeof(*d));
	d->CS.Control = control;
	d->CS.SegCount = 1;
	d->CS.Length = d->DS[0].Local.Length = static_cast<VIP_UINT32>(length);
	d->DS[0].Local.Data.Address = data(i);
	d->DS[0].Local.Handle = h;
	return d;
}

VIP_DESCRIPTOR *Slab::fill_rdma(size_t i, size_t length, VIP_UINT16 control, uint64_t address,
				VIP_MEM_HANDLE handle)
{
	VIP_DESCRIPTOR *d = fill(i, length, control);
	d->CS.SegCount = 2;
	d->DS[1] = d->DS[0];
	d->DS[0].Remote.Data.AddressBits = address;
	d->DS[0].Remote.Handle = handle;
	d->DS[0].Remote.Reserved = 0;
	return d;
}

VIP_VI_ATTRIBUTES attrs(VIP_RELIABILITY_LEVEL level, size_t max_transfer, bool rdma)
{
	bool read = rdma && level != VIP_SERVICE_UNRELIABLE;
	return { level, max_transfer, nullptr, nullptr, rdma, read };
}

Vi::Vi(Nic &nic, const VIP_VI_ATTRIBUTES &attributes, VIP_CQ_HANDLE send, VIP_CQ_HANDLE recv)
{
	VIP_VI_ATTRIBUTES copy = attributes;
	NEED_RC(VIP_SUCCESS, VipCreateVi(nic, &copy, send, recv, &h));
}

VIP_VI_STATE Vi::state() const
{
	VIP_VI_STATE state;
	VIP_VI_ATTRIBUTES attributes;
	VIP_BOOLEAN send, recv;
	NEED_RC(VIP_SUCCESS, VipQueryVi(h, &state, &attributes, &send, &recv));
	return state;
}

void Vi::disconnect()
{
	VIP_DESCRIPTOR *d;
	NEED_RC(VIP_SUCCESS, VipDisconnect(h));
	do {
		VipSendDone(h, &d);
	} while (d);
	do {
		VipRecvDone(h, &d);
	} while (d);
}

void Vi::destroy()
{
	disconnect();
	VIP_RETURN rc = VipDestroyVi(h);
	h = nullptr;
	NEED_RC(VIP_SUCCESS, rc);
}

Vi::~Vi()
{
	if (!h)
		return;
	try {
		destroy();
	} catch (const std::exception &e) {
		ADD_FAILURE() << e.what();
	}
}

void post_send(VIP_VI_HANDLE vi, Slab &slab, VIP_DESCRIPTOR *d)
{
	NEED_RC(VIP_SUCCESS, VipPostSend(vi, d, slab.h));
}

void post_recv(VIP_VI_HANDLE vi, Slab &slab, VIP_DESCRIPTOR *d)
{
	NEED_RC(VIP_SUCCESS, VipPostRecv(vi, d, slab.h));
}

static VIP_DESCRIPTOR *good(VIP_RETURN rc, VIP_DESCRIPTOR *d, const char *what)
{
	char status[200] = "none";
	if (d)
		VipxStatusString(d->CS.Status, status, sizeof(status));
	if (rc != VIP_SUCCESS)
		fail(__FILE__, __LINE__,
		     text("a %s that is complete, found %s, status %s", what, VipxErrorString(rc),
			  status));
	return d;
}

VIP_DESCRIPTOR *sent(VIP_VI_HANDLE vi)
{
	VIP_DESCRIPTOR *d = nullptr;
	VIP_RETURN rc = VipSendWait(vi, limit_factor() * kSeconds * 1000, &d);
	return good(rc, d, "send");
}

VIP_DESCRIPTOR *received(VIP_VI_HANDLE vi)
{
	VIP_DESCRIPTOR *d = nullptr;
	VIP_RETURN rc = VipRecvWait(vi, limit_factor() * kSeconds * 1000, &d);
	return good(rc, d, "receive");
}

VIP_RETURN request(Nic &nic, Vi &vi, unsigned host, const std::string &disc, unsigned seconds)
{
	Addr here(nic, disc + "?"), there(host, disc);
	VIP_VI_ATTRIBUTES remote;
	VIP_RETURN rc = VIP_NO_MATCH;
	until(
		[&] {
			rc = VipConnectRequest(vi, here, there, seconds * 1000, &remote);
			return rc != VIP_NO_MATCH && rc != VIP_TIMEOUT && rc != VIP_NOT_REACHABLE;
		},
		seconds * 1000);
	return rc;
}

VIP_RETURN serve(Nic &nic, Vi &vi, const std::string &disc, unsigned seconds)
{
	Addr here(nic, disc), remote(nic, disc);
	VIP_VI_ATTRIBUTES remote_attrs;
	VIP_CONN_HANDLE conn;
	VIP_RETURN rc = VIP_TIMEOUT;
	until(
		[&] {
			rc = VipConnectWait(nic, here, 1000, remote, &remote_attrs, &conn);
			if (rc != VIP_SUCCESS)
				return rc != VIP_TIMEOUT;
			rc = VipConnectAccept(conn, vi);
			if (rc != VIP_SUCCESS)
				VipConnectReject(conn);
			return rc != VIP_TIMEOUT;
		},
		seconds * 1000);
	return rc;
}

VIP_RETURN join(Nic &na, Vi &a, Nic &nb, Vi &b, const std::string &disc, unsigned ms)
{
	Addr at_a(na, disc + "-a"), at_b(nb, disc + "-b");
	VIP_VI_ATTRIBUTES remote;
	VIP_RETURN rc = VipConnectPeerRequest(a, at_a, at_b, ms);
	if (rc != VIP_SUCCESS)
		return rc;
	rc = VipConnectPeerRequest(b, at_b, at_a, ms);
	if (rc != VIP_SUCCESS) {
		VipDisconnect(a);
		return rc;
	}
	VIP_RETURN ra = VipConnectPeerWait(a, &remote), rb = VipConnectPeerWait(b, &remote);
	if (ra != VIP_SUCCESS || rb != VIP_SUCCESS) {
		VipDisconnect(a);
		VipDisconnect(b);
	}
	/* When one side fails, the other waits for another attempt until its time is over. */
	return ra != VIP_SUCCESS && ra != VIP_TIMEOUT ? ra : rb != VIP_SUCCESS ? rb : ra;
}

/* ---- the program ---------------------------------------------------------------------------- */

static int child_main(int argc, char **argv)
{
	std::string name = argv[1] + strlen("--child=");
	auto found = roles().find(name);
	if (found == roles().end())
		return 2;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	try {
		found->second(Args(argv + 2, argv + argc));
	} catch (const std::exception &e) {
		fprintf(stderr, "cluster: role %s, pid %d: %s\n", name.c_str(), getpid(), e.what());
		return 1;
	}
	return ::testing::Test::HasFailure() ? 1 : 0;
}

} // namespace clu

int main(int argc, char **argv)
{
	if (argc > 1 && strncmp(argv[1], "--child=", 8) == 0)
		return clu::child_main(argc, argv);
	::testing::InitGoogleTest(&argc, argv);
	return RUN_ALL_TESTS();
}
