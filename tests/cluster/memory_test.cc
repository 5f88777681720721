/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The memory that one more VI, process or region takes, counted by the kernel.  The limits are
 * the figures of the table in docs/performance.md with about a tenth of slack.
 */
#include "clu.h"

#include <cinttypes>
#include <cstdio>
#include <memory>

#include <sys/prctl.h>
#include <unistd.h>

#include <gtest/gtest.h>

using namespace clu;

/* ---- the limits ----------------------------------------------------------------------------- */

constexpr uint64_t kKiB = 1024;

/* Bytes of private memory of the process and of the agent; of the window, allotted and touched. */
struct Limit {
	const char *what;
	uint64_t own, agent, window, touched;
};

constexpr Limit kVi = { "connected VI", 8500, 760, 280 * kKiB, 12 * kKiB };
constexpr Limit kProcess = { "connected process", 116 * kKiB, 1880, 0, 0 };
constexpr Limit kRegion = { "registered region", 72, 0, 0, 0 };

/* ---- what is held now ----------------------------------------------------------------------- */

/* A field of the kernel's account of a process, in bytes. */
static uint64_t smaps(pid_t pid, const char *field)
{
	char line[256];
	uint64_t kib = 0;
	bool found = false;
	FILE *f = fopen(text("/proc/%d/smaps_rollup", pid).c_str(), "re");
	NEED(f != nullptr);
	while (fgets(line, sizeof(line), f))
		if (strncmp(line, field, strlen(field)) == 0) {
			found = true;
			kib = strtoull(line + strlen(field), nullptr, 10);
		}
	fclose(f);
	NEED(found);
	return kib * kKiB;
}

struct Held {
	Held(Fabric &fabric, pid_t process)
	    : own(smaps(process, "Anonymous:")), agent(smaps(fabric.agent(0).pid(), "Anonymous:")),
	      window(fabric.window_used(0)), touched(smaps(process, "Pss_Shmem:"))
	{
	}
	uint64_t own, agent, window, touched;
};

static void expect(const char *of, uint64_t before, uint64_t after, uint64_t count, uint64_t limit,
		   const char *what)
{
	uint64_t each = after > before ? (after - before) / count : 0;
	printf("%s: %s: %" PRIu64 " bytes, limit %" PRIu64 "\n", what, of, each, limit);
	EXPECT_LE(each, limit) << what << ": " << of << ": more than docs/performance.md promises";
}

static void expect_growth(const Held &before, const Held &after, uint64_t count, const Limit &limit)
{
	expect("of the process", before.own, after.own, count, limit.own, limit.what);
	expect("of the agent", before.agent, after.agent, count, limit.agent, limit.what);
	expect("of the window", before.window, after.window, count, limit.window, limit.what);
	expect("of the window, touched", before.touched, after.touched, count, limit.touched,
	       limit.what);
}

class Memory : public ::testing::Test {
protected:
	void SetUp() override
	{
		if (sanitized())
			GTEST_SKIP() << "a sanitizer changes how much memory everything takes";
		/* A huge page would stand for hundreds of VIs.  Agents and roles inherit it. */
		NEED(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0);
	}
};

/* ---- VIs ------------------------------------------------------------------------------------ */

/* Pairs of connected VIs, each with a receive posted; a message went both ways. */
class Pairs {
public:
	Pairs(Nic &n, size_t most) : nic(n), slab(n, 4 * most, 64)
	{
		for (size_t i = 0; i < 4 * most; i++)
			slab.fill(i, 64);
	}

	void add(size_t count)
	{
		for (; count; count--)
			add_pair();
	}

private:
	void add_pair()
	{
		size_t i = vis.size();
		for (int k = 0; k < 2; k++) {
			vis.push_back(
				std::make_unique<Vi>(nic, attrs(VIP_SERVICE_RELIABLE_DELIVERY)));
			post_recv(*vis.back(), slab, slab.fill(2 * i + k, 64));
		}
		NEED_RC(VIP_SUCCESS, join(nic, *vis[i], nic, *vis[i + 1], text("pair%zu", i)));
		for (int k = 0; k < 2; k++) {
			post_send(*vis[i + k], slab, slab.fill(2 * i + 2 + k, 64));
			sent(*vis[i + k]);
			received(*vis[i + 1 - k]);
			post_recv(*vis[i + 1 - k], slab, slab.fill(2 * i + 1 - k, 64));
		}
	}

	Nic &nic;
	Slab slab;
	std::vector<std::unique_ptr<Vi>> vis;
};

TEST_F(Memory, OfAConnectedVi)
{
	Await awaited("connected VIs", 60);
	const size_t warm = 32, count = 256;
	Fabric fabric(1);
	Nic nic;
	Pairs pairs(nic, warm + count);
	pairs.add(warm);
	Held before(fabric, getpid());
	pairs.add(count);
	expect_growth(before, Held(fabric, getpid()), 2 * count, kVi);
}

/* ---- processes ------------------------------------------------------------------------------ */

enum { OPENED, CONNECTED, LEAVE, BEFORE, AFTER = BEFORE + 64 };

/* A process with one VI, which is connected to its other VI. */
ROLE(neighbour)
{
	Await awaited("a process that is connected", 60);
	size_t self = strtoul(args[0].c_str(), nullptr, 10);
	cell(BEFORE + self) = smaps(getpid(), "Anonymous:");
	Nic nic;
	cell(AFTER + self) = smaps(getpid(), "Anonymous:");
	Vi a(nic, attrs(VIP_SERVICE_RELIABLE_DELIVERY)),
		b(nic, attrs(VIP_SERVICE_RELIABLE_DELIVERY));
	NEED_RC(VIP_SUCCESS, join(nic, a, nic, b, text("of %zu", self)));
	cell(CONNECTED)++;
	NEED(until([] { return cell(LEAVE) != 0; }, 60000));
}

/* One after the other: what the agent holds only while a process connects is there once. */
static std::vector<Process> neighbours(size_t first, size_t count)
{
	std::vector<Process> all;
	for (size_t i = first; i < first + count; i++) {
		all.push_back(role("neighbour", { std::to_string(i) }));
		NEED(until([&] { return cell(CONNECTED) == i + 1; }));
	}
	return all;
}

TEST_F(Memory, OfAConnectedProcess)
{
	Await awaited("connected processes", 60);
	const size_t warm = 4, count = 60; /* a page more or less is 68 bytes each */
	board_clear();
	Fabric fabric(1);
	auto first = neighbours(0, warm);
	Held before(fabric, getpid());
	auto rest = neighbours(warm, count);
	Held after(fabric, getpid());
	cell(LEAVE) = 1;
	uint64_t own = 0;
	for (size_t i = warm; i < warm + count; i++)
		own += cell(AFTER + i) - cell(BEFORE + i);
	expect("of itself", 0, own, count, kProcess.own, kProcess.what);
	expect("of the agent", before.agent, after.agent, count, kProcess.agent, kProcess.what);
	for (auto &process : first)
		EXPECT_EQ(0, process.wait());
	for (auto &process : rest)
		EXPECT_EQ(0, process.wait());
}

/* ---- regions -------------------------------------------------------------------------------- */

class Regions {
public:
	explicit Regions(Nic &n) : nic(n) {}
	~Regions()
	{
		for (auto h : handles)
			EXPECT_EQ(VIP_SUCCESS, VipDeregisterMem(nic, memory, h));
	}
	void add(size_t count)
	{
		handles.reserve(handles.size() + count);
		for (; count; count--) {
			VIP_MEM_HANDLE h;
			NEED_RC(VIP_SUCCESS,
				VipRegisterMem(nic, memory, sizeof(memory), nullptr, &h));
			handles.push_back(h);
		}
	}

private:
	Nic &nic;
	char memory[64];
	std::vector<VIP_MEM_HANDLE> handles;
};

TEST_F(Memory, OfARegisteredRegion)
{
	Await awaited("registered regions", 60);
	const size_t warm = 1000, count = 50000;
	Fabric fabric(1);
	Nic nic;
	Regions regions(nic);
	regions.add(warm);
	Held before(fabric, getpid());
	regions.add(count);
	Held after(fabric, getpid());
	after.own -= std::min(after.own, count * sizeof(VIP_MEM_HANDLE)); /* of the test itself */
	expect_growth(before, after, count, kRegion);
}
