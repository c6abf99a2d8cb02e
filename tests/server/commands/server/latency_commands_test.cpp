// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>

#include <set>
#include <utility>

#include "protocol/error_texts.h"
#include "protocol/reply_parser.h"
#include "server/base/config/config.h"
#include "server/base/latency/latency_monitor.h"
#include "server/session/observer.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"

namespace server {
namespace {

using ::testing::HasSubstr;

class LatencyCommandsTest : public CommandTest {
 protected:
  LatencyCommandsTest() {
    run({"CONFIG", "SET", "latency-monitor-threshold", "100"});
    observer_.record_event("fork", 150);
    advance_ms(2000);
    observer_.record_event("fork", 120);
    observer_.record_event("fork", 99);
    observer_.record_event("eviction-cycle", 300);
  }
};

TEST_F(LatencyCommandsTest, EventsAreShownByKind) {
  EXPECT_EQ(run({"LATENCY", "LATEST"}),
            "*2\r\n*4\r\n$14\r\neviction-cycle\r\n:1700000002\r\n:300\r\n:300\r\n"
            "*4\r\n$4\r\nfork\r\n:1700000002\r\n:120\r\n:150\r\n");
  EXPECT_EQ(run({"LATENCY", "HISTORY", "fork"}),
            "*2\r\n*2\r\n:1700000000\r\n:150\r\n*2\r\n:1700000002\r\n:120\r\n");
  EXPECT_EQ(run({"LATENCY", "HISTORY", "none"}), "*0\r\n");
  EXPECT_THAT(run({"LATENCY", "GRAPH", "fork"}), HasSubstr("fork - high 150 ms, low 120 ms"));
  EXPECT_THAT(run({"LATENCY", "GRAPH", "none"}), is_error("ERR", "'none'"));
  EXPECT_THAT(run({"LATENCY", "DOCTOR"}), HasSubstr("2. fork: 2 latency spikes"));
}

TEST_F(LatencyCommandsTest, ResetTellsHowManyKindsItForgot) {
  EXPECT_EQ(run({"LATENCY", "RESET", "fork", "none"}), integer(1));
  EXPECT_EQ(run({"LATENCY", "RESET"}), integer(1));
  EXPECT_EQ(run({"LATENCY", "LATEST"}), "*0\r\n");
}

TEST_F(LatencyCommandsTest, HistogramsCountCallsOfEachCommand) {
  run({"GET", "a"});
  run({"GET", "a"});
  run({"CLIENT", "ID"});
  const std::string one = run({"LATENCY", "HISTOGRAM", "get", "none", "client", "client|list"});
  EXPECT_TRUE(one.starts_with("*4\r\n$3\r\nget\r\n*4\r\n$5\r\ncalls\r\n:2\r\n")) << one;
  EXPECT_THAT(one, HasSubstr("$9\r\nclient|id\r\n*4\r\n$5\r\ncalls\r\n:1\r\n"));
  EXPECT_THAT(run({"LATENCY", "HISTOGRAM"}), HasSubstr("latency|histogram"));
  run({"CONFIG", "RESETSTAT"});
  EXPECT_EQ(run({"LATENCY", "HISTOGRAM", "get"}), "*0\r\n");
}

class EmptyLatencyTest : public CommandTest {};

TEST_F(EmptyLatencyTest, RepliesOfAServerWithoutEvents) {
  EXPECT_EQ(run({"LATENCY", "LATEST"}), "*0\r\n");
  EXPECT_EQ(run({"LATENCY", "HISTORY", "command"}), "*0\r\n");
  EXPECT_THAT(run({"LATENCY", "GRAPH", "command"}), is_error("ERR", "'command'"));
  EXPECT_EQ(run({"LATENCY", "RESET"}), integer(0));
  EXPECT_EQ(run({"LATENCY", "RESET", "command", "fork"}), integer(0));
  EXPECT_EQ(run({"LATENCY", "HISTOGRAM", "nosuch", "bitop"}), "*0\r\n");
}

TEST_F(EmptyLatencyTest, WrongWordsAreRefused) {
  EXPECT_EQ(run({"LATENCY", "HISTORY"}), error(protocol::wrong_arity("latency|history")));
  EXPECT_EQ(run({"LATENCY", "NOSUCH"}), error(protocol::unknown_subcommand("NOSUCH", "LATENCY")));
}

TEST_F(EmptyLatencyTest, PercentilesAreShownAsTheyAreKept) {
  const std::string name = "latency-tracking-info-percentiles";
  for (const auto& [given, shown] :
       std::initializer_list<std::pair<std::string, std::string>>{{"50 99", "50 99"},
                                                                  {"", ""},
                                                                  {"50 50", "50 50"},
                                                                  {"99.99999 0.5", "99.99999 0.5"},
                                                                  {"50.0 100", "50 100"},
                                                                  {"1e1", "10"}}) {
    EXPECT_EQ(run({"CONFIG", "SET", name, given}), kOk) << given;
    EXPECT_EQ(run({"CONFIG", "GET", name}), array({bulk(name), bulk(shown)}));
  }
}

TEST_F(EmptyLatencyTest, WrongPercentilesAreRefused) {
  const std::string name = "latency-tracking-info-percentiles";
  for (const char* const value : {"101", "-1"}) {
    EXPECT_EQ(run({"CONFIG", "SET", name, value}),
              error(config_set_error(name, name + " parameters should sit between [0.0,100.0]")));
  }
  for (const char* const value : {"abc", "nan"}) {
    EXPECT_EQ(run({"CONFIG", "SET", name, value}),
              error(config_set_error(name, "Invalid " + name + " parameters")));
  }
}

TEST_F(EmptyLatencyTest, ASlowCommandIsAnEvent) {
  config_.replace(OptionId::kEnableDebugCommand, "yes");
  run({"CONFIG", "SET", "latency-monitor-threshold", "50"});
  EXPECT_EQ(run({"DEBUG", "SLEEP", "0.05"}), kOk);
  const auto events = observer_.latency().events();
  ASSERT_EQ(events.count("command"), 1U);
  EXPECT_GE(events.at("command").longest_ms, 50);
  EXPECT_EQ(events.at("command").samples.at(0).time_s, clock_.now_ms / 1000);
  run({"CONFIG", "SET", "latency-monitor-threshold", "0"});
  EXPECT_EQ(run({"LATENCY", "RESET"}), integer(static_cast<int64_t>(events.size())));
  EXPECT_EQ(run({"LATENCY", "LATEST"}), "*0\r\n");
}

TEST_F(EmptyLatencyTest, HistogramsHaveTheStepsOfRedis) {
  run({"HELLO", "3"});
  for (int i = 0; i < 50; ++i) run({"GET", "k"});
  const std::string bytes = run({"LATENCY", "HISTOGRAM", "get"});
  protocol::ReplyParser parser;
  ASSERT_EQ(parser.parse(bytes), protocol::ReplyParser::Status::kReply);
  const auto& histogram = parser.reply().elements.at(1).elements;
  ASSERT_EQ(histogram.size(), 4U);
  EXPECT_EQ(histogram[0].text, "calls");
  EXPECT_EQ(histogram[1].integer, 50);
  EXPECT_EQ(histogram[2].text, "histogram_usec");
  // The upper bounds of the histogram are those of Redis: 1.024 microseconds times powers of two,
  // rounded by the histogram library of Redis.
  std::set<int64_t> steps;
  for (int i = 0; i < 30; ++i) steps.insert((int64_t{1024} << i) * 129 / 128 / 1000);
  int64_t before = 0;
  for (size_t i = 0; i < histogram[3].elements.size(); i += 2) {
    EXPECT_EQ(steps.count(histogram[3].elements[i].integer), 1U);
    EXPECT_GE(histogram[3].elements[i + 1].integer, before);
    before = histogram[3].elements[i + 1].integer;
  }
  EXPECT_EQ(before, 50);
}

TEST_F(EmptyLatencyTest, PercentilesOfASleepAreItsTime) {
  config_.replace(OptionId::kEnableDebugCommand, "yes");
  run({"GET", "k"});
  run({"CLIENT", "ID"});
  run({"DEBUG", "SLEEP", "0.1"});
  const std::string stats = run({"INFO", "latencystats"});
  EXPECT_THAT(stats, ::testing::ContainsRegex("latency_percentiles_usec_get:p50=[0-9]+\\.[0-9]{3},"
                                              "p99=[0-9]+\\.[0-9]{3},p99\\.9=[0-9]+\\.[0-9]{3}\r"));
  EXPECT_THAT(stats, HasSubstr("latency_percentiles_usec_client|id:"));
  const size_t line = stats.find("latency_percentiles_usec_debug");
  ASSERT_NE(line, std::string::npos);
  const double slept_us = std::stod(stats.substr(stats.find("p50=", line) + 4));
  // The upper limit is high, because DEBUG SLEEP may take longer on a busy machine.
  EXPECT_GT(slept_us, 97'000);
  EXPECT_LT(slept_us, 30e6);
}

}  // namespace
}  // namespace server
