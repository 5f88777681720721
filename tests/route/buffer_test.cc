// SPDX-License-Identifier: BSD-2-Clause
// The dependencies between the buffers that messages pass through: which waits for room in which.  A buffer depends
// on the next one of the path, which must have room before it can be emptied; the receiver's fifo,
// the last of each way, depends on none.  Without a cycle nothing can wait for itself.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "topo.h"

namespace {

struct Circuit {
	unsigned from;
	struct rt_path path;
};

// The place of a message after a hop: the circuit's number (0 if buffers are shared), host, port.
using Buffer = std::tuple<unsigned, unsigned, unsigned>;

class Buffers {
public:
	explicit Buffers(bool own) : own_(own) {}

	void add(const struct rt_topo *t, const Circuit &c)
	{
		int last = -1;

		circuits_++;
		for (unsigned step = 1; step <= c.path.hops; step++) {
			struct rt_end at;

			ASSERT_EQ(rt_path_walk(t, c.from, &c.path, step, &at), 0);
			int now = number({ own_ ? circuits_ : 0, at.host, at.port });
			if (last >= 0)
				needs_[last].push_back(now);
			last = now;
		}
	}

	// Removes buffers that depend on nothing that is left, until nothing or only cycles are left.
	bool cyclic() const
	{
		std::vector<std::vector<int>> needed_by(needs_.size());
		std::vector<size_t> open(needs_.size());
		std::vector<int> free;
		size_t taken = 0;

		for (size_t b = 0; b < needs_.size(); b++) {
			for (int next : needs_[b])
				needed_by[next].push_back((int)b);
			open[b] = needs_[b].size();
			if (open[b] == 0)
				free.push_back((int)b);
		}
		for (; !free.empty(); taken++) {
			int b = free.back();

			free.pop_back();
			for (int before : needed_by[b]) {
				if (--open[before] == 0)
					free.push_back(before);
			}
		}
		return taken < needs_.size();
	}

	size_t size() const { return needs_.size(); }

private:
	int number(const Buffer &b)
	{
		auto found = numbers_.emplace(b, (int)needs_.size());

		if (found.second)
			needs_.emplace_back();
		return found.first->second;
	}

	bool own_;
	unsigned circuits_ = 0;
	std::map<Buffer, int> numbers_;
	std::vector<std::vector<int>> needs_;
};

// Between all hosts, two flows each; those without a path are left out.
void all_circuits(const struct rt_topo *t, const uint8_t *up, std::vector<Circuit> *out)
{
	for (unsigned from = 0; from < rt_hosts(t); from++) {
		for (unsigned to = 0; to < rt_hosts(t); to++) {
			for (uint32_t flow = 0; flow < 2; flow++) {
				Circuit c = { from, {} };

				if (rt_path_find(t, up, from, to, flow, &c.path) == 0)
					out->push_back(c);
			}
		}
	}
}

Buffers buffers_of(const struct rt_topo *t, const std::vector<Circuit> &circuits, bool own)
{
	Buffers buffers(own);

	for (const Circuit &c : circuits)
		buffers.add(t, c);
	return buffers;
}

bool cyclic(const struct rt_topo *t, const uint8_t *up, bool own)
{
	std::vector<Circuit> circuits;

	all_circuits(t, up, &circuits);
	return buffers_of(t, circuits, own).cyclic();
}

// Circuits made before a loss exist together with those made after it, for every loss of one link.
TEST(Buffers, ThoseOfACircuitsOwnNeverWaitInACircle)
{
	for (const Spec &spec : small_specs()) {
		Topo t(spec);
		std::vector<Circuit> circuits;

		all_circuits(t, nullptr, &circuits);
		for (const Link &l : links_of(t)) {
			Live live(spec.hosts);

			live.cut(l.a);
			all_circuits(t, live, &circuits);
		}
		EXPECT_FALSE(buffers_of(t, circuits, true).cyclic())
			<< spec.text << ", seed " << seed();
	}
}

// The controls: the same paths through one buffer for each direction of a link.
TEST(Buffers, SharedOnesWaitInACircleRoundARing)
{
	for (unsigned n = 1; n <= 16; n++) {
		Topo ring("ring", n), chain("chain", n);

		EXPECT_EQ(cyclic(ring, nullptr, false), n >= 4) << n;
		EXPECT_FALSE(cyclic(chain, nullptr, false)) << n;
		EXPECT_FALSE(cyclic(ring, nullptr, true)) << n;
		if (n >= 4) {
			Live live(n);

			live.cut({ 0, 1 });
			EXPECT_FALSE(cyclic(ring, live, false))
				<< "a ring without a link is a chain";
		}
	}
}

TEST(Buffers, SharedOnesWaitInACircleInAMesh)
{
	EXPECT_TRUE(cyclic(Topo("mesh:3x3", 9), nullptr, false));
	EXPECT_FALSE(cyclic(Topo("mesh:3x3", 9), nullptr, true));
	EXPECT_TRUE(cyclic(Topo("torus:4x4", 16), nullptr, false));
	EXPECT_FALSE(cyclic(Topo("torus:4x4", 16), nullptr, true));
}

// Paths that meet a host twice by one port would wait for themselves: for this paths must be free of
// loops.
TEST(Buffers, APathWithALoopWaitsForItself)
{
	Topo t("ring", 3);
	Circuit loop = { 0, { 4, { 2, 2, 2, 2 } } };

	EXPECT_TRUE(buffers_of(t, { loop }, true).cyclic());
	EXPECT_EQ(rt_path_check(t, 0, &loop.path), -EINVAL);
	loop.path.hops = 2;
	EXPECT_FALSE(buffers_of(t, { loop }, true).cyclic());
}

TEST(Buffers, ACircuitHasOneAtEachHop)
{
	Topo t("ring", 8);
	std::vector<Circuit> circuits;
	size_t hops = 0;

	all_circuits(t, nullptr, &circuits);
	for (const Circuit &c : circuits)
		hops += c.path.hops;
	EXPECT_EQ(buffers_of(t, circuits, true).size(), hops);
	EXPECT_EQ(buffers_of(t, circuits, false).size(), 16u);
}

} // namespace
