// SPDX-License-Identifier: BSD-2-Clause
// Paths over live links, compared with a second, plainer calculation: every ring, chain, mesh and
// torus of up to 16 hosts and sixty random graphs, with every loss of one or two links.
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <numeric>
#include <set>

#include "topo.h"

namespace {

constexpr unsigned FAR = 1000;

// Distances by Floyd and Warshall, and which hosts are joined at all, by merging sets.
class Oracle {
public:
	Oracle(unsigned hosts, const std::vector<Link> &links, const std::vector<bool> &down)
	    : hosts_(hosts), distance_(hosts * hosts, FAR), set_(hosts)
	{
		std::iota(set_.begin(), set_.end(), 0u);
		for (unsigned h = 0; h < hosts; h++)
			at(h, h) = 0;
		for (size_t i = 0; i < links.size(); i++) {
			if (!down[i])
				join(links[i].a.host, links[i].b.host);
		}
		for (unsigned k = 0; k < hosts; k++) {
			for (unsigned i = 0; i < hosts; i++)
				relax(i, k);
		}
	}
	unsigned distance(unsigned a, unsigned b) const { return distance_[a * hosts_ + b]; }
	bool joined(unsigned a, unsigned b) const { return set_[a] == set_[b]; }

private:
	unsigned &at(unsigned a, unsigned b) { return distance_[a * hosts_ + b]; }
	void join(unsigned a, unsigned b)
	{
		unsigned old = set_[a], now = set_[b];

		at(a, b) = at(b, a) = 1;
		std::replace(set_.begin(), set_.end(), old, now);
	}
	void relax(unsigned i, unsigned k)
	{
		const unsigned *via = &distance_[k * hosts_];
		unsigned *row = &distance_[i * hosts_], far = row[k];

		if (far == FAR)
			return;
		for (unsigned j = 0; j < hosts_; j++) {
			if (far + via[j] < row[j])
				row[j] = far + via[j];
		}
	}

	unsigned hosts_;
	std::vector<unsigned> distance_, set_;
};

// A topology with links down.  Either end reports a loss, or both do.
class Damaged {
public:
	Damaged(const Spec &spec, const struct rt_topo *t, const std::vector<Link> &links,
		const std::vector<unsigned> &lost)
	    : spec_(spec), t_(t), links_(links), down_(links.size(), false), live(spec.hosts),
	      oracle(spec.hosts, links, mark(lost))
	{
		for (unsigned i : lost) {
			if ((i + lost.size()) % 3 != 0)
				live.cut(links[i].a);
			if ((i + lost.size()) % 3 != 1)
				live.cut(links[i].b);
		}
	}

	// The error of the path that is found, or nullptr.
	const char *judge(unsigned from, unsigned to, uint32_t flow) const
	{
		struct rt_path path, back;
		struct rt_end end;
		unsigned want = oracle.distance(from, to);
		int rc = rt_path_find(t_, live, from, to, flow, &path);

		if (oracle.joined(from, to) != (rc == 0) || (rc != 0 && rc != -EHOSTUNREACH))
			return "reached, or not reached, against the oracle";
		if (rt_distance(t_, live, from, to) != (rc == 0 ? want : UINT_MAX))
			return "another distance than the oracle's";
		if (rc != 0)
			return nullptr;
		if (path.hops != want)
			return "another number of hops than the oracle's";
		if (const char *wrong = walk(from, to, path))
			return wrong;
		if (rt_path_check(t_, from, &path) != 0)
			return "not taken for a path";
		if (rt_path_reverse(t_, from, &path, &back) != 0 || back.hops != path.hops ||
		    rt_path_walk(t_, to, &back, back.hops, &end) != 0 || end.host != from)
			return "the path back does not lead back";
		return same_links(from, to, path, back) ? nullptr
							: "the path back takes other links";
	}

	std::string text() const
	{
		std::string s = spec_.text + " of " + std::to_string(spec_.hosts) + " hosts, down:";

		for (size_t i = 0; i < links_.size(); i++) {
			if (down_[i])
				s += " " + std::to_string(links_[i].a.host) + "-" +
				     std::to_string(links_[i].b.host);
		}
		return s;
	}

private:
	const std::vector<bool> &mark(const std::vector<unsigned> &lost)
	{
		for (unsigned i : lost)
			down_[i] = true;
		return down_;
	}
	bool usable(struct rt_end end) const
	{
		for (size_t i = 0; i < links_.size(); i++) {
			const Link &l = links_[i];

			if ((l.a.host == end.host && l.a.port == end.port) ||
			    (l.b.host == end.host && l.b.port == end.port))
				return !down_[i];
		}
		return false;
	}
	const char *walk(unsigned from, unsigned to, const struct rt_path &path) const
	{
		std::vector<bool> met(spec_.hosts, false);
		struct rt_end at, next;

		for (unsigned step = 0; step <= path.hops; step++) {
			if (rt_path_walk(t_, from, &path, step, &at) != 0)
				return "the path leaves the topology";
			if (met[at.host])
				return "a host is met twice";
			met[at.host] = true;
			if (step == path.hops)
				break;
			if (oracle.distance(at.host, to) != (unsigned)path.hops - step)
				return "a hop does not bring nearer";
			if (!usable({ at.host, path.port[step] }))
				return "over a link that is down";
			next = rt_topo_peer(t_, at.host, path.port[step]);
			if (rt_path_walk(t_, from, &path, step + 1, &at) != 0 ||
			    at.host != next.host || at.port != next.port)
				return "the walk does not follow the links";
		}
		return at.host == to ? nullptr : "the path ends elsewhere";
	}
	bool same_links(unsigned from, unsigned to, const struct rt_path &path,
			const struct rt_path &back) const
	{
		struct rt_end there, here;

		for (unsigned step = 0; step < path.hops; step++) {
			rt_path_walk(t_, from, &path, step + 1, &there);
			rt_path_walk(t_, to, &back, path.hops - 1 - step, &here);
			if (here.host != there.host ||
			    back.port[path.hops - 1 - step] != there.port)
				return false;
		}
		return true;
	}

	const Spec &spec_;
	const struct rt_topo *t_;
	const std::vector<Link> &links_;
	std::vector<bool> down_;

public:
	Live live;
	Oracle oracle;
};

void judge_all(const Damaged &d, unsigned hosts, uint32_t flow)
{
	for (unsigned from = 0; from < hosts; from++) {
		for (unsigned to = 0; to < hosts; to++) {
			const char *wrong = d.judge(from, to, flow + from * 31 + to);

			if (wrong != nullptr)
				ADD_FAILURE() << wrong << ": " << from << " to " << to << " in "
					      << d.text() << ", seed " << seed();
		}
	}
}

TEST(Path, EveryLossOfUpToTwoLinks)
{
	unsigned long sets = 0;

	for (const Spec &spec : small_specs()) {
		Topo t(spec);
		std::vector<Link> links = links_of(t);
		unsigned n = (unsigned)links.size();

		judge_all(Damaged(spec, t, links, {}), spec.hosts, 0);
		for (unsigned i = 0; i < n; i++) {
			judge_all(Damaged(spec, t, links, { i }), spec.hosts, i);
			for (unsigned j = i + 1; j < n; j++)
				judge_all(Damaged(spec, t, links, { i, j }), spec.hosts, i + j);
		}
		sets += 1 + n * (n + 1ul) / 2;
		ASSERT_FALSE(HasFailure());
	}
	RecordProperty("sets_of_losses", std::to_string(sets));
}

TEST(Path, EveryLossOfAHost)
{
	for (const Spec &spec : small_specs()) {
		Topo t(spec);
		std::vector<Link> links = links_of(t);

		for (unsigned dead = 0; dead < spec.hosts; dead++) {
			std::vector<unsigned> lost;

			for (unsigned i = 0; i < links.size(); i++) {
				if (links[i].a.host == dead || links[i].b.host == dead)
					lost.push_back(i);
			}
			judge_all(Damaged(spec, t, links, lost), spec.hosts, dead);
		}
		ASSERT_FALSE(HasFailure());
	}
}

// The first ports of all shortest paths, by the second calculation.
std::set<unsigned> equally_short(const struct rt_topo *t, const Damaged &d, unsigned from,
				 unsigned to)
{
	std::set<unsigned> ports;

	for (unsigned p = 1; p < rt_topo_ports(t, from); p++) {
		unsigned peer = rt_topo_peer(t, from, p).host;

		if (rt_link_up(t, d.live, from, p) &&
		    d.oracle.distance(peer, to) + 1 == d.oracle.distance(from, to))
			ports.insert(p);
	}
	return ports;
}

void expect_shared(const struct rt_topo *t, const Damaged &d, unsigned from, unsigned to,
		   uint32_t stride)
{
	std::set<unsigned> want = equally_short(t, d, from, to), used;
	struct rt_path path;

	for (uint32_t flow = 0; flow < 64; flow++) {
		ASSERT_EQ(rt_path_find(t, d.live, from, to, flow * stride, &path), 0);
		used.insert(path.port[0]);
	}
	EXPECT_EQ(used, want) << from << " to " << to << " in " << d.text() << ", stride "
			      << stride;
}

// Without loss and with one at random; flows that count, and flows whose low bits never change.
TEST(Path, FlowsShareEquallyShortPaths)
{
	Random random(seed());

	for (const Spec &spec : small_specs()) {
		Topo t(spec);
		std::vector<Link> links = links_of(t);
		std::vector<std::vector<unsigned>> losses = { {} };

		if (!links.empty())
			losses.push_back({ random.below((unsigned)links.size()) });
		for (const auto &lost : losses) {
			Damaged d(spec, t, links, lost);

			for (unsigned from = 0; from < spec.hosts; from++) {
				for (unsigned to = 0; to < spec.hosts; to++) {
					if (from != to && d.oracle.joined(from, to))
						expect_shared(t, d, from, to,
							      to % 2 == 0 ? 1 : 4096);
				}
			}
		}
		ASSERT_FALSE(HasFailure());
	}
}

// All of the 20 shortest paths between the corners of a mesh, not only all first ports.
TEST(Path, FlowsShareWholePaths)
{
	Topo t("mesh:4x4", 16);
	std::set<std::vector<uint8_t>> paths;
	struct rt_path path;

	for (uint32_t flow = 0; flow < 2000; flow++) {
		ASSERT_EQ(rt_path_find(t, nullptr, 0, 15, flow, &path), 0);
		paths.insert({ path.port, path.port + path.hops });
	}
	EXPECT_EQ(paths.size(), 20u);
}

TEST(Path, BothWaysRoundAnEvenRing)
{
	Topo t("ring", 8);
	unsigned left = 0;
	struct rt_path path;

	for (uint32_t flow = 0; flow < 1000; flow++) {
		ASSERT_EQ(rt_path_find(t, nullptr, 1, 5, flow, &path), 0);
		left += path.port[0] == 1;
	}
	EXPECT_NEAR(left, 500, 50);
}

TEST(Path, OneFlowKeepsItsPath)
{
	Topo t("torus:4x4", 16);
	struct rt_path a, b;

	for (uint32_t flow = 0; flow < 100; flow++) {
		ASSERT_EQ(rt_path_find(t, nullptr, 3, 9, flow, &a), 0);
		ASSERT_EQ(rt_path_find(t, nullptr, 3, 9, flow, &b), 0);
		EXPECT_EQ(memcmp(&a, &b, sizeof(a)), 0);
	}
}

// The two links furthest apart bound every path.
TEST(Path, TheLongestPathIsTheDiameter)
{
	for (const Spec &spec : regular_specs()) {
		Topo t(spec);
		unsigned n = spec.hosts, w = n, h = 1, longest = 0, want;
		bool wraps = spec.text[0] == 'r' || spec.text[0] == 't';

		sscanf(spec.text.c_str(), "%*[a-z]:%ux%u", &w, &h);
		want = wraps ? w / 2 + h / 2 : w - 1 + h - 1;
		for (unsigned from = 0; from < n; from++) {
			for (unsigned to = 0; to < n; to++)
				longest = std::max(longest, rt_distance(t, nullptr, from, to));
		}
		EXPECT_EQ(longest, want) << spec.text << " of " << n;
	}
}

TEST(Path, KindsFollowHops)
{
	EXPECT_EQ(rt_kind_of(0), RT_SELF);
	EXPECT_EQ(rt_kind_of(1), RT_NEIGHBOUR);
	EXPECT_EQ(rt_kind_of(2), RT_RELAYED);
	EXPECT_EQ(rt_kind_of(RT_PATH_MAX), RT_RELAYED);
	EXPECT_EQ(rt_kind_of(RT_PATH_MAX + 1), RT_NONE);
	EXPECT_EQ(rt_kind_of(UINT_MAX), RT_NONE);
}

TEST(Path, PathsOfMoreThanTheLongestAreNotUsed)
{
	Topo t("ring", RT_HOSTS_MAX);
	struct rt_path path;
	char text[160];

	ASSERT_EQ(rt_path_find(t, nullptr, 1000, 40, 0, &path), 0);
	EXPECT_EQ(path.hops, RT_PATH_MAX);
	EXPECT_EQ(rt_path_check(t, 1000, &path), 0);
	EXPECT_EQ(rt_path_find(t, nullptr, 1000, 41, 0, &path), -EHOSTUNREACH);
	EXPECT_EQ(rt_distance(t, nullptr, 1000, 40), RT_PATH_MAX);
	EXPECT_EQ(rt_distance(t, nullptr, 1000, 41), UINT_MAX);
	rt_topo_reason(t, nullptr, 1000, 41, text, sizeof(text));
	EXPECT_STREQ(text, "host 41 is 65 hops away, and messages go up to 64");
	rt_topo_reason(t, nullptr, 1000, 40, text, sizeof(text));
	EXPECT_STREQ(text, "");
}

TEST(Path, HostsThatDoNotExistAreRefused)
{
	Topo t("ring", 3);
	struct rt_path path = {};
	struct rt_end end;

	EXPECT_EQ(rt_path_find(t, nullptr, 3, 0, 0, &path), -EINVAL);
	EXPECT_EQ(rt_path_find(t, nullptr, 0, 3, 0, &path), -EINVAL);
	EXPECT_EQ(rt_path_walk(t, 3, &path, 0, &end), -EINVAL);
	EXPECT_EQ(rt_path_check(t, 3, &path), -EINVAL);
	EXPECT_EQ(rt_path_reverse(t, 3, &path, &path), -EINVAL);
}

// Nothing that arrives may lead out of bounds, and a refused path leaves the output alone.
TEST(Path, HostilePathsNeverLeaveTheTopology)
{
	Random random(seed());
	unsigned long accepted = 0;

	for (const Spec &spec : small_specs()) {
		Topo t(spec);

		for (unsigned i = 0; i < 500; i++) {
			struct rt_path path, back;
			struct rt_end end = { 9999, 99 };
			unsigned from = random.below(spec.hosts + 1), step = random.below(70);

			path.hops = (uint8_t)(i % 2 ? random.next() : random.below(5));
			for (uint8_t &port : path.port)
				port = (uint8_t)(i % 3 ? 1 + random.below(3) : random.next());
			if (rt_path_walk(t, from, &path, step, &end) == 0) {
				accepted++;
				ASSERT_LE(step, path.hops);
				ASSERT_LE(path.hops, RT_PATH_MAX);
				ASSERT_LT(end.host, spec.hosts);
				ASSERT_LT(end.port, rt_topo_ports(t, end.host));
			} else {
				ASSERT_EQ(end.host, 9999u);
			}
			if (rt_path_check(t, from, &path) == 0) {
				ASSERT_LT(path.hops, spec.hosts);
				ASSERT_EQ(rt_path_reverse(t, from, &path, &back), 0);
				ASSERT_EQ(rt_path_walk(t, from, &path, path.hops, &end), 0);
				ASSERT_EQ(rt_path_check(t, end.host, &back), 0);
			}
		}
	}
	EXPECT_GT(accepted, 1000u);
}

TEST(Path, OverlongPathsAndStepsAreRefused)
{
	Topo t("ring", 3);
	struct rt_path path = { RT_PATH_MAX, {} };
	struct rt_end end;

	memset(path.port, 2, sizeof(path.port));
	EXPECT_EQ(rt_path_walk(t, 0, &path, RT_PATH_MAX, &end), 0);
	EXPECT_EQ(rt_path_walk(t, 0, &path, RT_PATH_MAX + 1, &end), -EINVAL);
	path.hops = RT_PATH_MAX + 1;
	EXPECT_EQ(rt_path_walk(t, 0, &path, 1, &end), -EINVAL);
	EXPECT_EQ(rt_path_check(t, 0, &path), -EINVAL);
	EXPECT_EQ(rt_path_reverse(t, 0, &path, &path), -EINVAL);
	path.hops = 2;
	EXPECT_EQ(rt_path_walk(t, 0, &path, 3, &end), -EINVAL);
	EXPECT_EQ(rt_path_check(t, 0, &path), 0);
	path.hops = 3;
	EXPECT_EQ(rt_path_check(t, 0, &path), -EINVAL) << "a host is met twice";
	path.port[1] = RT_PORT_SELF;
	EXPECT_EQ(rt_path_walk(t, 0, &path, 1, &end), 0);
	EXPECT_EQ(rt_path_walk(t, 0, &path, 2, &end), -EINVAL);
	EXPECT_EQ(rt_path_reverse(t, 0, &path, &path), -EINVAL);
}

TEST(Path, APathMayBeReversedInPlace)
{
	Topo t("chain", 4);
	struct rt_path path = { 3, { 1, 2, 2 } };

	ASSERT_EQ(rt_path_reverse(t, 0, &path, &path), 0);
	EXPECT_EQ(path.hops, 3u);
	EXPECT_EQ(path.port[0], 1u);
	EXPECT_EQ(path.port[1], 1u);
	EXPECT_EQ(path.port[2], 1u);
}

std::string reason(const struct rt_topo *t, const uint8_t *up, unsigned from, unsigned to)
{
	char text[200];

	memset(text, '#', sizeof(text));
	rt_topo_reason(t, up, from, to, text, sizeof(text));
	return text;
}

TEST(Path, ReasonsNameTheLinksThatCutOff)
{
	Topo ring("ring", 6), chain("chain", 5), graph("graph:0-1,0-1,1-2", 3),
		mesh("mesh:4x4", 16);
	Live two(6), ends(5), twins(3), corner(16), middle(16);

	EXPECT_EQ(reason(ring, two, 0, 3), "");
	EXPECT_EQ(reason(ring, two, 0, 6), "no host 6 in a fabric of 6 hosts");
	EXPECT_EQ(reason(ring, two, 7, 0), "no host 7 in a fabric of 6 hosts");
	two.cut({ 1, 2 });
	EXPECT_EQ(reason(ring, two, 0, 3), "");
	two.cut({ 4, 1 });
	EXPECT_EQ(reason(ring, two, 0, 3),
		  "host 3 cannot be reached while links 1-2 and 3-4 are down");
	EXPECT_EQ(reason(ring, two, 0, 5), "");
	ends.cut({ 1, 1 });
	EXPECT_EQ(reason(chain, ends, 0, 4), "host 4 cannot be reached while link 0-1 is down");
	ends.cut({ 2, 2 });
	ends.cut({ 3, 2 });
	EXPECT_EQ(reason(chain, ends, 0, 4),
		  "host 4 cannot be reached while links 0-1 and 3-4 are down");
	twins.cut({ 0, 1 });
	EXPECT_EQ(reason(graph, twins, 0, 2), "");
	twins.cut({ 1, 2 });
	EXPECT_EQ(reason(graph, twins, 0, 2),
		  "host 2 cannot be reached while links 0-1 and 0-1.1 are down");
	for (uint8_t port = 1; port < 5; port++) {
		middle.cut({ 5, port });
		middle.cut({ 10, port });
	}
	EXPECT_EQ(
		reason(mesh, middle, 5, 10),
		"host 10 cannot be reached while links 1-5, 4-5, 5-6, 5-9, 6-10, 9-10 and 2 more are down");
	EXPECT_EQ(
		reason(mesh, middle, 0, 5),
		"host 5 cannot be reached while links 1-5, 4-5, 5-6, 5-9, 6-10, 9-10 and 2 more are down");
}

TEST(Path, AReasonIsGivenExactlyWhenThereIsNoPath)
{
	for (const Spec &spec : small_specs()) {
		Topo t(spec);
		std::vector<Link> links = links_of(t);

		for (unsigned i = 0; i < links.size(); i++) {
			Damaged d(spec, t, links, { i });
			std::string name =
				std::to_string(std::min(links[i].a.host, links[i].b.host)) + "-" +
				std::to_string(std::max(links[i].a.host, links[i].b.host));

			for (unsigned to = 0; to < spec.hosts; to++) {
				std::string want = "host " + std::to_string(to) +
						   " cannot be reached while link " + name +
						   " is down";

				EXPECT_EQ(reason(t, d.live, 0, to),
					  d.oracle.joined(0, to) ? "" : want)
					<< d.text();
			}
		}
	}
}

} // namespace
