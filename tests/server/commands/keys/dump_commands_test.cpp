// SPDX-License-Identifier: MIT
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "persistence/bytes/byte_codec.h"
#include "persistence/bytes/crc64.h"
#include "persistence/filters/valkeybloom_codec.h"
#include "persistence/rdb/dump_payload.h"
#include "server/commands/bloom/bloom_access.h"
#include "server/commands/bloom/bloom_chunk_commands.h"
#include "server/commands/keys/dump_value.h"
#include "server/dispatch/context.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"
#include "tests/support/vectors.h"

namespace server {
namespace {

class DumpCommands : public CommandTest {
 protected:
  // Returns the text in a bulk reply.
  static std::string content(const std::string& reply) {
    const size_t start = reply.find("\r\n") + 2;
    return reply.size() < start + 2 ? "" : reply.substr(start, reply.size() - start - 2);
  }
  std::string dump(const std::string& key) { return content(run({"DUMP", key})); }
  static std::string sealed(std::string body) {
    persistence::append_dump_footer(body);
    return body;
  }
};

TEST_F(DumpCommands, KeyMetadataOfModulesIsDropped) {
  run({"SET", "a", "value"});
  run({"BF.ADD", "f", "item"});
  for (const char* key : {"a", "f"}) {
    const std::string plain = dump(key);
    // As in Redis 8.6, the payload begins with key metadata, followed by the type byte. The
    // metadata has one class, which contains one number.
    std::string payload("\xF3\x01spec\x02\x05\x00", 9);
    payload += plain.substr(0, plain.size() - 10);
    persistence::ByteWriter writer(payload);
    writer.u16(13);
    writer.u64(persistence::crc64(0, payload));
    EXPECT_EQ(run({"RESTORE", "copy", "0", payload, "REPLACE"}), kOk) << key;
    EXPECT_EQ(dump("copy"), plain) << key;
  }
}

TEST_F(DumpCommands, StringsAreDumpedAsRedisDoes) {
  run({"SET", "str", "hello world"});
  run({"SET", "int", "12345"});
  run({"SET", "negint", "-7"});
  run({"SET", "bigint", "9223372036854775807"});
  run({"SET", "emptystr", ""});
  run({"SET", "ttlstr", "v", "PXAT", "4102444800000"});
  std::string long_text;
  for (int i = 0; i < 100; ++i) long_text += "abcdefghij";
  run({"SET", "longstr", long_text});
  for (const char* bit : {"7", "1000", "65535"}) run({"SETBIT", "bitmap", bit, "1"});
  for (const char* key :
       {"str", "int", "negint", "bigint", "emptystr", "longstr", "ttlstr", "bitmap"}) {
    const std::string theirs = vectors::read(fmt::format("redisbloom/dump/{}.bin", key));
    EXPECT_EQ(dump(key), theirs) << key;
    EXPECT_EQ(run({"RESTORE", "copy", "0", theirs, "REPLACE"}), kOk);
    EXPECT_EQ(run({"GET", "copy"}), run({"GET", key}));
  }
  EXPECT_EQ(run({"DUMP", "missing"}), kNull);
}

TEST_F(DumpCommands, FiltersOfOtherServersAreRestored) {
  for (const std::string writer : {"redisbloom", "valkey-bloom"}) {
    for (const vectors::Expected& expected : vectors::expected(writer)) {
      SCOPED_TRACE(writer + " " + expected.name);
      const std::string payload = vectors::read(writer + "/dump/" + expected.name + ".bin");
      ASSERT_EQ(run({"RESTORE", "f", "0", payload, "REPLACE"}), kOk);
      EXPECT_EQ(run({"BF.CARD", "f"}), integer(static_cast<int64_t>(expected.item_count)));
      const auto one = [](uint64_t value) { return array({integer(static_cast<int64_t>(value))}); };
      EXPECT_EQ(run({"BF.INFO", "f", "CAPACITY"}), one(expected.capacity));
      EXPECT_EQ(run({"BF.INFO", "f", "FILTERS"}), one(expected.layer_count));
      EXPECT_EQ(run({"BF.INFO", "f", "EXPANSION"}),
                expected.expansion == 0 ? array({kNull}) : one(expected.expansion));
      std::vector<int> found;
      for (int n = 0; n < 1000; ++n) {
        if (run({"BF.EXISTS", "f", fmt::format("absent:{}", n)}) == integer(1)) found.push_back(n);
      }
      EXPECT_EQ(found, expected.false_positives);
    }
  }
}

TEST_F(DumpCommands, OurOwnFiltersComeBack) {
  run({"BF.RESERVE", "f", "0.01", "10"});
  for (int i = 0; i < 100; ++i) run({"BF.ADD", "f", std::to_string(i)});
  EXPECT_EQ(run({"RESTORE", "g", "0", dump("f")}), kOk);
  EXPECT_EQ(run({"BF.INFO", "g"}), run({"BF.INFO", "f"}));
  EXPECT_EQ(dump("g"), dump("f"));
}

TEST_F(DumpCommands, RestoreSetsExpiryAndReplaces) {
  run({"SET", "a", "1"});
  const std::string payload = dump("a");
  EXPECT_EQ(run({"RESTORE", "a", "0", payload}), error(kBusyKey));
  EXPECT_EQ(run({"RESTORE", "a", "5000", payload, "replace"}), kOk);
  EXPECT_EQ(run({"PTTL", "a"}), integer(5000));
  EXPECT_EQ(run({"RESTORE", "a", "4102444800000", payload, "REPLACE", "ABSTTL"}), kOk);
  EXPECT_EQ(run({"PEXPIRETIME", "a"}), integer(4102444800000));
  EXPECT_EQ(run({"RESTORE", "a", "0", payload, "REPLACE", "IDLETIME", "100"}), kOk);
  EXPECT_EQ(run({"TTL", "a"}), integer(-1));
  EXPECT_EQ(run({"OBJECT", "IDLETIME", "a"}), integer(100));
  EXPECT_EQ(run({"RESTORE", "a", "0", payload, "REPLACE", "FREQ", "255"}), kOk);
  // RESTORE with an expiry in the past deletes the old key and creates no key.
  EXPECT_EQ(run({"RESTORE", "a", "1", payload, "REPLACE", "ABSTTL"}), kOk);
  EXPECT_EQ(run({"EXISTS", "a"}), integer(0));
  EXPECT_EQ(run({"DBSIZE"}), integer(0));
}

TEST_F(DumpCommands, RestoreInAStreamReplaces) {
  run({"SET", "a", "1"});
  const std::string payload = dump("a");
  run({"SET", "a", "2"});
  for (const CommandOrigin origin : {CommandOrigin::kOwnJournal, CommandOrigin::kForeignJournal}) {
    client_->session->origin = origin;
    EXPECT_EQ(run({"RESTORE", "a", "0", payload}), kOk);
  }
  client_->session->origin = CommandOrigin::kClient;
  EXPECT_EQ(run({"GET", "a"}), bulk("1"));
}

TEST_F(DumpCommands, RestoreChecksInTheOrderOfRedis) {
  run({"SET", "taken", "1"});
  const std::string good = dump("taken");
  std::string flipped = good;
  flipped[1] ^= 1;
  const std::string wrong = error(kWrongFooter);
  const std::string bad = error(kBadFormat);
  const std::string busy = error(kBusyKey);
  struct Case {
    std::vector<std::string> command;
    ::testing::Matcher<const std::string&> reply;
  };
  const std::vector<Case> cases = {
      {{"RESTORE", "taken", "x", "y", "WHAT"}, error(kSyntaxError)},
      {{"RESTORE", "taken", "x", "y", "IDLETIME"}, error(kSyntaxError)},
      {{"RESTORE", "taken", "x", "y", "IDLETIME", "1", "FREQ", "1"}, error(kSyntaxError)},
      {{"RESTORE", "k", "0", good, "IDLETIME", "-1"}, is_error("ERR", "IDLETIME")},
      {{"RESTORE", "k", "0", good, "FREQ", "256"}, is_error("ERR", "FREQ")},
      {{"RESTORE", "k", "0", good, "FREQ", "x"}, error(kNotAnInteger)},
      {{"RESTORE", "taken", "x", "y"}, busy},
      {{"RESTORE", "k", "x", "y"}, error(kNotAnInteger)},
      {{"RESTORE", "k", "-1", "y"}, is_error("ERR", "TTL")},
      {{"RESTORE", "k", "0", "y"}, wrong},
      {{"RESTORE", "k", "0", flipped}, wrong},
      {{"RESTORE", "k", "0", sealed("")}, bad},
      {{"RESTORE", "k", "0", sealed(std::string("\0", 1))}, bad},
      {{"RESTORE", "k", "0", sealed(std::string("\1\1\1x", 4))}, is_error("ERR", "list")},
      {{"RESTORE", "k", "0",
        sealed("\x07\x81"
               "12345678")},
       is_error("ERR", "module")},
      {{"RESTORE", "k", "0", sealed(std::string("\0\xC3\x04\x08\xE0\x00\x20\x00", 8))}, bad},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(run(c.command), c.reply) << testing::PrintToString(c.command);
  }
  EXPECT_EQ(run({"DBSIZE"}), integer(1));
}

TEST_F(DumpCommands, ScanDumpGivesWhatRedisBloomGave) {
  for (const char* name : {"empty", "nonscaling", "scaled", "tight", "tiny"}) {
    SCOPED_TRACE(name);
    const std::string folder = fmt::format("redisbloom/scandump/{}/", name);
    const std::string payload = vectors::read(fmt::format("redisbloom/dump/{}.bin", name));
    ASSERT_EQ(run({"RESTORE", "f", "0", payload, "REPLACE"}), kOk);
    run({"DEL", "g"});
    int64_t iterator = 0;
    for (int n = 0;; ++n) {
      const std::string reply = run({"BF.SCANDUMP", "f", std::to_string(iterator)});
      if (!std::filesystem::exists(vectors::path(fmt::format("{}{:02}.bin", folder, n)))) {
        EXPECT_EQ(reply, array({integer(0), bulk("")}));
        break;
      }
      const std::string chunk = vectors::read(fmt::format("{}{:02}.bin", folder, n));
      iterator = n == 0 ? 1 : iterator + static_cast<int64_t>(chunk.size());
      EXPECT_EQ(reply, array({integer(iterator), bulk(chunk)}));
      EXPECT_EQ(run({"BF.LOADCHUNK", "g", std::to_string(iterator), chunk}), kOk);
    }
    EXPECT_EQ(dump("g"), dump("f"));
  }
  EXPECT_EQ(run({"BF.SCANDUMP", "f", "-1"}), array({integer(0), bulk("")}));
}

TEST_F(DumpCommands, ChunkErrorsAreThoseOfRedisBloom) {
  const std::string header = vectors::read("redisbloom/scandump/tiny/00.bin");
  run({"SET", "s", "1"});
  EXPECT_EQ(run({"BF.LOADCHUNK", "f", "x", ""}), error(kIteratorToWrite));
  EXPECT_EQ(run({"BF.LOADCHUNK", "f", "2", header}), error(kFilterNotFound));
  EXPECT_EQ(run({"BF.LOADCHUNK", "f", "1", header + "x"}), error(kBadData));
  EXPECT_EQ(run({"BF.SCANDUMP", "f", "0"}), error(kFilterNotFound));
  EXPECT_EQ(run({"BF.LOADCHUNK", "f", "1", header}), kOk);
  EXPECT_EQ(run({"BF.SCANDUMP", "f", "x"}), error(kIteratorToRead));
  EXPECT_EQ(run({"BF.LOADCHUNK", "f", "1", header}), error(kBadData));
  EXPECT_EQ(run({"BF.LOADCHUNK", "f", "0", ""}), error(kBadData));
  EXPECT_EQ(run({"BF.LOADCHUNK", "f", "1", ""}), kOk);
  EXPECT_EQ(run({"BF.LOADCHUNK", "f", "146", "a"}), error(kNoLayer));
  EXPECT_EQ(run({"BF.LOADCHUNK", "f", "1", "a"}), error(kNoLayer));
  EXPECT_EQ(run({"BF.LOADCHUNK", "f", "146", "ab"}), error(kChunkTooLong));
  const std::string wrong_type = error(kWrongType);
  EXPECT_EQ(run({"BF.LOADCHUNK", "s", "1", header}), wrong_type);
  EXPECT_EQ(run({"BF.SCANDUMP", "s", "0"}), wrong_type);
  EXPECT_EQ(run({"BF.LOAD", "s", ""}), wrong_type);
}

TEST_F(DumpCommands, NativeFiltersTravelInChunks) {
  run({"BF.RESERVE", "f", "0.01", "10"});
  for (int i = 0; i < 100; ++i) run({"BF.ADD", "f", std::to_string(i)});
  std::string iterator = "0";
  for (;;) {
    const std::string reply = run({"BF.SCANDUMP", "f", iterator});
    const size_t line_end = reply.find("\r\n", 4);
    iterator = reply.substr(5, line_end - 5);
    if (iterator == "0") break;
    ASSERT_EQ(run({"BF.LOADCHUNK", "g", iterator, content(reply.substr(line_end + 2))}), kOk);
  }
  EXPECT_EQ(dump("g"), dump("f"));
}

TEST_F(DumpCommands, LoadTakesWhatValkeyBloomJournals) {
  const std::string payload = vectors::read("valkey-bloom/load/scaled.bin");
  EXPECT_EQ(run({"BF.LOAD", "f", payload}), kOk);
  const std::string dumped = vectors::read("valkey-bloom/dump/scaled.bin");
  EXPECT_EQ(run({"RESTORE", "g", "0", dumped}), kOk);
  EXPECT_EQ(dump("f"), dump("g"));
  EXPECT_EQ(run({"BF.LOAD", "f", payload}), error(kBusyKey));
  EXPECT_EQ(run({"BF.LOAD", "h", ""}), error(persistence::kLoadFailed));
  EXPECT_EQ(run({"BF.LOAD", "h", "\x02" + payload.substr(1)}), error(persistence::kLoadVersion));
}

}  // namespace
}  // namespace server
