// SPDX-License-Identifier: BSD-2-Clause
// The rules by program, address and port, and the hosts of addresses.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <memory>
#include <string>

extern "C" {
#include "vs_rules.h"
}

namespace {
vs_addr addr(const char *text, uint16_t port = 0)
{
	sockaddr_in6 v6 = {};
	sockaddr_in v4 = {};
	vs_addr out = {};

	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
		v4.sin_family = AF_INET;
		v4.sin_port = htons(port);
		EXPECT_TRUE(vs_addr_of(reinterpret_cast<sockaddr *>(&v4), sizeof(v4), &out));
	} else {
		EXPECT_EQ(inet_pton(AF_INET6, text, &v6.sin6_addr), 1) << text;
		v6.sin6_family = AF_INET6;
		v6.sin6_port = htons(port);
		EXPECT_TRUE(vs_addr_of(reinterpret_cast<sockaddr *>(&v6), sizeof(v6), &out));
	}
	return out;
}

class Rules : public testing::Test {
protected:
	vs_policy policy(const char *program, const char *peer, uint16_t peer_port = 1,
			 uint16_t local_port = 2)
	{
		vs_addr p = addr(peer, peer_port), l = addr("10.0.0.9", local_port);

		return vs_rules_policy(rules.get(), program, &p, &l, VS_AUTO);
	}

	int parse(const char *text) { return vs_rules_parse(rules.get(), text, bad); }
	int map(const char *text) { return vs_map_parse(rules.get(), text, bad); }

	std::string host(const char *a)
	{
		char name[VS_NAME_MAX];
		vs_addr at = addr(a);

		return vs_map_host(rules.get(), &at, name) ? name : "none";
	}

	std::unique_ptr<vs_rules> rules = std::make_unique<vs_rules>();
	char bad[VS_BAD_MAX];
};
} // namespace

TEST_F(Rules, WithoutAnyTheDefaultDecides)
{
	EXPECT_EQ(policy("redis-server", "10.0.0.1"), VS_AUTO);
}

TEST_F(Rules, TheFirstThatFitsDecides)
{
	ASSERT_EQ(parse("program=sshd,never; port=6379,eager ;address=10.1.0.0/16,never"), 0);
	EXPECT_EQ(policy("sshd", "10.1.2.3", 6379), VS_NEVER);
	EXPECT_EQ(policy("redis-server", "10.1.2.3", 6379), VS_EAGER);
	EXPECT_EQ(policy("redis-server", "10.1.2.3", 80), VS_NEVER);
	EXPECT_EQ(policy("redis-server", "10.2.2.3", 80), VS_AUTO);
}

TEST_F(Rules, ThePortOfEitherEndFits)
{
	ASSERT_EQ(parse("port=100-200,never"), 0);
	EXPECT_EQ(policy("a", "10.0.0.1", 150, 5), VS_NEVER);
	EXPECT_EQ(policy("a", "10.0.0.1", 5, 200), VS_NEVER);
	EXPECT_EQ(policy("a", "10.0.0.1", 99, 201), VS_AUTO);
}

TEST_F(Rules, ProgramsArePatterns)
{
	ASSERT_EQ(parse("program=redis-*,never"), 0);
	EXPECT_EQ(policy("redis-cli", "10.0.0.1"), VS_NEVER);
	EXPECT_EQ(policy("redis", "10.0.0.1"), VS_AUTO);
}

TEST_F(Rules, AnIPv4AddressInIPv6IsTheSame)
{
	ASSERT_EQ(parse("address=10.1.0.0/16,never"), 0);
	EXPECT_EQ(policy("a", "::ffff:10.1.2.3"), VS_NEVER);
	EXPECT_EQ(policy("a", "fd00::1"), VS_AUTO);
}

TEST_F(Rules, PrefixesNeedNotEndAtABytesEnd)
{
	ASSERT_EQ(parse("address=10.1.4.0/22,never"), 0);
	EXPECT_EQ(policy("a", "10.1.7.255"), VS_NEVER);
	EXPECT_EQ(policy("a", "10.1.8.0"), VS_AUTO);
}

TEST_F(Rules, WhatIsWrongIsRefusedAndNamed)
{
	for (const char *text :
	     { "sometimes", "port=1", "port=70000,never", "port=9-3,never",
	       "address=10.0.0.256,never", "address=10.0.0.0/33,never", "program=,never",
	       "colour=red,never", "never,port=1", "port=,auto" }) {
		auto fresh = std::make_unique<vs_rules>();

		EXPECT_EQ(vs_rules_parse(fresh.get(), text, bad), -EINVAL) << text;
		EXPECT_STREQ(bad, text);
	}
}

TEST_F(Rules, ThereIsALimit)
{
	std::string text;

	for (int i = 0; i <= VS_RULES_MAX; i++)
		text += "never;";
	EXPECT_EQ(parse(text.c_str()), -E2BIG);
	EXPECT_EQ(rules->rules, size_t(VS_RULES_MAX));
}

TEST_F(Rules, HostsOfAddresses)
{
	ASSERT_EQ(map("10.0.0.1 left; fd00::/64 right;127.77.0.9/32 other"), 0);
	EXPECT_EQ(host("10.0.0.1"), "left");
	EXPECT_EQ(host("fd00::42"), "right");
	EXPECT_EQ(host("127.77.0.9"), "other");
	EXPECT_EQ(host("10.0.0.2"), "none");
	for (const char *text : { "10.0.0.1", "10.0.0.1 ", "left 10.0.0.1", "10.0.0.1 a b" })
		EXPECT_EQ(map(text), -EINVAL) << text;
}

TEST_F(Rules, EmulatedHostsHaveTheirAddresses)
{
	vs_addr a;

	EXPECT_EQ(host("127.77.0.1"), "0");
	EXPECT_EQ(host("127.77.1.0"), "255");
	EXPECT_EQ(host("127.77.0.0"), "none");
	EXPECT_EQ(host("127.76.0.1"), "none");
	ASSERT_TRUE(vs_emulated_addr(255, &a));
	EXPECT_EQ(memcmp(a.b, addr("127.77.1.0").b, sizeof(a.b)), 0);
	EXPECT_FALSE(vs_emulated_addr(65534, &a));
	EXPECT_FALSE(vs_addr_is_loopback(&a));
	a = addr("127.0.0.1");
	EXPECT_TRUE(vs_addr_is_loopback(&a));
	a = addr("::1");
	EXPECT_TRUE(vs_addr_is_loopback(&a));
}
