// SPDX-License-Identifier: MIT
//
// Tests CONFIG GET, SET and REWRITE. The error texts are those of redis-server 7.0.15.
#include "server/base/config/config.h"

#include <thread>

#include "core/bloom/layouts.h"
#include "server/base/config/buffer_limits.h"
#include "server/base/config/event_class.h"
#include "server/base/config/option_table.h"
#include "server/base/config/special_values.h"
#include "server/base/config/value.h"
#include "tests/server/base/config/config_fixture.h"

namespace server {
namespace {

using namespace std::string_literals;
using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

TEST_F(ConfigTest, DefaultsAreRedisDefaults) {
  EXPECT_EQ(config_.port(), 6379);
  EXPECT_EQ(config_.text(OptionId::kBind), "* -::*");
  EXPECT_EQ(config_.max_clients(), 10000);
  EXPECT_EQ(config_.max_bulk_bytes(), 512 << 20);
  EXPECT_EQ(LogLevel{config_.integer(OptionId::kLogLevel)}, LogLevel::kNotice);
  EXPECT_EQ(Supervised{config_.integer(OptionId::kSupervised)}, Supervised::kNo);
  EXPECT_TRUE(config_.flag(OptionId::kProtectedMode));
  EXPECT_EQ(BloomDefaults(config_).error_rate(), 0.01);
  EXPECT_EQ(BloomDefaults(config_).layout(), core::bloom::LaneLayout::kId);
  EXPECT_EQ(config_.output_buffer_limit(ClientClass::kReplica),
            (BufferLimit{256 << 20, 64 << 20, 60}));
  EXPECT_GE(config_.io_thread_count(), 1);
  EXPECT_LE(config_.io_thread_count(), 8);
  EXPECT_EQ(get("client-output-buffer-limit"),
            "normal 0 0 0 slave 268435456 67108864 60 pubsub 33554432 8388608 60");
}

TEST_F(ConfigTest, EveryDefaultIsInCanonicalForm) {
  for (const Option& option : option_table()) {
    if (option.default_text.empty()) continue;
    const auto parsed = parse_single_text(option, option.default_text, "");
    ASSERT_TRUE(parsed) << option.name;
    EXPECT_EQ(parsed->text, option.default_text) << option.name;
  }
  EXPECT_EQ(option_row(OptionId::kBind).name, "bind");
  EXPECT_EQ(option_row(OptionId::kMaxMemory).name, "maxmemory");
  EXPECT_EQ(option_row(OptionId::kAppendOnly).name, "appendonly");
  EXPECT_EQ(option_row(OptionId::kBloomDefragEnabled).name, "bf.bloom-defrag-enabled");
}

TEST_F(ConfigTest, GetMatchesNamesAndAliases) {
  const std::string_view both[] = {"BF*SIZE", "bf.bloom-cap*"};
  EXPECT_THAT(config_.get(both), UnorderedElementsAre(Pair("bf-initial-size", "100"),
                                                      Pair("bf.bloom-capacity", "100")));
  const std::string_view repeated[] = {"port", "por*", "P[o]rt", "nothing", "no*thing"};
  EXPECT_THAT(config_.get(repeated), ElementsAre(Pair("port", "6379")));
  const std::string_view upper[] = {"PORT"};
  EXPECT_THAT(config_.get(upper), ElementsAre(Pair("PORT", "6379")));
  const std::string_view all[] = {"*"};
  EXPECT_GT(config_.get(all).size(), 192U);
  const std::string_view odd[] = {std::string_view("*\0", 2), "", "[", "\\", "*rename*"};
  EXPECT_TRUE(config_.get(odd).empty());
}

TEST_F(ConfigTest, HostilePatternEndsSoon) {
  std::string pattern;
  for (int i = 0; i < 200; ++i) pattern += "*a";
  const std::string_view patterns[] = {pattern};
  EXPECT_TRUE(config_.get(patterns).empty());
}

TEST_F(ConfigTest, EventsOfUnknownClassesCannotBeAskedFor) {
  const NamedValue unknown[] = {{"notify-keyspace-events", "KEAy"}};
  const auto set = config_.set(unknown);
  ASSERT_FALSE(set);
  EXPECT_EQ(set.error().message, config_set_error("notify-keyspace-events", kInvalidEventClass));
  const NamedValue events[] = {{"notify-keyspace-events", "KE$n"}};
  EXPECT_TRUE(config_.set(events));
  EXPECT_EQ(config_.integer(OptionId::kNotifyKeyspaceEvents),
            kEventsByKey | kEventsByEvent | kStringEvents | kNewEvents);
}

TEST_F(ConfigTest, SetRefusesWithTheTextsOfRedis) {
  const std::string integer(kNoInteger);
  const std::string boolean(kNoBoolean);
  const struct {
    std::string name, value, reason;
  } kCases[] = {
      {"timeout", "abc", integer},
      {"timeout", "", integer},
      {"timeout", " 5", integer},
      {"timeout", "05", integer},
      {"timeout", "+5", integer},
      {"timeout", "5\r\n", integer},
      {"timeout", "-1", out_of_range(0, 2147483647).reason},
      {"maxclients", "0", out_of_range(1, 4294967295).reason},
      {"maxclients", "99999999999999999999", integer},
      {"slave-priority", "abc", integer},
      {"protected-mode", "maybe", boolean},
      {"protected-mode", "", boolean},
      {"rdbcompression", "1", boolean},
      {"loglevel", "loud", unknown_choice("debug, verbose, notice, warning, nothing").reason},
      {"appendfsync", "x", unknown_choice("everysec, always, no").reason},
      {"maxmemory", "1x", std::string(kNoMemoryValue)},
      {"maxmemory", "-1", std::string(kNoMemoryValue)},
      {"maxmemory", "1.5gb", std::string(kNoMemoryValue)},
      {"maxmemory", "99999999999999gb", out_of_range(0, 9223372036854775807).reason},
      {"proto-max-bulk-len", "1", out_of_range(1048576, 9223372036854775807).reason},
      {"databases", "3", std::string(kImmutableOption)},
      {"unixsocketperm", "700", std::string(kImmutableOption)},
      {"enable-protected-configs", "yes", std::string(kImmutableOption)},
      {"dir", "/", std::string(kProtectedOption)},
      {"dbfilename", "x", std::string(kProtectedOption)},
      {"save", "100", std::string(kInvalidSavePoints)},
      {"save", "0 1", std::string(kInvalidSavePoints)},
      {"save", "a b", std::string(kInvalidSavePoints)},
      {"client-output-buffer-limit", "normal 0 0", std::string(kNoBufferLimit)},
      {"client-output-buffer-limit", "normal 1mb 1k  10", std::string(kNoBufferLimit)},
      {"client-output-buffer-limit", "master 0 0 0", std::string(kNoClientClass)},
      {"client-output-buffer-limit", "normal x 0 0", std::string(kInvalidBufferLimit)},
      {"client-output-buffer-limit", "normal 0 0 -1", std::string(kInvalidBufferLimit)},
  };
  for (const auto& c : kCases) {
    const std::string before = get(c.name);
    EXPECT_EQ(set({{c.name, c.value}}), config_set_error(c.name, c.reason));
    EXPECT_EQ(get(c.name), before);
  }
}

TEST_F(ConfigTest, BloomOptionsRefuseWithTheTextsOfRedisBloom) {
  EXPECT_EQ(set({{"bf-error-rate", "x"}}),
            config_set_error("bf-error-rate", "Invalid value for `bf-error-rate`"));
  for (const char* rate : {"0", "1", "-0.5", "1.5"}) {
    EXPECT_EQ(
        set({{"bf-error-rate", rate}}),
        config_set_error("bf-error-rate",
                         "Value for `bf-error-rate` must be in the range (0.000000, 1.000000)"));
  }
  for (const char* rate : {"", "nan", "inf", "0.1 ", "1e-999", "0x1p-3"}) {
    EXPECT_EQ(set({{"bf.bloom-fp-rate", rate}}),
              config_set_error("bf.bloom-fp-rate", "Invalid value for `bf-error-rate`"));
  }
  EXPECT_EQ(
      set({{"bf-initial-size", "0"}}),
      config_set_error("bf-initial-size",
                       "Value for `bf-initial-size` must be in the range [1, 281474976710656]"));
  EXPECT_EQ(set({{"bf-expansion-factor", "32769"}}),
            config_set_error("bf-expansion-factor",
                             "Value for `bf-expansion-factor` must be in the range [0, 32768]"));
  EXPECT_EQ(set({{"bf-error-rate", "0.9"}, {"bf.bloom-capacity", "281474976710656"}}), "OK");
  EXPECT_EQ(get("bf-error-rate"), "0.25");
  EXPECT_EQ(BloomDefaults(config_).error_rate(), 0.25);
  EXPECT_EQ(BloomDefaults(config_).capacity(), int64_t{1} << 48);
  EXPECT_EQ(set({{"bf-error-rate", "1e-9"}, {"bf-layout", "valkey-bloom"}}), "OK");
  EXPECT_EQ(BloomDefaults(config_).error_rate(), 1e-9);
  EXPECT_EQ(BloomDefaults(config_).layout(), core::bloom::ValkeyBloomLayout::kId);
}

// CONFIG SET checks names and values in the same order as redis-server 7.0.
TEST_F(ConfigTest, FirstWrongNameIsReportedBeforeAnyWrongValue) {
  EXPECT_EQ(set({{"hz", "x"}, {"f\r\noo", "1"}, {"databases", "1"}}),
            unknown_option_error("f  oo"));
  EXPECT_EQ(set({{"databases", "1"}, {"foo", "1"}}),
            config_set_error("databases", kImmutableOption));
  EXPECT_EQ(set({{"rename-command", "x"}}), unknown_option_error("rename-command"));
}

// CONFIG SET must accept each value that CONFIG GET returns.
TEST_F(ConfigTest, SetTakesEachOptionsOwnValue) {
  const std::string_view all[] = {"*"};
  const std::set<std::string> protected_names = {"dir", "dbfilename"};
  for (const auto& [name, value] : config_.get(all)) {
    if (protected_names.contains(name)) continue;
    EXPECT_EQ(set({{name, value}}), "OK") << name;
    EXPECT_EQ(get(name), value) << name;
  }
  EXPECT_EQ(set({{"databases", "16"}, {"timeout", "7"}, {"io-threads", "999"}}),
            config_set_error("io-threads", kImmutableOption));
  EXPECT_EQ(set({{"databases", "16"}, {"timeout", "7"}}), "OK");
  EXPECT_EQ(config_.timeout_s(), 7);
}

TEST_F(ConfigTest, RepeatedPairIsRefused) {
  EXPECT_EQ(set({{"TIMEOUT", "1"}, {"timeout", "2"}}),
            config_set_error("timeout", "duplicate parameter"));
  EXPECT_EQ(config_.timeout_s(), 0);
}

TEST_F(ConfigTest, SetIsAllOrNothing) {
  EXPECT_EQ(set({{"timeout", "7"}, {"hz", "x"}}), config_set_error("hz", kNoInteger));
  EXPECT_EQ(config_.timeout_s(), 0);
  EXPECT_EQ(set({{"timeout", "7"}, {"maxmemory", "1gB"}, {"hz", "100000"}}), "OK");
  EXPECT_EQ(config_.timeout_s(), 7);
  EXPECT_EQ(config_.max_memory_bytes(), 1 << 30);
  EXPECT_EQ(get("maxmemory"), "1073741824");
  EXPECT_EQ(config_.hz(), 500);
  EXPECT_EQ(set({{"hz", "0"}, {"maxmemory", "1k"}, {"loglevel", "NOTHING"}}), "OK");
  EXPECT_EQ(config_.hz(), 1);
  EXPECT_EQ(config_.max_memory_bytes(), 1000);
  EXPECT_EQ(LogLevel{config_.integer(OptionId::kLogLevel)}, LogLevel::kNothing);
}

// The error texts and values of maxmemory-clients are those of Redis 7.0.15.
TEST_F(ConfigTest, MemoryOfClientsIsBytesOrAPartOfMaxmemory) {
  const auto becomes = [this](const std::string& text, const std::string& shown) {
    EXPECT_EQ(set({{"maxmemory-clients", text}}), "OK") << text;
    EXPECT_EQ(get("maxmemory-clients"), shown);
  };
  becomes("50%", "50%");
  EXPECT_EQ(config_.client_memory_limit_bytes(), 0U) << "of no limit at all";
  EXPECT_EQ(set({{"maxmemory", "1mb"}}), "OK");
  EXPECT_EQ(config_.client_memory_limit_bytes(), 512U << 10);
  becomes("100%", "100%");
  becomes("0%", "0");
  EXPECT_EQ(config_.client_memory_limit_bytes(), 0U);
  becomes("5gb", "5368709120");
  EXPECT_EQ(config_.client_memory_limit_bytes(), uint64_t{5} << 30);
  becomes("1kb", "1024");
  EXPECT_EQ(config_.client_memory_limit_bytes(), 128U << 10) << "no less";
  for (const char* const text : {"200%", "101%", "9999999999999999999"}) {
    EXPECT_EQ(set({{"maxmemory-clients", text}}),
              config_set_error("maxmemory-clients", kPercentTooBig));
  }
  for (const char* const text : {"", "abc", "-1", "-5%", "%", "1.5gb", "10 %", "010%", "+5%"}) {
    EXPECT_EQ(set({{"maxmemory-clients", text}}),
              config_set_error("maxmemory-clients", kNoMemoryOrPercent));
  }
}

TEST_F(ConfigTest, BufferLimitsChangeOnlyTheNamedClasses) {
  EXPECT_EQ(set({{"client-output-buffer-limit", "NORMAL 1mb 1k 10 replica 1 2 3"}}), "OK");
  EXPECT_EQ(get("client-output-buffer-limit"),
            "normal 1048576 1000 10 slave 1 2 3 pubsub 33554432 8388608 60");
  EXPECT_EQ(config_.output_buffer_limit(ClientClass::kNormal), (BufferLimit{1 << 20, 1000, 10}));
  EXPECT_EQ(set({{"client-output-buffer-limit", ""}}), "OK");
  EXPECT_EQ(config_.output_buffer_limit(ClientClass::kReplica), (BufferLimit{1, 2, 3}));
}

TEST_F(ConfigTest, SaveIsReplacedBySet) {
  EXPECT_EQ(set({{"save", "100 1 200 2"}}), "OK");
  EXPECT_EQ(set({{"save", "100 0"}}), "OK");
  EXPECT_EQ(get("save"), "100 0");
  EXPECT_EQ(set({{"save", ""}}), "OK");
  EXPECT_TRUE(config_.take_warnings().empty());
}

TEST_F(ConfigTest, AppendOnlyNeedsAHook) {
  EXPECT_EQ(set({{"appendonly", "no"}}), config_set_error("appendonly", kImmutableOption));
  config_.on_change(OptionId::kAppendOnly, [] { return core::Result<>(); });
  EXPECT_EQ(set({{"appendonly", "no"}}), "OK");
}

// Config::replace() must not call the callbacks for changes: the caller, REPLICAOF, holds a lock
// that a callback may wait for.
TEST_F(ConfigTest, TheServersOwnChangeWaitsForNoHook) {
  config_.on_change(OptionId::kTimeout, [this] {
    config_.replace(OptionId::kReplicaOf, "10.0.0.2 6380");
    return core::Result<>();
  });
  EXPECT_EQ(set({{"timeout", "7"}}), "OK");
  EXPECT_EQ(get("replicaof"), "10.0.0.2 6380");
}

TEST_F(ConfigTest, FileNamesAreNoPaths) {
  config_.on_change(OptionId::kDbFileName, [] { return core::Result<>(); });
  for (const std::string& name : {"a/b"s, ".."s, "."s, "a\nb"s, "a\r"s, "dump.rdb\0x"s, "\x7f"s}) {
    EXPECT_NE(set({{"dbfilename", name}}, Origin::kLocal), "OK") << name;
  }
}

TEST_F(ConfigTest, ListenerOptionsNeedAHook) {
  EXPECT_EQ(set({{"port", "1"}}), config_set_error("port", kImmutableOption));
  config_.on_change(OptionId::kPort, [] { return core::Result<>(); });
  EXPECT_EQ(set({{"port", "99999"}}), config_set_error("port", out_of_range(0, 65535).reason));
  EXPECT_EQ(set({{"port", "7000"}}), "OK");
  EXPECT_EQ(config_.port(), 7000);
}

TEST_F(ConfigTest, BindTakesAddressesOnly) {
  config_.on_change(OptionId::kBind, [] { return core::Result<>(); });
  EXPECT_EQ(set({{"bind", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17"}}),
            config_set_error("bind", kTooManyAddresses));
  for (const char* value : {"a\r\nb", "a  b", "a\"b", "/x"}) {
    EXPECT_EQ(set({{"bind", value}}), config_set_error("bind", kAddressesFail));
  }
  EXPECT_EQ(set({{"bind", "127.0.0.1 -::1"}}), "OK");
  EXPECT_EQ(config_.text(OptionId::kBind), "127.0.0.1 -::1");
  EXPECT_EQ(set({{"bind", ""}}), "OK");
  EXPECT_EQ(config_.text(OptionId::kBind), "");
}

TEST_F(ConfigTest, ProtectedOptionsFollowTheOriginOfTheClient) {
  ASSERT_EQ(load({"--enable-protected-configs", "local"}), "");
  EXPECT_EQ(set({{"dir", directory_}}, Origin::kRemote), config_set_error("dir", kProtectedOption));
  EXPECT_EQ(set({{"dir", "/nonexistent"}}, Origin::kLocal),
            config_set_error("dir", "No such file or directory"));
  EXPECT_EQ(set({{"dir", "/etc/passwd"}}, Origin::kLocal),
            config_set_error("dir", "Not a directory"));
  EXPECT_EQ(set({{"dir", directory_ + "/."}}, Origin::kLocal), "OK");
  EXPECT_EQ(config_.directory(), directory_);
}

TEST_F(ConfigTest, HooksRunAfterTheValueChanged) {
  std::vector<int64_t> seen;
  config_.on_change(OptionId::kMaxClients, [&]() -> core::Result<> {
    seen.push_back(config_.max_clients());
    return {};
  });
  EXPECT_EQ(set({{"maxclients", "5"}}), "OK");
  EXPECT_EQ(set({{"maxclients", "5"}}), "OK");
  EXPECT_EQ(set({{"maxclients", "0"}, {"hz", "3"}}).substr(0, 3), "ERR");
  EXPECT_THAT(seen, ElementsAre(5));
}

TEST_F(ConfigTest, AFollowerKnowsTheValueOfNowAndOfEachChange) {
  std::vector<int64_t> seen;
  config_.follow({OptionId::kMaxClients, OptionId::kTimeout},
                 [&] { seen.push_back(config_.max_clients() + config_.timeout_s()); });
  EXPECT_THAT(seen, ElementsAre(10000));
  EXPECT_EQ(set({{"maxclients", "5"}, {"timeout", "9"}}), "OK");
  EXPECT_THAT(seen, ElementsAre(10000, 14)) << "options of one group change together";
  config_.on_change(OptionId::kDbFileName, []() -> core::Result<> { return core::Error{"no"}; });
  EXPECT_NE(set({{"timeout", "0"}, {"dbfilename", "other.rdb"}}), "OK");
  EXPECT_EQ(seen.back(), 14);
}

TEST_F(ConfigTest, RefusingHookTakesEverythingBack) {
  std::vector<int64_t> seen;
  config_.on_change(OptionId::kTimeout, [&]() -> core::Result<> {
    seen.push_back(config_.timeout_s());
    return {};
  });
  config_.on_change(OptionId::kMaxClients,
                    []() -> core::Result<> { return core::Error{"too many\r\nfor me"}; });
  EXPECT_EQ(set({{"timeout", "9"}, {"maxclients", "5"}, {"hz", "77"}}),
            config_set_error("maxclients", "too many  for me"));
  EXPECT_THAT(seen, ElementsAre(9, 0));
  EXPECT_EQ(config_.max_clients(), 10000);
  EXPECT_EQ(config_.hz(), 10);
}

TEST_F(ConfigTest, WordsOfSignalsAreRead) {
  EXPECT_EQ(set({{"shutdown-on-sigterm", "force NOSAVE now"}}), "OK");
  EXPECT_EQ(get("shutdown-on-sigterm"), "nosave now force");
  EXPECT_EQ(set({{"shutdown-on-sigterm", "default"}}), "OK");
  EXPECT_EQ(get("shutdown-on-sigterm"), "default");
  for (const std::string words : {"", "never", "now never"}) {
    EXPECT_EQ(set({{"shutdown-on-sigint", words}}),
              config_set_error("shutdown-on-sigint",
                               unknown_choice("default, save, nosave, now, force").reason))
        << words;
  }
  EXPECT_EQ(set({{"shutdown-on-sigint", "save nosave"}}),
            config_set_error("shutdown-on-sigint", kSaveAndNoSave));
}

TEST_F(ConfigTest, OomScoresAreBounded) {
  EXPECT_EQ(set({{"oom-score-adj-values", "3 2 -2000"}}), "OK");
  EXPECT_EQ(set({{"oom-score-adj-values", "1 2"}}),
            config_set_error("oom-score-adj-values", kWrongArgumentCount));
  for (const std::string words : {"1 2 2001", "-2001 0 0", "1 2 x"}) {
    EXPECT_EQ(set({{"oom-score-adj-values", words}}),
              config_set_error("oom-score-adj-values", kInvalidOomScores))
        << words;
  }
}

TEST_F(ConfigTest, RewriteWithAllOptionsLoadsToTheSame) {
  const auto path = write("all.conf", "port 7000\n");
  ASSERT_EQ(load({path}), "");
  ASSERT_TRUE(config_.rewrite(std::nullopt, Config::Extent::kAll));
  EXPECT_THAT(read(path), testing::HasSubstr("\ntimeout 0\n"));
  Config again;
  ASSERT_EQ(load(again, {path}), "");
  const std::string_view all[] = {"*"};
  EXPECT_EQ(again.get(all), config_.get(all));
}

TEST_F(ConfigTest, SensitiveNamesAreKnown) {
  EXPECT_TRUE(Config::is_sensitive("REQUIREPASS"));
  EXPECT_TRUE(Config::is_sensitive("masterauth"));
  EXPECT_FALSE(Config::is_sensitive("port"));
  EXPECT_FALSE(Config::is_sensitive("nothing"));
}

TEST_F(ConfigTest, RewriteNeedsAFile) {
  EXPECT_EQ(config_.rewrite().error().message, kNoConfigFile);
}

TEST_F(ConfigTest, RewrittenFileLoadsToTheSameValues) {
  const auto path = write("a.conf", "# keep me\nport 7000\nmaxmemory 64mb\nslave-priority 50\n");
  ASSERT_EQ(load({path, "--bind", "::1", "--save", "60", "5"}), "");
  const std::string odd = "a \"b'\r\n\t\x01\xff\\ #z";
  ASSERT_EQ(set({{"requirepass", odd},
                 {"maxmemory", "123456789"},
                 {"client-output-buffer-limit", "pubsub 1gb 1mb 1000"},
                 {"bf-error-rate", "0.0001"},
                 {"oom-score-adj-values", "1 2 -3"},
                 {"save", "1 2 3 4"},
                 {"proc-title-template", ""}}),
            "OK");
  ASSERT_TRUE(config_.rewrite());
  const std::string text = read(path);
  EXPECT_THAT(text, StartsWith("# keep me\nport 7000\nmaxmemory 123456789\nslave-priority 50\n"));
  Config again;
  ASSERT_EQ(load(again, {path}), "");
  const std::string_view all[] = {"*"};
  EXPECT_EQ(again.get(all), config_.get(all));
  EXPECT_EQ(again.text(OptionId::kRequirePass), odd);
  ASSERT_TRUE(again.rewrite());
  EXPECT_EQ(read(path), text);
}

TEST_F(ConfigTest, RewriteRecreatesLostFilesAndFollowsLinks) {
  const auto path = write("a.conf", "port 7000\n");
  const auto link = directory_ + "/link.conf";
  std::filesystem::create_symlink(path, link);
  ASSERT_EQ(load({link}), "");
  ASSERT_EQ(set({{"hz", "20"}}), "OK");
  ASSERT_TRUE(config_.rewrite());
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_THAT(read(path), StartsWith("port 7000\n#"));
  std::filesystem::remove(path);
  std::filesystem::remove(link);
  ASSERT_TRUE(config_.rewrite());
  EXPECT_EQ(read(link), "# Generated by CONFIG REWRITE\nport 7000\nhz 20\n");
  std::filesystem::remove_all(directory_);
  EXPECT_THAT(config_.rewrite().error().message, StartsWith("ERR Rewriting config file: can't "));
}

TEST_F(ConfigTest, ManyThreadsReadWhileOneWrites) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        const int64_t timeout = config_.timeout_s();
        EXPECT_TRUE(timeout >= 0 && timeout < 300);
        const std::string password = config_.text(OptionId::kRequirePass);
        EXPECT_EQ(password, std::string(password.size(), 'x'));
        EXPECT_FALSE(get("client-output-buffer-limit").empty());
      }
    });
  }
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(set({{"timeout", std::to_string(i)},
                   {"requirepass", std::string(static_cast<size_t>(i % 40), 'x')}}),
              "OK");
  }
  stop = true;
  for (auto& reader : readers) reader.join();
}

}  // namespace
}  // namespace server
