// SPDX-License-Identifier: MIT
//
// Tests the options that a server has after its start, from files, included files, standard input
// and the command line. A restart after CONFIG REWRITE must give the same values.
#include <fmt/format.h>

#include "server/base/config/buffer_limits.h"
#include "server/base/config/command_line.h"
#include "server/base/config/directives.h"
#include "server/base/config/option_table.h"
#include "server/base/config/suggestion.h"
#include "server/base/config/value.h"
#include "server/base/config/words.h"
#include "tests/server/base/config/config_fixture.h"

namespace server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::Pair;
using ::testing::StartsWith;

TEST_F(ConfigTest, LaterSourcesOverrideEarlierOnes) {
  const auto path = write("a.conf", "PORT 1\nhz 11\ntimeout 3\ntimeout 4\r\n");
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], "hz 12\nport 2\n", 13), 13);
  ::close(ends[1]);
  EXPECT_EQ(load(config_, {path, "--port", "3", "-"}, ends[0]), "");
  ::close(ends[0]);
  EXPECT_EQ(config_.port(), 3);
  EXPECT_EQ(config_.hz(), 12);
  EXPECT_EQ(config_.timeout_s(), 4);
  EXPECT_EQ(config_.file_path(), path);
}

TEST_F(ConfigTest, RepeatedDirectivesAddUpWhereTheyShould) {
  const auto path = write("a.conf",
                          "save 900 1\nsave 300 10 60 1000\n"
                          "client-output-buffer-limit normal 1 0 0\n"
                          "client-output-buffer-limit pubsub 2mb 1mb 5\n"
                          "rename-command GET \"\"\nrename-command SET put\n"
                          "bind \"127.0.0.1 ::1\"\n");
  ASSERT_EQ(load({path}), "");
  EXPECT_EQ(get("save"), "900 1 300 10 60 1000");
  EXPECT_EQ(get("client-output-buffer-limit"),
            "normal 1 0 0 slave 268435456 67108864 60 pubsub 2097152 1048576 5");
  EXPECT_THAT(config_.other_directives().renamed_commands,
              ElementsAre(Pair("GET", ""), Pair("SET", "put")));
  ASSERT_EQ(config_.other_directives().rename_lines.size(), 2U);
  EXPECT_EQ(config_.other_directives().rename_lines[1].line, 6U);
  EXPECT_EQ(config_.text(OptionId::kBind), "127.0.0.1 ::1");
  Config reset;
  ASSERT_EQ(load(reset, {path, "--save", ""}), "");
  EXPECT_EQ(get(reset, "save"), "");
}

TEST_F(ConfigTest, ABareSaveLineForgetsAllSavePoints) {
  ASSERT_EQ(load({write("bare.conf", "save 900 1\nsave\n")}), "");
  EXPECT_EQ(get("save"), "");
  const auto points = write("points.conf", "save 900 1\n");
  Config argument;
  ASSERT_EQ(load(argument, {points, "--save"}), "");
  EXPECT_EQ(get(argument, "save"), "");
  Config words;
  EXPECT_THAT(load(words, {"--shutdown-on-sigint"}),
              HasSubstr(unknown_choice("default, save").reason));
}

std::string bad_directive(std::string_view cause) {
  return std::string(kBadDirective) + ": " + std::string(cause);
}

TEST_F(ConfigTest, BadLinesAreFatalWithTheirPlace) {
  const struct {
    std::string line, reason;
  } kCases[] = {
      {"foo bar", bad_directive("there is no option 'foo'")},
      {"include", bad_directive(kWrongArgumentCount)},
      {"loadmodule", bad_directive(kWrongArgumentCount)},
      {"rename-command a", bad_directive(kWrongArgumentCount)},
      {"list-max-ziplist-value 1 2", bad_directive(kWrongArgumentCount)},
      {"search-timeout", bad_directive(kWrongArgumentCount)},
      {"bf.foo 1", bad_directive("there is no option 'bf.foo'")},
      {"max-memory 1gb",
       bad_directive("there is no option 'max-memory'; did you mean 'maxmemory'?")},
      {"port \"1", std::string(kUnbalancedLine)},
      {"port \"a\"b", std::string(kUnbalancedLine)},
      {"port", std::string(kWrongArgumentCount)},
      {"port 1 2", std::string(kWrongArgumentCount)},
      {"bind", std::string(kWrongArgumentCount)},
      {"port abc", std::string(kNoInteger)},
      {"port 99999", out_of_range(0, 65535).reason},
      {"unixsocketperm 9", std::string(kNoOctalNumber)},
      {"unixsocketperm 1777", "argument must be between 0 and 777 inclusive"},
      {"dir /nonexistent", "No such file or directory"},
      {"supervised x", unknown_choice("upstart, systemd, auto, no").reason},
      {"client-output-buffer-limit normal 0 0", std::string(kNoBufferLimit)},
  };
  for (const auto& c : kCases) {
    const auto path = write("a.conf", "# first\n  " + c.line + " \r\n");
    Config config;
    EXPECT_EQ(load(config, {path}), "\n*** FATAL CONFIG FILE ERROR (Bloomery " BLOOMERY_VERSION
                                    ") ***\nReading the configuration file, at line 2 of " +
                                        path + "\n>>> '" + c.line + "'\n" + c.reason + "\n");
  }
}

TEST_F(ConfigTest, EveryOptionRefusesTooFewAndTooManyWords) {
  for (const Option& option : option_table()) {
    Config config;
    const std::string name = fmt::format("--{}", option.name);
    if (option.may_be_bare) continue;
    EXPECT_THAT(load(config, {name}), HasSubstr(kWrongArgumentCount));
    if (option.multi_argument) continue;
    EXPECT_THAT(load(config, {name, "a", "b"}), HasSubstr(kWrongArgumentCount));
  }
}

TEST_F(ConfigTest, EveryTypedOptionRefusesOddValues) {
  for (const Option& option : option_table()) {
    if (option.kind == OptionKind::kString || option.kind == OptionKind::kList) continue;
    for (const char* value : {"", "zzz", "--", "1\n2", "99999999999999999999999999x", "\xff"}) {
      Config config;
      EXPECT_THAT(load(config, {fmt::format("--{}", option.name), value}), HasSubstr("FATAL"))
          << option.name << " " << value;
    }
  }
}

TEST_F(ConfigTest, SecretsAreNotPrinted) {
  EXPECT_THAT(load({"--requirepass", "hush", "hush"}), Not(HasSubstr("hush")));
  EXPECT_THAT(load({write("a.conf", "masterauth \"hush\n")}), Not(HasSubstr("hush")));
}

TEST_F(ConfigTest, CommandLineErrorsNameTheCommandLine) {
  EXPECT_THAT(load({"--hz", "1", "--bar", "1"}),
              HasSubstr("at line 2 of the command line\n>>> 'bar \"1\"'\nBad directive"));
  EXPECT_THAT(load({"-x"}), HasSubstr(">>> '\"-x\"'\nBad directive"));
  EXPECT_THAT(load({"-p", "7000"}), HasSubstr(kPortHint));
  EXPECT_THAT(load({"--hz", "10", "-p", "7000"}),
              HasSubstr(std::string(kWrongArgumentCount) + kPortHint));
}

TEST_F(ConfigTest, MissingFileIsFatal) {
  EXPECT_EQ(load({directory_ + "/none.conf"}),
            "Fatal error, can't open '" + directory_ + "/none.conf': No such file or directory");
}

TEST_F(ConfigTest, IncludeReadsItsFilesInPlace) {
  write("part1.inc", "port 1\n");
  write("part2.inc", "port 2\nhz 22\n");
  const auto path =
      write("a.conf", "include " + directory_ + "/part*.inc\nhz 33\ninclude /none*\n");
  ASSERT_EQ(load({path}), "");
  EXPECT_EQ(config_.port(), 2);
  EXPECT_EQ(config_.hz(), 33);
}

TEST_F(ConfigTest, IncludeOfAMissingFileIsFatalWithItsPlace) {
  const auto path = write("a.conf", "port 1\ninclude /nonexistent\n");
  EXPECT_THAT(load({path}), HasSubstr("at line 2 of " + path +
                                      "\n>>> 'include /nonexistent'\n"
                                      "can't open '/nonexistent': No such file or directory\n"));
}

// Its files may hold passwords.
TEST_F(ConfigTest, IncludeOfAnUnreadableDirectoryIsFatal) {
  std::filesystem::create_symlink("loop", directory_ + "/loop");
  EXPECT_THAT(load({write("a.conf", "include " + directory_ + "/loop/*.conf\n")}),
              HasSubstr("can't read a directory of '" + directory_ + "/loop/*.conf'"));
  EXPECT_EQ(load({write("a.conf", "include " + directory_ + "/missing/*.conf\n")}), "");
}

TEST_F(ConfigTest, ErrorInAnIncludedFileNamesThatFile) {
  const auto part = write("part.inc", "\nfoo bar\n");
  EXPECT_THAT(load({write("a.conf", "include " + part + "\n")}),
              HasSubstr("at line 2 of " + part + "\n"));
}

TEST_F(ConfigTest, IncludeCyclesAndDepthAreRefused) {
  const auto path = directory_ + "/a.conf";
  write("b.conf", "include " + path + "\n");
  write("a.conf", "include " + directory_ + "/b.conf\n");
  EXPECT_THAT(load({path}), HasSubstr("includes itself"));
  for (int i = 0; i < 20; ++i) {
    write(fmt::format("d{}", i), fmt::format("include {}/d{}\n", directory_, i + 1));
  }
  write("d20", "port 1\n");
  EXPECT_THAT(load({directory_ + "/d0"}), HasSubstr("nested deeper than 16 files"));
  EXPECT_EQ(load({directory_ + "/d10"}), "");
}

TEST_F(ConfigTest, IncludesThatDoubleAreBounded) {
  for (int i = 0; i < 14; ++i) {
    const std::string line = fmt::format("include {}/d{}\n", directory_, i + 1);
    write(fmt::format("d{}", i), line + line);
  }
  write("d14", "port 1\n");
  EXPECT_THAT(load({directory_ + "/d0"}), HasSubstr("more than 1024 files"));
}

TEST_F(ConfigTest, KeepsRedisDirectivesWithoutEffectAndWarns) {
  const auto path = write("a.conf",
                          "appendfsync always\nslave-priority 5\nactiverehashing yes\n"
                          "proc-title-template x\nsyslog-enabled yes\nsave 60 1\n"
                          "appendonly yes\nloadmodule x.so\nuser a on\nlua-replicate-commands 1\n");
  ASSERT_EQ(load({path}), "");
  EXPECT_EQ(get("appendfsync"), "always");
  EXPECT_EQ(get("replica-priority"), "5");
  EXPECT_EQ(get("syslog-enabled"), "yes");
  EXPECT_EQ(get("appendonly"), "yes");
  const auto warnings = config_.take_warnings();
  EXPECT_EQ(warnings.size(), 3U);
  const auto& users = config_.other_directives().users;
  ASSERT_EQ(users.size(), 1U);
  EXPECT_THAT(users[0].words, ElementsAre("user", "a", "on"));
  EXPECT_EQ(users[0].source, path);
  EXPECT_EQ(users[0].line, 9U);
  EXPECT_THAT(warnings, Not(::testing::Contains(HasSubstr("activerehashing"))));
}

TEST_F(ConfigTest, ReplicaOfIsAnAddressOrNoOne) {
  const auto path = write("a.conf", "replicaof 10.0.0.1 6379\n");
  ASSERT_EQ(load({path}), "");
  EXPECT_EQ(get("replicaof"), "10.0.0.1 6379");
  EXPECT_EQ(get("slaveof"), "10.0.0.1 6379");
  for (const char* wrong : {"host", "host -1", "host 65536", "host x", "host 1 2"}) {
    const auto other = write("b.conf", std::string("replicaof ") + wrong + "\n");
    EXPECT_THAT(load({other}), HasSubstr("replicaof")) << wrong;
  }
}

TEST_F(ConfigTest, RewriteForgetsTheLeaderOfAServerThatHasNone) {
  const auto path = write("a.conf", "port 7000\nreplicaof 10.0.0.1 6379\n");
  ASSERT_EQ(load({path}), "");
  config_.replace(OptionId::kReplicaOf, "10.0.0.2 6380");
  ASSERT_TRUE(config_.rewrite());
  EXPECT_EQ(read(path), "port 7000\nreplicaof 10.0.0.2 6380\n");
  config_.replace(OptionId::kReplicaOf, "");
  ASSERT_TRUE(config_.rewrite());
  EXPECT_EQ(read(path), "port 7000\n");
}

// CONFIG REWRITE must write values so that they take precedence over an included file. Otherwise a
// promoted replica whose included file has `replicaof` would restart as a replica.
TEST_F(ConfigTest, RewriteIsTheLastWordOverAnIncludedFile) {
  const auto part = write("r.conf",
                          "replicaof 127.0.0.1 7499\nsave 900 1\nappendonly no\n"
                          "bf-error-rate 0.001\n");
  const auto path = write("a.conf", "include " + part + "\n# end\n");
  ASSERT_EQ(load({path}), "");
  config_.on_change(OptionId::kAppendOnly, [] { return core::Result<>(); });
  config_.replace(OptionId::kReplicaOf, "");
  const std::string written =
      "include " + part + "\n# end\n# Generated by CONFIG REWRITE\nsave \"\"\n";
  const std::string rest = "appendonly yes\nreplicaof no one\nbf-error-rate 0.01\n";
  ASSERT_EQ(set({{"save", ""}, {"appendonly", "yes"}, {"bf-error-rate", "0.01"}}), "OK");
  ASSERT_TRUE(config_.rewrite());
  EXPECT_EQ(read(path), written + rest);
  ASSERT_TRUE(config_.rewrite());
  EXPECT_EQ(read(path), written + rest) << "again";
  ASSERT_EQ(set({{"save", "5 6 7 8"}}), "OK");
  ASSERT_TRUE(config_.rewrite());
  Config again;
  ASSERT_EQ(load(again, {path}), "");
  const std::string_view all[] = {"*"};
  EXPECT_EQ(again.get(all), config_.get(all));
}

TEST_F(ConfigTest, RewriteReadsLaterAndNestedIncludes) {
  write("inner.conf", "hz 20\nsave 900 1\n");
  write("1.part", "include " + directory_ + "/inner.conf\n");
  write("2.part", "timeout 5\n");
  const std::string include = "include " + directory_ + "/*.part\n";
  const auto path = write("a.conf", "# ours\nhz 30\n" + include + "# end\n");
  ASSERT_EQ(load({path}), "");
  ASSERT_EQ(config_.hz(), 20);
  ASSERT_EQ(set({{"hz", "30"}, {"timeout", "0"}, {"save", "5 6 7 8"}}), "OK");
  ASSERT_TRUE(config_.rewrite());
  EXPECT_EQ(read(path), "# ours\n" + include +
                            "# end\n# Generated by CONFIG REWRITE\ntimeout 0\nhz 30\n"
                            "save \"\"\nsave 5 6\nsave 7 8\n");
  Config again;
  ASSERT_EQ(load(again, {path}), "");
  EXPECT_EQ(get(again, "save"), "5 6 7 8");
  EXPECT_EQ(again.hz(), 30);
  EXPECT_EQ(again.timeout_s(), 0);
}

// A server changes its working directory to `dir` only after it has read its configuration files.
TEST_F(ConfigTest, RewriteFindsIncludesFromTheStartDirectory) {
  const auto part = write("r.conf", "timeout 5\n");
  const std::filesystem::path here = std::filesystem::current_path();
  const auto path =
      write("a.conf", "include " + std::filesystem::relative(part, here).string() + "\n");
  ASSERT_EQ(load({path}), "");
  ASSERT_EQ(config_.timeout_s(), 5);
  ASSERT_EQ(set({{"timeout", "0"}}), "OK");
  std::filesystem::current_path(directory_);
  const auto rewritten = config_.rewrite();
  std::filesystem::current_path(here);
  ASSERT_TRUE(rewritten) << rewritten.error().message;
  EXPECT_THAT(read(path), HasSubstr("\ntimeout 0\n"));
}

TEST_F(ConfigTest, RewriteLeavesTheFileWhenTheNextStartWouldFail) {
  const auto part = write("r.conf", "user alice on >hush\n");
  const auto path = write("a.conf", "include " + part + "\n");
  ASSERT_EQ(load({path}), "");
  ASSERT_EQ(set({{"hz", "20"}}), "OK");
  const std::string text = read(path);
  const auto twice = config_.rewrite(std::vector<std::string>{"user alice on >hush"});
  ASSERT_FALSE(twice);
  EXPECT_THAT(twice.error().message,
              StartsWith("ERR Rewriting config file: the next start would fail: *** FATAL"));
  EXPECT_THAT(twice.error().message, HasSubstr("Duplicate user"));
  EXPECT_THAT(twice.error().message, Not(HasSubstr("hush")));
  std::filesystem::remove(part);
  const auto missing = config_.rewrite();
  ASSERT_FALSE(missing);
  EXPECT_THAT(missing.error().message, HasSubstr("a.conf >>> 'include " + part + "' can't open"));
  EXPECT_EQ(read(path), text);
}

TEST_F(ConfigTest, VersionAndHelpLoadNothing) {
  const char* const version[] = {"bloomery-server", "--version"};
  EXPECT_EQ(config_.load(2, version).value(), Launch::kShowVersion);
  const char* const help[] = {"bloomery-server", "-h"};
  EXPECT_EQ(config_.load(2, help).value(), Launch::kShowHelp);
  EXPECT_EQ(config_.load(0, nullptr).value(), Launch::kServe);
}

TEST_F(ConfigTest, InvalidToolCallsPrintTheUsage) {
  EXPECT_EQ(load({"--check-rdb"}),
            "bloomery-server: --check-rdb takes one path\nUsage: bloomery-server --check-rdb "
            "dump.rdb");
  EXPECT_THAT(load({"--check-aof", "a", "b"}), HasSubstr("\nUsage: bloomery-server --check-aof "));
  EXPECT_EQ(load({"--check-aof", "--fix", "a"}), "");
}

std::string shipped_config() {
  return BLOOMERY_VECTORS "/../../conf/bloomery.conf";
}

TEST_F(ConfigTest, ShippedFileLoadsToTheDefaults) {
  ASSERT_EQ(load({shipped_config()}), "");
  EXPECT_TRUE(config_.take_warnings().empty());
  const std::string_view all[] = {"*"};
  EXPECT_EQ(config_.get(all), Config().get(all));
}

// Returns whether the sample file mentions the option. An option with an effect must be the first
// word of a line, possibly after "# ". An option without effect may be any word of a line.
bool is_explained(const std::string& text, const Option& option) {
  const std::string name(option.name);
  for (const char* before : {"\n", "\n# ", " "}) {
    if (!option.inert && std::string_view(before) == " ") continue;
    for (const char* after : {" ", "\n"}) {
      if (text.find(before + name + after) != std::string::npos) return true;
    }
  }
  return false;
}

TEST_F(ConfigTest, ShippedFileExplainsEveryOption) {
  const std::string text = read(shipped_config());
  for (const Option& option : option_table()) {
    EXPECT_TRUE(is_explained(text, option)) << option.name;
    if (option.inert) continue;
    for (const auto alias : option.aliases) EXPECT_THAT(text, HasSubstr(std::string(alias)));
  }
}

}  // namespace
}  // namespace server
