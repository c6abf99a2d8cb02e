// SPDX-License-Identifier: MIT
//
// Tests BF.SCANDUMP and BF.LOADCHUNK: a filter is dumped and loaded in chunks. Chunks that do not
// fit the filter are rejected.
#include "server/commands/bloom/bloom_chunk_commands.h"

#include <gmock/gmock.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "protocol/reply_parser.h"
#include "tests/support/key_test.h"
#include "tests/support/sanitized.h"

namespace server {
namespace {

using testing::StartsWith;

class BloomChunkCommandsTest : public KeyTest {
 protected:
  using Chunk = std::pair<std::string, std::string>;  // iterator and data of a chunk of BF.SCANDUMP

  BloomChunkCommandsTest() {
    run({"BF.RESERVE", "f", "0.01", "100"});
    for (int i = 0; i < 500; ++i) run({"BF.ADD", "f", std::to_string(i)});
  }
  // Runs BF.SCANDUMP with this iterator. Returns the next iterator and the data of the chunk.
  Chunk dump(const std::string& iterator) {
    const std::string bytes = run({"BF.SCANDUMP", "f", iterator});
    protocol::ReplyParser parser;
    EXPECT_EQ(parser.parse(bytes), protocol::ReplyParser::Status::kReply);
    const auto& elements = parser.reply().elements;
    if (elements.size() != 2) return {"0", ""};
    return {std::to_string(elements[0].integer), elements[1].text};
  }
  std::vector<Chunk> all_chunks() {
    std::vector<Chunk> chunks;
    for (std::string iterator = "0";;) {
      Chunk chunk = dump(iterator);
      if (chunk.first == "0") return chunks;
      iterator = chunk.first;
      chunks.push_back(std::move(chunk));
    }
  }
  std::string load(const std::string& name, const Chunk& chunk) {
    return run({"BF.LOADCHUNK", name, chunk.first, chunk.second});
  }
};

TEST_F(BloomChunkCommandsTest, ThePiecesMakeTheSameFilter) {
  for (const Chunk& chunk : all_chunks()) EXPECT_EQ(load("g", chunk), kOk);
  EXPECT_EQ(run({"BF.INFO", "g"}), run({"BF.INFO", "f"}));
  for (int i = 0; i < 1000; ++i) {
    const std::string item = std::to_string(i);
    ASSERT_EQ(run({"BF.EXISTS", "g", item}), run({"BF.EXISTS", "f", item})) << item;
  }
}

TEST_F(BloomChunkCommandsTest, TheHeaderComesFirstAndEveryLayerBehindIt) {
  const auto chunks = all_chunks();
  EXPECT_EQ(chunks.at(0).first, "1");
  EXPECT_EQ(chunks.size(), 1 + entry_of("f")->filter().layer_count());
}

TEST_F(BloomChunkCommandsTest, BehindTheEndThereIsNothing) {
  EXPECT_EQ(dump("999999999"), (Chunk{"0", ""}));
  EXPECT_EQ(dump("-5"), (Chunk{"0", ""}));
}

TEST_F(BloomChunkCommandsTest, AnIteratorIsANumber) {
  EXPECT_EQ(run({"BF.SCANDUMP", "f", "x"}), error(kIteratorToRead));
  EXPECT_EQ(run({"BF.LOADCHUNK", "g", "x", "data"}), error(kIteratorToWrite));
}

TEST_F(BloomChunkCommandsTest, OnlyFiltersHavePieces) {
  put("text", "value");
  EXPECT_THAT(run({"BF.SCANDUMP", "text", "0"}), StartsWith("-WRONGTYPE"));
  EXPECT_THAT(run({"BF.LOADCHUNK", "text", "1", "data"}), StartsWith("-WRONGTYPE"));
  EXPECT_THAT(run({"BF.SCANDUMP", "none", "0"}), StartsWith("-ERR"));
}

TEST_F(BloomChunkCommandsTest, WithoutTheHeaderNothingIsMade) {
  const auto chunks = all_chunks();
  EXPECT_THAT(load("g", chunks.at(1)), StartsWith("-ERR"));
  EXPECT_EQ(run({"EXISTS", "g"}), integer(0));
}

TEST_F(BloomChunkCommandsTest, AHeaderThatIsNoneIsRefused) {
  for (const std::string& data : {std::string(), std::string("junk"), std::string(60, '\xff')}) {
    EXPECT_EQ(load("g", {"1", data}), error(kBadData));
  }
  EXPECT_EQ(run({"EXISTS", "g"}), integer(0));
}

TEST_F(BloomChunkCommandsTest, ASecondHeaderDoesNotReplaceAFilter) {
  const auto chunks = all_chunks();
  EXPECT_THAT(load("f", chunks.at(0)), StartsWith("-ERR"));
  EXPECT_EQ(run({"BF.EXISTS", "f", "1"}), integer(1));
}

TEST_F(BloomChunkCommandsTest, APieceBehindTheLastLayerIsRefused) {
  for (const Chunk& chunk : all_chunks()) EXPECT_EQ(load("g", chunk), kOk);
  EXPECT_EQ(load("g", {"999999999", "data"}), error(kNoLayer));
}

TEST_F(BloomChunkCommandsTest, APieceThatIsTooLongIsRefused) {
  const auto chunks = all_chunks();
  EXPECT_EQ(load("g", chunks.at(0)), kOk);
  std::string long_piece = chunks.at(1).second + "x";
  const auto end = std::to_string(std::stoll(chunks.at(1).first) + 1);
  EXPECT_EQ(load("g", {end, long_piece}), error(kChunkTooLong));
}

TEST_F(BloomChunkCommandsTest, AnIteratorBeforeItsDataIsRefused) {
  const auto chunks = all_chunks();
  EXPECT_EQ(load("g", chunks.at(0)), kOk);
  EXPECT_EQ(load("g", {"3", "more than three"}), error(kBadData));
  EXPECT_EQ(load("g", {"0", "x"}), error(kBadData));
}

TEST_F(BloomChunkCommandsTest, PiecesMayComeTwice) {
  const auto chunks = all_chunks();
  for (int round = 0; round < 2; ++round) {
    for (size_t i = round == 0 ? 0 : 1; i < chunks.size(); ++i) {
      EXPECT_EQ(load("g", chunks[i]), kOk);
    }
  }
  EXPECT_EQ(run({"BF.EXISTS", "g", "1"}), integer(1));
}

// The arrays of a deletable filter must agree with the item counts of its layers. RESTORE accepts
// all arrays that BF.LOADCHUNK accepts, and those of partly loaded filters.
TEST_F(BloomChunkCommandsTest, AcceptsLessThanRestore) {
  constexpr uint64_t kSeed = 31;
  constexpr int kRounds = support::rounds(400, 60);
  std::mt19937_64 random(kSeed);
  int refused = 0;
  for (const std::string bits : {"0", "1", "4"}) {
    run({"DEL", "f"});
    std::vector<std::string> reserve{"BF.RESERVE", "f", "0.01", "20", "DELETABLE"};
    if (bits != "0") reserve.insert(reserve.end(), {"REGIONS", bits});
    ASSERT_EQ(run(reserve), kOk);
    for (int i = 0; i < 50; ++i) run({"BF.ADD", "f", std::to_string(i)});
    const auto chunks = all_chunks();
    ASSERT_GT(chunks.size(), 2U);
    for (int round = 0; round < kRounds; ++round) {
      auto mutated = chunks;
      std::string& data = mutated[1 + random() % (mutated.size() - 1)].second;
      for (uint64_t flips = random() % 3; flips > 0; --flips) {
        data[random() % data.size()] ^= static_cast<char>(1U << random() % 8);
      }
      run({"DEL", "g"});
      std::string loaded;
      for (const Chunk& chunk : mutated) loaded = load("g", chunk);
      // A journal may contain BF.LOADCHUNK commands that never loaded the last chunk. So a replay
      // of the journal does not check that the array agrees with the item counts.
      client_->session->origin = CommandOrigin::kOwnJournal;
      ASSERT_EQ(load("g", mutated.back()), kOk);
      client_->session->origin = CommandOrigin::kClient;
      const std::string dumped = run({"DUMP", "g"});
      const size_t start = dumped.find("\r\n") + 2;
      const std::string payload = dumped.substr(start, dumped.size() - start - 2);
      const bool is_restored = run({"RESTORE", "h", "0", payload, "REPLACE"}) == kOk;
      ASSERT_TRUE(loaded == error(kBadData) || is_restored)
          << "regions " << bits << " seed " << kSeed << " round " << round;
      refused += loaded == kOk ? 0 : 1;
    }
  }
  EXPECT_GT(refused, kRounds / 4);
}

TEST_F(BloomChunkCommandsTest, ARefusedLastPieceChangesNothing) {
  run({"DEL", "f"});
  run({"BF.RESERVE", "f", "0.01", "20", "DELETABLE"});
  run({"BF.ADD", "f", "item"});
  auto chunks = all_chunks();
  for (const Chunk& chunk : chunks) EXPECT_EQ(load("g", chunk), kOk);
  const std::string before = run({"DUMP", "g"});
  Chunk other = chunks.back();
  other.second.assign(other.second.size(), '\xff');
  EXPECT_EQ(load("g", other), error(kBadData));
  EXPECT_EQ(run({"DUMP", "g"}), before);
}

}  // namespace
}  // namespace server
