// SPDX-License-Identifier: MIT
#include "server/tools/build_options.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/bloom/layouts.h"
#include "server/commands/bloom/bloom_options.h"

namespace server {
namespace {

core::Result<BuildOptions> parse_build(std::vector<std::string> rest) {
  rest.insert(rest.begin(), "--build-filter");
  return parse_build_options(rest);
}

TEST(BuildOptions, OmittedOptionsHaveDefaults) {
  const auto options = parse_build({"out.rdb", "--error", "0.001"});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->path, "out.rdb");
  EXPECT_EQ(options->key, "filter");
  EXPECT_EQ(options->parameters.error_rate, 0.001);
  EXPECT_EQ(options->native_version, 2);
  EXPECT_EQ(options->parameters.expansion, 2U);
  EXPECT_TRUE(options->counts_items);
  EXPECT_EQ(options->format, RecordFormat::kLines);
}

TEST(BuildOptions, NativeHasTwoVersions) {
  const auto version_of = [](const char* version) {
    const auto options = parse_build({"f", "--native-version", version, "--error", "0.01"});
    return options ? std::optional(options->native_version) : std::nullopt;
  };
  EXPECT_EQ(version_of("1"), 1);
  EXPECT_EQ(version_of("2"), 2);
  for (const char* const bad : {"0", "3", "x", ""}) EXPECT_EQ(version_of(bad), std::nullopt) << bad;
}

TEST(BuildOptions, AllOptionsInAnyOrder) {
  const auto options = parse_build({"a b.rdb", "--key", "", "--records", "length32", "--capacity",
                                    "1000", "--layout", "RedisBloom", "--error", "0.5"});
  ASSERT_TRUE(options) << options.error().message;
  EXPECT_EQ(options->key, "");
  EXPECT_EQ(options->parameters.capacity, 1000U);
  EXPECT_FALSE(options->counts_items);
  EXPECT_EQ(options->parameters.layout, core::bloom::RedisBloomLayout::kId);
  EXPECT_EQ(options->parameters.error_rate, kErrorRateMax) << "as BF.RESERVE";
  EXPECT_EQ(options->format, RecordFormat::kLength32);
}

TEST(BuildOptions, EachMistakeHasItsOwnMessage) {
  const auto message = [](const std::vector<std::string>& rest) {
    const auto options = parse_build(rest);
    return options ? std::string() : options.error().message;
  };
  EXPECT_TRUE(message({}).starts_with("--build-filter takes a path"));
  EXPECT_TRUE(message({"--error", "0.1"}).starts_with("--build-filter takes a path"));
  EXPECT_TRUE(message({"out.rdb"}).starts_with("--build-filter needs --error"));
  EXPECT_EQ(message({"out.rdb", "--error"}), "--error takes a value");
  for (const std::string rate : {"0", "1", "-0.1", "x", "nan", "inf", ""}) {
    EXPECT_EQ(message({"out.rdb", "--error", rate}),
              "--error takes a number between 0 and 1, not '" + rate + "'");
  }
  EXPECT_EQ(message({"out.rdb", "--error", "0.1%"}),
            "--error takes a number between 0 and 1, not '0.1%': '0.1%' is written 0.001");
  for (const std::string capacity : {"0", "-1", "1.5", "", "281474976710657"}) {
    EXPECT_NE(message({"o", "--error", "0.1", "--capacity", capacity}).find("--capacity takes"),
              std::string::npos);
  }
  EXPECT_NE(message({"o", "--error", "0.1", "--layout", "other"}).find("native"),
            std::string::npos);
  EXPECT_EQ(message({"o", "--error", "0.1", "--records", "json"}),
            "--records takes lines or length32, not 'json'");
  EXPECT_TRUE(message({"o", "--err", "0.1"}).starts_with("--build-filter does not know '--err'"));
}

}  // namespace
}  // namespace server
