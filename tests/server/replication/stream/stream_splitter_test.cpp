// SPDX-License-Identifier: MIT
#include "server/replication/stream/stream_splitter.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "core/memory/thread_heap.h"
#include "tests/support/environment.h"
#include "tests/support/stream_bytes.h"

namespace server {
namespace {

using Status = StreamSplitter::Status;

constexpr size_t kUnitBytesMax = size_t{1} << 20;

struct Unit {
  std::string bytes;
  std::vector<std::vector<std::string>> commands;

  bool operator==(const Unit&) const = default;
};

Unit copy_of(const StreamSplitter& splitter) {
  Unit unit{std::string(splitter.bytes()), {}};
  for (const auto& words : splitter.commands()) {
    unit.commands.emplace_back(words.begin(), words.end());
  }
  return unit;
}

void drain(StreamSplitter& splitter, std::vector<Unit>& units) {
  while (splitter.next() == Status::kUnit) units.push_back(copy_of(splitter));
}

// Returns a stream with single commands, empty lines, transactions and a long value.
std::string sample_stream() {
  const std::string value(3000, 'v');
  return command({"SELECT", "0"}) + command({"SET", "a", value}) + "\n\r\n" + command({"MULTI"}) +
         command({"SET", "b", "\r\n*1\r\n"}) + command({"BF.ADD", "f", ""}) + command({"exec"}) +
         command({"PING"}) + command({"multi"}) + command({"EXEC"}) + "\n" + command({"DEL", "a"});
}

std::vector<Unit> whole(const std::string& stream) {
  StreamSplitter splitter(kUnitBytesMax);
  splitter.append(stream);
  std::vector<Unit> units;
  drain(splitter, units);
  return units;
}

TEST(StreamSplitterTest, CommandsAndGroupsAreUnits) {
  const std::string stream = sample_stream();
  const auto units = whole(stream);
  ASSERT_EQ(units.size(), 6U);
  EXPECT_EQ(units[2].commands,
            (std::vector<std::vector<std::string>>{
                {"MULTI"}, {"SET", "b", "\r\n*1\r\n"}, {"BF.ADD", "f", ""}, {"exec"}}));
  EXPECT_TRUE(units[2].bytes.starts_with("\n\r\n*1\r\n$5\r\nMULTI"));
  EXPECT_EQ(units[4].commands.size(), 2U);
  std::string joined;
  for (const Unit& unit : units) joined += unit.bytes;
  EXPECT_EQ(joined, stream);
}

TEST(StreamSplitterTest, EveryCutGivesTheSameUnits) {
  const std::string stream = sample_stream();
  const auto expected = whole(stream);
  for (size_t cut = 0; cut <= stream.size(); ++cut) {
    StreamSplitter splitter(kUnitBytesMax);
    std::vector<Unit> units;
    splitter.append(std::string_view(stream).substr(0, cut));
    drain(splitter, units);
    splitter.append(std::string_view(stream).substr(cut));
    drain(splitter, units);
    ASSERT_EQ(units, expected) << "cut at " << cut;
    ASSERT_EQ(splitter.pending_bytes(), 0U);
  }
}

TEST(StreamSplitterTest, AGroupWaitsForItsExec) {
  StreamSplitter splitter(kUnitBytesMax);
  const std::string begin = command({"MULTI"}) + command({"SET", "a", "1"});
  splitter.append(begin);
  EXPECT_EQ(splitter.next(), Status::kNeedMore);
  EXPECT_EQ(splitter.pending_bytes(), begin.size());
  splitter.append(command({"EXEC"}));
  EXPECT_EQ(splitter.next(), Status::kUnit);
  EXPECT_TRUE(splitter.is_group());
}

TEST(StreamSplitterTest, InvalidStreamsAreErrors) {
  const std::vector<std::string> streams = {
      command({"EXEC"}),
      command({"MULTI"}) + command({"MULTI"}),
      command({"MULTI"}) + command({"SET", "a", "1"}) + command({"discard"}),
      command({"DISCARD"}),
      command({"RESET"}),
      command({"MULTI"}) + command({"QUIT"}),
      "PING\r\n",
      "*0\r\n",
      "*-1\r\n",
      "+OK\r\n",
      "*0\r\nPING \"x\"\r\n",
      "*1\r\n:3\r\n",
      "*99999999999999999999\r\n",
      "*1\r\n$-5\r\n",
      "*1\r\n$99999999999\r\n",
      std::string(10, '\0'),
  };
  for (const std::string& stream : streams) {
    StreamSplitter splitter(kUnitBytesMax);
    Status status = Status::kNeedMore;
    for (const char byte : stream) {
      splitter.append({&byte, 1});
      status = splitter.next();
      if (status == Status::kError) break;
    }
    EXPECT_EQ(status, Status::kError) << stream;
    EXPECT_FALSE(splitter.error().empty());
    splitter.append(command({"PING"}));
    EXPECT_EQ(splitter.next(), Status::kError) << "an error is for good";
  }
}

TEST(StreamSplitterTest, AUnitBeyondTheLimitIsAnError) {
  const std::string set = command({"SET", "a", std::string(400, 'x')});
  StreamSplitter splitter(1000);
  splitter.append(set + set + set);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(splitter.next(), Status::kUnit) << "each alone is short";
  splitter.append(command({"MULTI"}) + set + set);
  EXPECT_EQ(splitter.next(), Status::kNeedMore);
  EXPECT_FALSE(splitter.unit_is_too_big());
  splitter.append(set);
  EXPECT_EQ(splitter.next(), Status::kError);
  EXPECT_TRUE(splitter.unit_is_too_big());

  // Line breaks before a command count as part of it. So 900 line breaks make this command too big,
  // whether the bytes arrive at once or in two pieces.
  for (const size_t cut : {size_t{0}, size_t{1100}}) {
    StreamSplitter other(1000);
    const std::string text = std::string(900, '\n') + set;
    other.append(std::string_view(text).substr(0, cut));
    EXPECT_EQ(other.next(), cut > 0 ? Status::kError : Status::kNeedMore);
    other.append(std::string_view(text).substr(cut));
    EXPECT_EQ(other.next(), Status::kError);
  }
}

TEST(StreamSplitterTest, MemoryOfABigUnitIsFreed) {
  constexpr uint64_t kKeptBytesMax = uint64_t{3} << 19;
  if (!core::thread_heap_bytes()) GTEST_SKIP() << "only jemalloc counts the bytes of a thread";
  const std::string many_words = command(std::vector<std::string_view>(200'000, "x"));
  std::string many_commands = command({"MULTI"});
  for (int i = 0; i < 300'000; ++i) many_commands += command({"PING"});
  many_commands += command({"EXEC"});
  StreamSplitter splitter(size_t{64} << 20);
  for (const std::string& unit : {many_words, many_commands}) {
    const uint64_t before = *core::thread_heap_bytes();
    splitter.append(unit);
    EXPECT_EQ(splitter.next(), Status::kUnit);
    splitter.append(command({"PING"}));
    EXPECT_EQ(splitter.next(), Status::kUnit);
    EXPECT_EQ(splitter.next(), Status::kNeedMore);
    EXPECT_LT(*core::thread_heap_bytes(), before + kKeptBytesMax);
    splitter.append(command({"PING"}));
    EXPECT_EQ(splitter.next(), Status::kUnit);
  }
}

TEST(StreamSplitterTest, RandomStreamsInRandomPieces) {
  const uint64_t seed = support::number_of("BLOOMERY_SEED", 1);
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto below = [&](size_t bound) { return static_cast<size_t>(random() % bound); };
  for (int round = 0; round < 200; ++round) {
    std::string stream;
    size_t unit_count = 0;
    for (size_t left = below(40); left > 0; --left, ++unit_count) {
      const bool is_group = below(4) == 0;
      if (is_group) stream += command({"MULTI"});
      for (size_t n = is_group ? below(5) : 1; n > 0; --n) {
        const std::string value(below(300), static_cast<char>(random()));
        stream += command({"SET", "key", value});
      }
      if (is_group) stream += command({"EXEC"});
    }
    StreamSplitter splitter(kUnitBytesMax);
    std::vector<Unit> units;
    for (std::string_view rest = stream; !rest.empty();) {
      const size_t size = std::min(rest.size(), 1 + below(below(2) == 0 ? 8 : 2000));
      splitter.append(rest.substr(0, size));
      rest.remove_prefix(size);
      drain(splitter, units);
    }
    ASSERT_EQ(units.size(), unit_count);
    ASSERT_EQ(units, whole(stream));
  }
}

}  // namespace
}  // namespace server
