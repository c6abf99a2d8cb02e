// SPDX-License-Identifier: MIT
#include "server/base/config/command_line.h"

#include <gtest/gtest.h>

#include <vector>

namespace server {
namespace {

CommandLine parse(const std::vector<std::string>& arguments) {
  return parse_command_line(arguments);
}

TEST(CommandLine, FirstPathIsTheConfigFile) {
  const auto parsed = parse({"/etc/a.conf", "--port", "7000"});
  EXPECT_EQ(parsed.config_path, "/etc/a.conf");
  EXPECT_EQ(parsed.options_text, "port \"7000\" ");
  EXPECT_FALSE(parsed.reads_stdin);
}

TEST(CommandLine, OptionsTakeWordsUntilTheNextOne) {
  EXPECT_EQ(parse({"--bind", "127.0.0.1", "::1", "--save", "", "--port", "1"}).options_text,
            "bind \"127.0.0.1\" \"::1\" \nsave \"\" \nport \"1\" ");
}

TEST(CommandLine, WordRightAfterAnOptionIsItsValue) {
  EXPECT_EQ(parse({"--requirepass", "--secret", "--port", "1"}).options_text,
            "requirepass \"--secret\" \nport \"1\" ");
}

TEST(CommandLine, BareSaveMeansNoSaving) {
  EXPECT_EQ(parse({"--save", "--port", "1"}).options_text, "save \"\"\nport \"1\" ");
  EXPECT_EQ(parse({"--save"}).options_text, "save \"\"");
}

TEST(CommandLine, OptionAndValueMayBeOneArgument) {
  EXPECT_EQ(parse({"--port 7000", "--hz 3"}).options_text, "port 7000 \nhz 3 ");
}

TEST(CommandLine, LoneDashIsStandardInput) {
  EXPECT_TRUE(parse({"-"}).reads_stdin);
  EXPECT_TRUE(parse({"-", "--port", "1"}).reads_stdin);
  EXPECT_TRUE(parse({"a.conf", "--loglevel", "verbose", "-"}).reads_stdin);
  EXPECT_FALSE(parse({"a.conf", "--loglevel", "-", "x"}).reads_stdin);
}

TEST(CommandLine, ASnapshotIsCheckedInsteadOfServed) {
  EXPECT_EQ(parse({"--check-rdb", "dump.rdb"}).launch, Launch::kCheckSnapshot);
  EXPECT_EQ(parse({"--port", "7000", "--check-rdb", "x"}).launch, Launch::kServe);
  EXPECT_NE(help_text().find("--check-rdb"), std::string_view::npos);
}

TEST(CommandLine, HealthCheckUsesTheServersOptions) {
  const auto parsed = parse({"--health-check", "a.conf", "--port", "7"});
  EXPECT_EQ(parsed.launch, Launch::kCheckHealth);
  EXPECT_EQ(parsed.config_path, "a.conf");
  EXPECT_EQ(parsed.options_text, "port \"7\" ");
  EXPECT_EQ(parse({"--health-check"}).launch, Launch::kCheckHealth);
  EXPECT_EQ(parse({"--port", "7000", "--health-check"}).launch, Launch::kServe);
}

TEST(CommandLine, AFilterIsBuiltInsteadOfServed) {
  EXPECT_EQ(parse({"--build-filter", "out.rdb", "--error", "0.01"}).launch, Launch::kBuildFilter);
  // parse() accepts any arguments after --build-filter, because the code that builds the filter
  // checks them.
  EXPECT_EQ(parse({"--build-filter"}).launch, Launch::kBuildFilter);
  EXPECT_EQ(parse({"--port", "7000", "--build-filter", "x"}).launch, Launch::kServe);
  EXPECT_NE(help_text().find("--build-filter"), std::string_view::npos);
}

TEST(CommandLine, ASnapshotIsExportedInsteadOfServed) {
  EXPECT_EQ(parse({"--export-rdb", "a.rdb", "b.rdb"}).launch, Launch::kExportSnapshot);
  EXPECT_EQ(parse({"--export-rdb"}).launch, Launch::kExportSnapshot);
  EXPECT_EQ(parse({"--port", "7000", "--export-rdb", "x"}).launch, Launch::kServe);
  EXPECT_NE(help_text().find("--export-rdb"), std::string_view::npos);
}

TEST(CommandLine, AnAppendLogIsCheckedInsteadOfServed) {
  EXPECT_EQ(parse({"--check-aof", "a.manifest"}).launch, Launch::kCheckLog);
  EXPECT_EQ(parse({"--check-aof", "a.manifest", "--fix"}).launch, Launch::kCheckLog);
  EXPECT_EQ(parse({"--check-aof", "--fix", "a.manifest"}).launch, Launch::kCheckLog);
  EXPECT_NE(help_text().find("--check-aof"), std::string_view::npos);
}

LogCheck parse_check(const std::vector<std::string>& arguments) {
  return parse_log_check(arguments);
}

// The tool redis-check-aof expects --fix before the path.
TEST(CommandLine, TheFixOfALogStandsBeforeOrBehindItsPath) {
  EXPECT_EQ(parse_check({"--check-aof", "a"}).path, "a");
  EXPECT_FALSE(parse_check({"--check-aof", "a"}).cuts_torn_end);
  for (const auto& words : {std::vector<std::string>{"--check-aof", "a", "--fix"},
                            std::vector<std::string>{"--check-aof", "--fix", "a"}}) {
    EXPECT_EQ(parse_check(words).path, "a");
    EXPECT_TRUE(parse_check(words).cuts_torn_end);
  }
  EXPECT_EQ(parse_check({"--check-aof", "--fix", "a", "--fix"}).path, "");
}

TEST(CommandLine, WrongArgumentsOfAToolAreNoOptions) {
  const std::vector<std::string> calls[] = {
      {"--check-rdb"},
      {"--check-rdb", ""},
      {"--check-rdb", "a", "b"},
      {"--check-rdb", "--fix"},
      {"--check-aof"},
      {"--check-aof", "--fix"},
      {"--check-aof", "a", "--mend"},
      {"--check-aof", "a", "b"},
      {"--help", "x"},
      {"-v", "x"},
      {"--version", "--json", "x"},
      {"--check-aof", "a", "--truncate-to-timestamp"},
      {"--check-aof", "a", "--truncate-to-timestamp", "0"},
      {"--check-aof", "a", "--truncate-to-timestamp", "noon"},
      {"--check-aof", "a", "--truncate-to-timestamp", "1", "--truncate-to-timestamp", "2"},
  };
  for (const auto& call : calls) {
    const CommandLine parsed = parse(call);
    EXPECT_TRUE(parsed.usage_error.starts_with("bloomery-server: " + call[0] + " takes "));
    EXPECT_NE(parsed.usage_error.find("\nUsage: bloomery-server "), std::string::npos);
    EXPECT_EQ(parsed.options_text, "");
  }
  EXPECT_EQ(parse({"--check-rdb", "a"}).usage_error, "");
  EXPECT_EQ(parse({"--help"}).usage_error, "");
}

TEST(CommandLine, VersionAndHelpAreRecognised) {
  EXPECT_EQ(parse({"-v"}).launch, Launch::kShowVersion);
  EXPECT_EQ(parse({"--version"}).launch, Launch::kShowVersion);
  EXPECT_EQ(parse({"-h"}).launch, Launch::kShowHelp);
  EXPECT_EQ(parse({"--help"}).launch, Launch::kShowHelp);
  EXPECT_EQ(parse({}).launch, Launch::kServe);
  EXPECT_NE(help_text().find("--port"), std::string_view::npos);
  EXPECT_EQ(parse({"--version", "--json"}).launch, Launch::kShowVersion);
  EXPECT_EQ(parse({"--version", "--json"}).usage_error, "");
}

TEST(CommandLine, LineEndsInAValueStartNoNewOption) {
  const auto parsed = parse({"--requirepass", "a\nport 1"});
  EXPECT_EQ(parsed.options_text.find('\n'), std::string::npos);
}

}  // namespace
}  // namespace server
