// SPDX-License-Identifier: MIT
//
// Tests malformed values. docs/security.md lists the faults of other servers that each test covers.
// BLOOMERY_SECURITY_ROUNDS makes the random tests longer; BLOOMERY_SEED replays them.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "persistence/bytes/crc64.h"
#include "protocol/reply_parser.h"
#include "tests/support/command_test.h"
#include "tests/support/environment.h"

namespace server {
namespace {

using WordList = std::vector<std::string>;
using testing::StartsWith;

class HostilePayloadsTest : public CommandTest {
 protected:
  protocol::Reply reply_of(const WordList& words) {
    protocol::ReplyParser parser;
    EXPECT_EQ(parser.parse(run(words)), protocol::ReplyParser::Status::kReply);
    return std::move(parser.reply());
  }
  // Returns a DUMP payload with a correct checksum, whatever it contains.
  static std::string signed_payload(std::string body) {
    const uint64_t sum = persistence::crc64(0, body);
    for (int i = 0; i < 8; ++i) body += static_cast<char>(sum >> (8 * i));
    return body;
  }
  std::string restore(const std::string& key, const std::string& body) {
    return run({"RESTORE", key, "0", signed_payload(body), "REPLACE"});
  }
  // Returns the payload of a filter, without its checksum.
  std::string body_of(const std::string& key) {
    std::string payload = reply_of({"DUMP", key}).text;
    payload.resize(payload.size() - 8);
    return payload;
  }
  void add_items(const std::string& key, int count) {
    WordList words{"BF.MADD", key};
    for (int i = 0; i < count; ++i) words.push_back(std::to_string(i));
    run(words);
  }
  size_t below(size_t end) { return std::uniform_int_distribution<size_t>(0, end - 1)(random_); }
  std::string random_bytes(size_t size) {
    std::string bytes(size, '\0');
    for (char& byte : bytes) byte = static_cast<char>(below(256));
    return bytes;
  }
  // Runs every filter command on this key.
  void use_filter(const std::string& key) {
    for (const WordList& words : {WordList{"BF.INFO", key},
                                  {"BF.ADD", key, "a"},
                                  {"BF.MADD", key, "b", "c"},
                                  {"BF.CARD", key},
                                  {"BF.EXISTS", key, "a"},
                                  {"BF.MEXISTS", key, "a", "z"},
                                  {"BF.SCANDUMP", key, "0"},
                                  {"BF.STATS", key},
                                  {"COPY", key, "copy", "REPLACE"},
                                  {"DUMP", key},
                                  {"MEMORY", "USAGE", key},
                                  {"OBJECT", "ENCODING", key}}) {
      EXPECT_NE(run(words), "");
    }
  }
  void load_forged(const std::vector<std::pair<std::string, std::string>>& chunks);
  std::string forged(std::string body);

  const uint64_t rounds_ = support::number_of("BLOOMERY_SECURITY_ROUNDS", 2000);
  std::mt19937_64 random_{support::number_of("BLOOMERY_SEED", 1)};
};

TEST_F(HostilePayloadsTest, StringsAreNeverReadAsFilters) {
  run({"BF.RESERVE", "f", "0.01", "100"});
  for (const std::string& text :
       {"HYLL" + std::string(12, '\0'), reply_of({"DUMP", "f"}).text, std::string("MBbloom--"),
        std::string(64, '\xff'), std::string()}) {
    run({"SET", "k", text});
    run({"SETRANGE", "k", "0", text});
    run({"SETBIT", "k", "3", "1"});
    for (const WordList& words : {WordList{"BF.ADD", "k", "i"},
                                  {"BF.MADD", "k", "i"},
                                  {"BF.INFO", "k"},
                                  {"BF.CARD", "k"},
                                  {"BF.INSERT", "k", "ITEMS", "i"},
                                  {"BF.SCANDUMP", "k", "0"},
                                  {"BF.STATS", "k"},
                                  {"BF.MERGE", "f", "k"},
                                  {"BF.CLEAR", "k"},
                                  {"BF.LOADCHUNK", "k", "2", "x"}}) {
      EXPECT_THAT(run(words), StartsWith("-")) << testing::PrintToString(words);
    }
    EXPECT_EQ(run({"BF.EXISTS", "k", "i"}), integer(0));
  }
  EXPECT_THAT(run({"PFADD", "k", "i"}), StartsWith("-"));
}

void HostilePayloadsTest::load_forged(
    const std::vector<std::pair<std::string, std::string>>& chunks) {
  WordList cursors{"0", "-1", "1", "2", "9223372036854775807", "-9223372036854775808"};
  for (const auto& chunk : chunks) cursors.push_back(chunk.first);
  run({"DEL", "g"});
  for (auto [cursor, data] : chunks) {
    if (below(10) < 4) cursor = cursors[below(cursors.size())];
    switch (below(6)) {
      case 0:
        data.resize(below(data.size() + 1));
        break;
      case 1:
        data.append(1 + below(99), '\0');
        break;
      case 2:
        for (size_t changes = 1 + below(4); changes > 0 && !data.empty(); --changes) {
          data[below(std::min<size_t>(data.size(), 128))] = "\0\1\x7f\x80\xff"[below(5)];
        }
        break;
      default:
        break;
    }
    run({"BF.LOADCHUNK", "g", cursor, data});
    if (below(10) == 0) run({"BF.LOADCHUNK", "g", cursor, data});
  }
  use_filter("g");
}

// BF.LOADCHUNK with wrong iterators, lengths and headers. The fuzzers forge many more.
TEST_F(HostilePayloadsTest, ChunksThatLie) {
  for (const std::string layout : {"native", "redisbloom"}) {
    run({"CONFIG", "SET", "bf-layout", layout});
    run({"DEL", "f"});
    run({"BF.RESERVE", "f", "0.01", "1000"});
    add_items("f", 2000);
    std::vector<std::pair<std::string, std::string>> chunks;
    std::string cursor = "0";
    while (true) {
      const protocol::Reply reply = reply_of({"BF.SCANDUMP", "f", cursor});
      ASSERT_EQ(reply.elements.size(), 2U);
      cursor = std::to_string(reply.elements[0].integer);
      if (cursor == "0") break;
      chunks.emplace_back(cursor, reply.elements[1].text);
    }
    ASSERT_GE(chunks.size(), 2U);
    for (uint64_t round = 0; round < rounds_ / 2; ++round) load_forged(chunks);
  }
}

std::string HostilePayloadsTest::forged(std::string body) {
  for (size_t changes = 1 + below(3); changes > 0; --changes) {
    // Changes only the first 160 bytes of the payload, which contain the sizes. The bits of the
    // filter follow.
    const size_t index = 1 + below(std::min<size_t>(body.size() - 2, 160) - 1);
    switch (below(4)) {
      case 0:
        body[index] = "\0\1\x7f\x80\x81\xc3\xff"[below(7)];
        break;
      case 1:
        body[index] = static_cast<char>(body[index] ^ (1 << below(8)));
        break;
      case 2:
        body.erase(index, 1 + below(9));
        break;
      default:
        body.insert(index, random_bytes(1 + below(9)));
        break;
    }
  }
  return body;
}

// Tests forged filters whose checksum is correct. If the server accepts such a filter, every
// command on it must be safe, and SAVE must work.
TEST_F(HostilePayloadsTest, ForgedFilters) {
  std::vector<std::string> bodies;
  for (const std::string layout : {"native", "redisbloom", "valkey-bloom"}) {
    run({"CONFIG", "SET", "bf-layout", layout});
    for (const WordList& scaling : {WordList{"NONSCALING"}, {"EXPANSION", "2"}}) {
      run({"DEL", "f"});
      WordList words{"BF.RESERVE", "f", "0.01", "50"};
      words.insert(words.end(), scaling.begin(), scaling.end());
      run(words);
      add_items("f", scaling.size() == 1 ? 40 : 120);
      bodies.push_back(body_of("f"));
    }
  }
  run({"CONFIG", "SET", "bf-layout", "native"});
  for (const WordList& kind :
       {WordList{"DELETABLE"}, {"DELETABLE", "REGIONS", "4"}, {"WINDOW", "600"}}) {
    run({"DEL", "f"});
    WordList words{"BF.RESERVE", "f", "0.01", "50"};
    words.insert(words.end(), kind.begin(), kind.end());
    run(words);
    add_items("f", 40);
    bodies.push_back(body_of("f"));
  }
  for (const std::string& body : bodies) EXPECT_EQ(restore("r", body), kOk);
  uint64_t accepted = 0;
  for (uint64_t round = 0; round < rounds_; ++round) {
    if (restore("r", forged(bodies[below(bodies.size())])) != kOk) continue;
    use_filter("r");
    if (++accepted % 50 == 0) {
      EXPECT_EQ(run({"SAVE"}), kOk);
    }
  }
  EXPECT_EQ(run({"SAVE"}), kOk);
  // The test is useful only if the server accepts some damaged payloads and rejects others.
  EXPECT_GT(accepted, 0U);
  EXPECT_LT(accepted, rounds_);
}

// Tests compressed strings and encoded strings with wrong lengths.
TEST_F(HostilePayloadsTest, ForgedStrings) {
  const std::string all_ones(8, '\xff');
  for (const std::string& body : {
           std::string("\x00\xc3\x05\x0a"
                       "abcde",
                       9),
           std::string("\x00\xc3\x01\x80\xff\xff\xff\xff\x00", 9),
           std::string("\x00\xc3\x81", 3) + all_ones + "\x81" + all_ones + "x",
           std::string("\x00\xc0", 2),
           std::string("\x00\xc1"
                       "a",
                       3),
           std::string("\x00\xc2"
                       "abc",
                       5),
           std::string("\x00\xc4"
                       "abc",
                       5),
           std::string("\x00\xff", 2),
           std::string("\x00\x81", 2) + all_ones,
           std::string("\x00\x80\xff\xff\xff\xffx", 7),
           std::string("\x00\x05"
                       "abc",
                       5),
           std::string("\x00", 1),
           std::string(),
           std::string("\x07\x00", 2),
           std::string("\x00\xc3\x04\x04\xff\xff\xff\xff", 8),
           std::string("\x00\xc3\x03\x09\x40\xff\x00", 7),
       }) {
    EXPECT_THAT(restore("s", body + std::string("\x0a\x00", 2)), StartsWith("-"))
        << testing::PrintToString(body);
  }
  EXPECT_EQ(run({"EXISTS", "s"}), integer(0));
}

}  // namespace
}  // namespace server
