// SPDX-License-Identifier: MIT
#include "server/base/process/build_info.h"

#include <gmock/gmock.h>

#include <boost/json.hpp>
#include <string>

namespace server {
namespace {

using testing::EndsWith;
using testing::MatchesRegex;
using testing::StartsWith;

constexpr std::string_view kCommit = "0123456789abcdef0123456789abcdef01234567";

TEST(BuildInfo, ThisBuildKnowsItself) {
  // The commit is empty if the source tree is not a git repository.
  EXPECT_THAT(std::string(build_info().commit), MatchesRegex("([0-9a-f]{40})?"));
  EXPECT_NE(build_info().build_type, "");
}

TEST(BuildInfo, VersionLineHasTheFieldsOfRedis) {
  const BuildInfo build{kCommit, true, "Release"};
  const std::string text = version_text("7.4.0", build);
  // The first version number is the version of Redis that the server reports to clients.
  EXPECT_THAT(text, StartsWith("Bloomery server v=7.4.0 bloomery=" BLOOMERY_VERSION
                               " sha=01234567:1 malloc="));
  EXPECT_THAT(text, EndsWith(" bits=64 build=Release"));
  const BuildInfo clean{kCommit, false, "Debug"};
  EXPECT_THAT(version_text("7.4.0", clean), testing::HasSubstr(" sha=01234567:0 "));
}

TEST(BuildInfo, UnknownCommitIsZeros) {
  EXPECT_EQ(short_commit({"", false, "Debug"}), "00000000");
}

TEST(BuildInfo, JsonHasTheSameFacts) {
  const auto json = boost::json::parse(version_json("7.4.0", {kCommit, true, "Release"}));
  const boost::json::value expected{{"version", BLOOMERY_VERSION},
                                    {"commit", kCommit},
                                    {"modified", true},
                                    {"build_type", "Release"},
                                    {"redis_version", "7.4.0"}};
  EXPECT_EQ(json, expected);
}

}  // namespace
}  // namespace server
