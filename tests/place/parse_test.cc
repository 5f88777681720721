/* SPDX-License-Identifier: BSD-2-Clause */
#include "machines.h"

#include <cerrno>

TEST(PlaceParse, EveryRoleAndPlace)
{
	for (int role = 0; role < U_PLACE_ROLES; role++) {
		for (int where = U_PLACE_NONE; where <= U_PLACE_LIST; where++) {
			std::string place = where == U_PLACE_LIST ? "1,3-4"
								  : u_place_where_words[where];
			std::string of = u_place_role_words[role] + ("=" + place);
			u_place_rules r = {};
			char error[U_PLACE_ERROR] = "";
			int rc = u_place_parse(of.c_str(), &r, error);

			if (role == U_PLACE_APPLICATION && where > U_PLACE_NONE &&
			    where < U_PLACE_DEVICE) {
				EXPECT_EQ(rc, -EINVAL) << of;
				continue;
			}
			ASSERT_EQ(rc, 0) << of << ": " << error;
			for (int other = 0; other < U_PLACE_ROLES; other++)
				EXPECT_EQ(r.of[other].where, other == role ? where : U_PLACE_NONE)
					<< of;
			EXPECT_EQ(text(r.of[role].list), where == U_PLACE_LIST ? "1,3-4" : "");
			EXPECT_FALSE(r.strict);
		}
	}
}

TEST(PlaceParse, SeveralRules)
{
	u_place_rules r = rules("service=0;relay=1-3;strict;transfer=shared-cache");

	EXPECT_EQ(text(r.of[U_PLACE_SERVICE].list), "0");
	EXPECT_EQ(text(r.of[U_PLACE_RELAY].list), "1-3");
	EXPECT_EQ(r.of[U_PLACE_TRANSFER].where, U_PLACE_SHARED_CACHE);
	EXPECT_EQ(r.of[U_PLACE_APPLICATION].where, U_PLACE_NONE);
	EXPECT_TRUE(r.strict);
	EXPECT_FALSE(r.dynamic);
	EXPECT_TRUE(rules("dynamic;service=shared-cache").dynamic);
	r = rules("none");
	for (const u_place_rule &rule : r.of)
		EXPECT_EQ(rule.where, U_PLACE_NONE);
	EXPECT_FALSE(r.strict);
}

TEST(PlaceParse, RefusedWithTheReason)
{
	struct {
		const char *rules, *says;
	} const refused[] = {
		{ "transfer", "'transfer' is no rule" },
		{ "shared-cache", "'shared-cache' is no rule" },
		{ "transfer=", "'' is no place" },
		{ "transfer=l3", "'l3' is no place: none, same-core" },
		{ "transfer=2-", "'2-' is no place" },
		{ "transfer= 2", "' 2' is no place" },
		{ "engine=2", "'engine' is no role: application, transfer" },
		{ "=2", "'' is no role" },
		{ "interrupt=", "'' is no place" },
		{ ";", "'' is no rule" },
		{ "transfer=2;", "'' is no rule" },
		{ "transfer=2;relay=3;transfer=2", "transfer has two rules" },
		{ "none;strict", "'none' is no rule" },
		{ "dynamic", "for which there is no rule: service=PLACE" },
		{ "service=none;dynamic", "for which there is no rule" },
		{ "service=same-core;dynamic", "dynamic and service=same-core" },
		{ "application=same-core", "application=same-core: other places are relative" },
		{ "application=other-package", "give it processors, device or none" },
	};

	for (const auto &one : refused) {
		u_place_rules r = {};
		char error[U_PLACE_ERROR] = "";

		r.strict = true;
		EXPECT_EQ(u_place_parse(one.rules, &r, error), -EINVAL) << one.rules;
		EXPECT_NE(std::string(error).find(one.says), std::string::npos) << error;
		EXPECT_TRUE(r.strict);
	}
}
