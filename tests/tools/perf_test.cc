/* SPDX-License-Identifier: BSD-2-Clause */
/* Parts of the measuring tools that need no NIC: texts, statistics, metrics. */
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

extern "C" {
#include "pf_config.h"
#include "pf_hist.h"
#include "pf_pattern.h"
#include "pf_result.h"
}

namespace {

std::vector<uint64_t> sizes(const char *text)
{
	pf_sizes s = { nullptr, 0 };
	std::vector<uint64_t> v;

	if (pf_parse_sizes(text, &s) == 0)
		v.assign(s.v, s.v + s.n);
	free(s.v);
	return v;
}

using U = std::vector<uint64_t>;

TEST(Parse, Hosts)
{
	const char *hosts[2] = { nullptr, nullptr };

	for (const char *bad : { "", "a", ",", "a,", ",b", "a,b,c" }) {
		EXPECT_EQ(-EINVAL, pf_parse_hosts(bad, hosts)) << bad;
		EXPECT_TRUE(!hosts[0] && !hosts[1]) << bad;
	}
	EXPECT_EQ(0, pf_parse_hosts("a,b", hosts));
	EXPECT_EQ(0, pf_parse_hosts("host0,x", hosts));
	EXPECT_STREQ(hosts[0], "host0");
	EXPECT_STREQ(hosts[1], "x");
	free((void *)hosts[0]);
}

TEST(Parse, Names)
{
	auto name = [](size_t i) -> const char * {
		static const char *const names[] = { "line", "slot", "lines" };
		return names[i];
	};
	bool wanted[3] = { true, false, true };

	for (const char *bad : { "", "li", "line,", ",line", "slot,linee", "line;slot" }) {
		EXPECT_EQ(-EINVAL, pf_parse_names(bad, name, 3, wanted)) << bad;
		EXPECT_TRUE(wanted[0] && !wanted[1] && wanted[2]) << bad;
	}
	EXPECT_EQ(0, pf_parse_names("slot,lines,slot", name, 3, wanted));
	EXPECT_TRUE(!wanted[0] && wanted[1] && wanted[2]);
	EXPECT_EQ(0, pf_parse_names("line", name, 3, wanted));
	EXPECT_TRUE(wanted[0] && !wanted[1] && !wanted[2]);
}

TEST(Sizes, ListsUnitsAndRanges)
{
	EXPECT_EQ(sizes("4,64,1k"), (U{ 4, 64, 1024 }));
	EXPECT_EQ(sizes("1..8"), (U{ 1, 2, 4, 8 }));
	EXPECT_EQ(sizes("0..4"), (U{ 0, 1, 2, 4 }));
	EXPECT_EQ(sizes("3..20"), (U{ 3, 6, 12, 20 }));
	EXPECT_EQ(sizes("5..5"), (U{ 5 }));
	EXPECT_EQ(sizes("512k..1M"), (U{ 524288, 1048576 }));
	EXPECT_EQ(sizes("1G"), (U{ 1073741824 }));
}

TEST(Sizes, GarbageIsRefused)
{
	for (const char *bad : { "",
				 ",",
				 "4,",
				 ",4",
				 "x",
				 "4x",
				 "4kk",
				 "-1",
				 "+4",
				 " 4",
				 "4 ",
				 "1..",
				 "..4",
				 "8..4",
				 "1...4",
				 "2G",
				 "18446744073709551616",
				 "0x10",
				 "1e3",
				 "4,,8" })
		EXPECT_TRUE(sizes(bad).empty()) << bad;
}

TEST(Sizes, FailureLeavesTheOldList)
{
	pf_sizes s = { nullptr, 0 };

	ASSERT_EQ(pf_parse_sizes("7", &s), 0);
	EXPECT_NE(pf_parse_sizes("7,bad", &s), 0);
	ASSERT_EQ(s.n, 1u);
	EXPECT_EQ(s.v[0], 7u);
	free(s.v);
}

TEST(Percentiles, Text)
{
	double v[4];
	size_t n = 0;

	ASSERT_EQ(pf_parse_percentiles("min,50,99.9,max", v, 4, &n), 0);
	ASSERT_EQ(n, 4u);
	EXPECT_EQ(v[0], 0);
	EXPECT_EQ(v[2], 99.9);
	EXPECT_EQ(v[3], 100);
	for (const char *bad : { "", "50,", "101", "-1", "median", "1,2,3,4,5" })
		EXPECT_NE(pf_parse_percentiles(bad, v, 4, &n), 0) << bad;
	EXPECT_EQ(n, 4u);
}

TEST(Expect, Text)
{
	pf_expect e;

	ASSERT_EQ(pf_parse_expect("p99_us@1k<=20.5", &e), 0);
	EXPECT_STREQ(e.metric, "p99_us");
	EXPECT_FALSE(e.any_size);
	EXPECT_EQ(e.size, 1024u);
	EXPECT_EQ(e.compare, PF_LE);
	EXPECT_EQ(e.value, 20.5);
	ASSERT_EQ(pf_parse_expect("avg_us>1", &e), 0);
	EXPECT_TRUE(e.any_size);
	EXPECT_EQ(e.compare, PF_GT);
	for (const char *bad : { "", "avg_us", "avg_us=1", "<1", "avg_us<", "avg_us<x", "avg_us@<1",
				 "avg_us@x<1", "@4<1", "avg_us<1<2", "avg_us<=>1" })
		EXPECT_NE(pf_parse_expect(bad, &e), 0) << bad;
}

TEST(Pattern, EveryWrongByteIsSeen)
{
	for (uint32_t size : { 1, 7, 8, 9, 63, 100 }) {
		std::vector<uint8_t> buf(size);

		pf_fill(buf.data(), size, 3, 77);
		EXPECT_EQ(pf_first_wrong(buf.data(), size, 3, 77), size);
		for (uint32_t i = 0; i < size; i++) {
			buf[i] ^= 1;
			EXPECT_EQ(pf_first_wrong(buf.data(), size, 3, 77), i / 8 * 8);
			buf[i] ^= 1;
		}
	}
}

TEST(Pattern, OtherMessagesAndOtherPlacesAreSeen)
{
	std::vector<uint8_t> buf(64);

	pf_fill(buf.data(), 64, 3, 77);
	EXPECT_LT(pf_first_wrong(buf.data(), 64, 2, 77), 64u);
	EXPECT_LT(pf_first_wrong(buf.data(), 64, 3, 78), 64u);
	EXPECT_LT(pf_first_wrong(buf.data(), 64, 3, 76), 64u);
	EXPECT_LT(pf_first_wrong(buf.data() + 8, 56, 3, 77), 56u);
	EXPECT_EQ(pf_first_wrong(buf.data(), 33, 3, 77), 33u);
}

/* The percentile by the definition of the nearest rank. */
uint64_t by_definition(std::vector<uint64_t> v, double p)
{
	std::sort(v.begin(), v.end());
	for (size_t i = 0; i < v.size(); i++) {
		if ((double)(i + 1) * 100.0 >= p * (double)v.size() - 1e-6)
			return v[i];
	}
	return v.back();
}

class Hist : public ::testing::Test {
protected:
	void SetUp() override { ASSERT_EQ(pf_hist_init(&h), 0); }
	void TearDown() override { pf_hist_fini(&h); }
	pf_hist h;
};

TEST_F(Hist, EmptyIsZero)
{
	EXPECT_EQ(pf_hist_percentile(&h, 50), 0u);
	EXPECT_EQ(pf_hist_mean(&h), 0);
	EXPECT_EQ(pf_hist_stddev(&h), 0);
}

TEST_F(Hist, ExactOnBothSidesOfTheFineRange)
{
	std::mt19937_64 random(7);
	std::vector<uint64_t> v;

	for (int i = 0; i < 5000; i++) {
		uint64_t ns = random() % (i % 3 ? 3000 : 4 * PF_HIST_FINE);

		v.push_back(ns);
		ASSERT_EQ(pf_hist_add(&h, ns), 0);
		if (i == 2500)
			pf_hist_percentile(&h, 99); /* sorts in between */
	}
	for (double p : { 0.0, 0.01, 1.0, 25.0, 50.0, 66.6, 90.0, 99.0, 99.9, 99.99, 100.0 })
		EXPECT_EQ(pf_hist_percentile(&h, p), by_definition(v, p)) << p;
	EXPECT_EQ(h.max, *std::max_element(v.begin(), v.end()));
	EXPECT_EQ(h.min, *std::min_element(v.begin(), v.end()));
}

TEST_F(Hist, RanksOfRoundNumbersDoNotSlip)
{
	for (uint64_t i = 1; i <= 1000; i++)
		ASSERT_EQ(pf_hist_add(&h, i), 0);
	EXPECT_EQ(pf_hist_percentile(&h, 99.9), 999u);
	EXPECT_EQ(pf_hist_percentile(&h, 99), 990u);
	EXPECT_EQ(pf_hist_percentile(&h, 50), 500u);
	EXPECT_EQ(pf_hist_percentile(&h, 0.1), 1u);
}

TEST_F(Hist, MeanDeviationAndReset)
{
	for (uint64_t ns : { 2, 4, 4, 4, 5, 5, 7, 9 })
		ASSERT_EQ(pf_hist_add(&h, ns), 0);
	EXPECT_DOUBLE_EQ(pf_hist_mean(&h), 5);
	EXPECT_NEAR(pf_hist_stddev(&h), std::sqrt(32.0 / 7), 1e-9);
	pf_hist_reset(&h);
	EXPECT_EQ(h.count, 0u);
	ASSERT_EQ(pf_hist_add(&h, 1), 0);
	EXPECT_EQ(pf_hist_percentile(&h, 100), 1u);
}

class Metrics : public Hist {
protected:
	void SetUp() override
	{
		Hist::SetUp();
		tool.kind = PF_LAT;
		tool.name = "test";
		cfg.tool = &tool;
		cfg.percentiles[0] = 50;
		cfg.percentiles[1] = 99.9;
		cfg.percentiles[2] = 100;
		cfg.percentile_count = 3;
		r.hist = &h;
		r.size = 8;
	}
	double value(const char *key)
	{
		double v = -1;

		EXPECT_EQ(pf_metric_value(&cfg, &r, key, &v), 0) << key;
		return v;
	}
	pf_tool tool = {};
	pf_config cfg = {};
	pf_result r = {};
};

TEST_F(Metrics, LatencyIsHalfOfTheRoundTripAndAReadIsWhole)
{
	ASSERT_EQ(pf_hist_add(&h, 4000), 0);
	EXPECT_DOUBLE_EQ(value("avg_us"), 2);
	EXPECT_DOUBLE_EQ(value("p50_us"), 2);
	EXPECT_DOUBLE_EQ(value("p99.9_us"), 2);
	EXPECT_DOUBLE_EQ(value("p99_9_us"), 2);
	cfg.op = PF_READ;
	EXPECT_DOUBLE_EQ(value("max_us"), 4);
}

TEST_F(Metrics, ASampleOfManyCountsAsTheirMean)
{
	ASSERT_EQ(pf_hist_add(&h, 4000), 0);
	cfg.batch = 10;
	EXPECT_DOUBLE_EQ(value("p50_us"), 0.2);
	cfg.op = PF_READ;
	EXPECT_DOUBLE_EQ(value("p50_us"), 0.4);
	cfg.op = PF_SEND;
	cfg.post_time = true;
	EXPECT_DOUBLE_EQ(value("p50_us"), 0.4);
}

TEST_F(Metrics, Rates)
{
	tool.kind = PF_BW;
	r.bytes = 3000000;
	r.messages = 500;
	r.elapsed_ns = 500000000;
	EXPECT_DOUBLE_EQ(value("bandwidth_mb_per_s"), 6);
	EXPECT_DOUBLE_EQ(value("messages_per_s"), 1000);
	double v;
	EXPECT_NE(pf_metric_value(&cfg, &r, "avg_us", &v), 0);
}

TEST_F(Metrics, NamesAreKnownPerTool)
{
	EXPECT_TRUE(pf_metric_known(&tool, "p99.99_us"));
	for (const char *bad : { "", "p_us", "p101_us", "px_us", "p99", "round_p99_us",
				 "bandwidth_mb_per_s", "latency" })
		EXPECT_FALSE(pf_metric_known(&tool, bad)) << bad;
	tool.kind = PF_RATE;
	EXPECT_TRUE(pf_metric_known(&tool, "round_p99_us"));
	EXPECT_FALSE(pf_metric_known(&tool, "p99_us"));
}

TEST_F(Metrics, ColumnsHaveNoDoubles)
{
	pf_metric m[PF_MAX_METRICS];
	size_t n = pf_metrics(&cfg, &r, m);
	std::vector<std::string> keys;

	for (size_t i = 0; i < n; i++)
		keys.push_back(m[i].key);
	EXPECT_EQ(keys, (std::vector<std::string>{ "avg_us", "min_us", "max_us", "stddev_us",
						   "p50_us", "p99_9_us" }));
}

TEST_F(Metrics, ExpectationsAreCounted)
{
	ASSERT_EQ(pf_hist_add(&h, 4000), 0);
	ASSERT_EQ(pf_parse_expect("avg_us<2.1", &cfg.expects[0]), 0);
	ASSERT_EQ(pf_parse_expect("avg_us<2", &cfg.expects[1]), 0);
	ASSERT_EQ(pf_parse_expect("avg_us>=2", &cfg.expects[2]), 0);
	ASSERT_EQ(pf_parse_expect("avg_us@16<1", &cfg.expects[3]), 0);
	cfg.expect_count = 4;
	EXPECT_EQ(pf_check_expects(&cfg, &r), 1u);
	r.size = 16;
	EXPECT_EQ(pf_check_expects(&cfg, &r), 2u);
}

} // namespace
