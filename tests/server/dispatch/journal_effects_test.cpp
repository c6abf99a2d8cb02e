// SPDX-License-Identifier: MIT
//
// Tests the commands that the journal contains instead of a client's command. A command without an
// effect is not journalled.
#include "core/bloom/parameters.h"
#include "core/keyspace/keyspace.h"
#include "persistence/bytes/byte_codec.h"
#include "persistence/bytes/crc64.h"
#include "persistence/journal.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/vectors.h"

namespace server {
namespace {

class JournalEffects : public CommandTest {
 protected:
  JournalEffects() {
    keyspace_.set_hooks([this](unsigned database, std::string_view key) {
      journal_.append(database, std::array<std::string_view, 2>{"DEL", key});
    });
    journal_.set_active(true);
    run({"SET", "first", "1"});  // the first write also journals SELECT 0
    journalled();
  }

  // Returns the commands that were journalled since the last call, with spaces between arguments
  // and `;` after each command.
  std::string journalled() {
    std::string bytes;
    journal_.take(bytes);
    std::string text;
    size_t at = 0;
    const auto number = [&] {
      const size_t end = bytes.find("\r\n", at);
      const int value = std::stoi(bytes.substr(at + 1, end - at - 1));
      at = end + 2;
      return value;
    };
    while (at < bytes.size()) {
      const int words = number();
      for (int i = 0; i < words; ++i) {
        const auto size = static_cast<size_t>(number());
        text += (i > 0 ? " " : "") + bytes.substr(at, size);
        at += size + 2;
      }
      text += ';';
    }
    return text;
  }

  // Runs the command. Returns the commands that it added to the journal.
  std::string effect(const std::vector<std::string>& command) {
    run(command);
    return journalled();
  }

  std::string at(int64_t ms_from_now) const { return std::to_string(clock_.now_ms + ms_from_now); }
};

TEST_F(JournalEffects, SetStatesItsExpiryAbsolutely) {
  EXPECT_EQ(effect({"SET", "a", "1"}), "SET a 1;");
  EXPECT_EQ(effect({"SET", "a", "1", "EX", "10"}), "SET a 1 PXAT " + at(10'000) + ";");
  EXPECT_EQ(effect({"SET", "a", "2", "KEEPTTL"}), "SET a 2 KEEPTTL;");
  EXPECT_EQ(effect({"SETEX", "a", "5", "x"}), "SET a x PXAT " + at(5'000) + ";");
  EXPECT_EQ(effect({"PSETEX", "a", "5", "x"}), "SET a x PXAT " + at(5) + ";");
  EXPECT_EQ(effect({"GETSET", "a", "y"}), "SET a y;");
  EXPECT_EQ(effect({"SETNX", "a", "z"}), "");
  EXPECT_EQ(effect({"SET", "a", "z", "NX"}), "");
  EXPECT_EQ(effect({"SET", "new", "z", "XX"}), "");
  EXPECT_EQ(effect({"SET", "a", "z", "XX", "GET"}), "SET a z;");
}

TEST_F(JournalEffects, AFilterIsMadeTogetherWithItsExpiry) {
  const std::string settings = " EXPANSION 2 LAYOUT native-2 PXAT " + at(10'000);
  EXPECT_EQ(effect({"BF.RESERVE", "a", "0.01", "100", "EX", "10"}),
            "BF.RESERVE a 0.01 100" + settings + ";");
  EXPECT_EQ(effect({"BF.INSERT", "b", "PX", "10000", "ITEMS", "x", "y", "x"}),
            "BF.INSERT b ERROR 0.01 CAPACITY 100" + settings + " ITEMS x y;");
  EXPECT_EQ(effect({"BF.INSERT", "b", "PX", "77", "ITEMS", "z"}), "BF.ADD b z;");
  // BF.INSERT of valkey-bloom has no option for an expiry, so the expiry is a second command.
  const std::string text =
      effect({"BF.RESERVE", "v", "0.01", "100", "LAYOUT", "valkey-bloom", "EX", "10"});
  EXPECT_TRUE(text.starts_with("MULTI;BF.INSERT v ERROR 0.01 CAPACITY 100 ")) << text;
  EXPECT_TRUE(text.ends_with(";PEXPIREAT v " + at(10'000) + ";EXEC;")) << text;
}

TEST_F(JournalEffects, AddsToManyFiltersAreOneGroupOfEffects) {
  run({"BF.MADD", "a", "x", "y"});
  run({"BF.ADD", "b", "x"});
  journalled();
  EXPECT_EQ(effect({"BF.KADD", "2", "a", "b", "x", "y"}), "BF.ADD b y;");
  EXPECT_EQ(effect({"BF.KADD", "2", "a", "b", "x", "y"}), "");
  EXPECT_EQ(effect({"BF.KADD", "2", "a", "b", "z", "w"}),
            "MULTI;BF.MADD a z w;BF.MADD b z w;EXEC;");
  EXPECT_EQ(effect({"BF.KADD", "2", "a", "new", "z"}),
            "BF.INSERT new ERROR 0.01 CAPACITY 100 EXPANSION 2 LAYOUT native-2 ITEMS z;");
  EXPECT_EQ(effect({"BF.KEXISTS", "1", "a", "z"}), "");
  run({"MULTI"});
  run({"BF.KADD", "2", "a", "b", "1"});
  run({"BF.KADD", "2", "a", "b", "2"});
  run({"EXEC"});
  EXPECT_EQ(journalled(), "MULTI;BF.ADD a 1;BF.ADD b 1;BF.ADD a 2;BF.ADD b 2;EXEC;");
}

TEST_F(JournalEffects, UnionsAndEmptiedFiltersAreRepeatedAsTheyCame) {
  run({"BF.ADD", "a", "x"});
  run({"BF.ADD", "b", "y"});
  journalled();
  EXPECT_EQ(effect({"BF.MERGE", "a", "b", "FORCE"}), "BF.MERGE a b FORCE;");
  EXPECT_EQ(effect({"BF.MERGE", "a", "none"}), "");
  EXPECT_EQ(effect({"BF.CLEAR", "a"}), "BF.CLEAR a;");
  EXPECT_EQ(effect({"BF.CLEAR", "none"}), "");
  run({"PEXPIRE", "b", "1"});
  advance_ms(2);
  journalled();
  EXPECT_EQ(effect({"BF.MERGE", "new", "a", "b"}), "DEL b;") << "a source is missing";
  EXPECT_EQ(effect({"BF.MERGE", "new", "a"}), "BF.MERGE new a;");
}

TEST_F(JournalEffects, ExpiriesAreAbsoluteAndPastOnesDelete) {
  run({"SET", "a", "1"});
  journalled();
  EXPECT_EQ(effect({"EXPIRE", "a", "10"}), "PEXPIREAT a " + at(10'000) + ";");
  EXPECT_EQ(effect({"EXPIRE", "a", "10", "NX"}), "");
  EXPECT_EQ(effect({"GETEX", "a", "PX", "7"}), "PEXPIREAT a " + at(7) + ";");
  EXPECT_EQ(effect({"GETEX", "a"}), "");
  EXPECT_EQ(effect({"GETEX", "a", "PERSIST"}), "PERSIST a;");
  EXPECT_EQ(effect({"PERSIST", "a"}), "");
  EXPECT_EQ(effect({"PEXPIRE", "a", "-1"}), "DEL a;");
  EXPECT_EQ(effect({"EXPIRE", "a", "10"}), "");
}

TEST_F(JournalEffects, AnExpiredKeyIsDeletedBeforeWhatFollows) {
  run({"SET", "a", "5", "PX", "10"});
  journalled();
  advance_ms(20);
  EXPECT_EQ(effect({"GET", "a"}), "") << "a read deletes nothing";
  EXPECT_EQ(effect({"INCR", "a"}), "DEL a;INCR a;");
}

TEST_F(JournalEffects, AnExpiryInsideATransactionStaysInItsPlace) {
  run({"MULTI"});
  run({"SET", "a", "5", "PXAT", at(-10)});
  run({"INCR", "a"});
  EXPECT_EQ(effect({"EXEC"}), "MULTI;SET a 5 PXAT " + at(-10) + ";DEL a;INCR a;EXEC;");
}

// Replicas that run Redis 7 do not support the newer operations of BITOP. So the journal contains
// the resulting value instead of BITOP.
TEST_F(JournalEffects, BitOperationsNewerThanRedis7AreTheirResult) {
  run({"SET", "a", "0"});
  run({"SET", "b", "p"});
  journalled();
  EXPECT_EQ(effect({"BITOP", "DIFF", "to", "b", "a"}), "SET to @;");
  EXPECT_EQ(effect({"BITOP", "DIFF1", "to", "a", "b"}), "SET to @;");
  EXPECT_EQ(effect({"BITOP", "ANDOR", "to", "b", "a"}), "SET to 0;");
  EXPECT_EQ(effect({"bitop", "one", "to", "a", "b"}), "SET to @;");
  EXPECT_EQ(effect({"BITOP", "ONE", "to", "none"}), "DEL to;");
  EXPECT_EQ(effect({"BITOP", "ONE", "to", "none"}), "");
  for (const std::string operation : {"AND", "OR", "XOR"}) {
    EXPECT_EQ(effect({"BITOP", operation, "to", "a", "b"}), "BITOP " + operation + " to a b;");
  }
  EXPECT_EQ(effect({"BITOP", "NOT", "to", "a"}), "BITOP NOT to a;");
}

TEST_F(JournalEffects, ManyKeysMakeOneCommand) {
  EXPECT_EQ(effect({"MSET", "a", "1", "b", "2"}), "MSET a 1 b 2;");
  EXPECT_EQ(effect({"MSETNX", "a", "1", "c", "2"}), "");
  EXPECT_EQ(effect({"RENAME", "a", "c"}), "RENAME a c;");
  EXPECT_EQ(effect({"COPY", "c", "d", "DB", "2"}), "COPY c d DB 2;");
  EXPECT_EQ(effect({"MOVE", "b", "3"}), "MOVE b 3;");
  EXPECT_EQ(effect({"DEL", "c", "none"}), "DEL c none;");
  EXPECT_EQ(effect({"DEL", "none"}), "");
  EXPECT_EQ(effect({"FLUSHALL"}), "FLUSHALL;");
  EXPECT_EQ(effect({"SWAPDB", "0", "1"}), "SWAPDB 0 1;");
}

TEST_F(JournalEffects, BitsAreWrittenOnlyWhenTheyChange) {
  EXPECT_EQ(effect({"SETBIT", "b", "7", "1"}), "SETBIT b 7 1;");
  EXPECT_EQ(effect({"SETBIT", "b", "7", "1"}), "");
  EXPECT_EQ(effect({"BITFIELD", "b", "SET", "u8", "0", "1"}), "");
  EXPECT_EQ(effect({"BITFIELD", "b", "INCRBY", "u8", "0", "1"}), "BITFIELD b INCRBY u8 0 1;");
  EXPECT_EQ(effect({"BITFIELD", "b", "OVERFLOW", "FAIL", "SET", "u8", "80", "300"}),
            "BITFIELD b OVERFLOW FAIL SET u8 80 300;")
      << "it grew";
}

TEST_F(JournalEffects, FloatsAreJournalledAsTheirSum) {
  EXPECT_EQ(effect({"INCRBYFLOAT", "f", "1.5"}), "SET f 1.5 KEEPTTL;");
}

TEST_F(JournalEffects, FiltersAreSpelledOutWhenMade) {
  EXPECT_EQ(effect({"BF.RESERVE", "f", "0.01", "100"}),
            "BF.RESERVE f 0.01 100 EXPANSION 2 LAYOUT native-2;");
  EXPECT_EQ(effect({"BF.RESERVE", "g", "0.001", "50", "NONSCALING"}),
            "BF.RESERVE g 0.001 50 NONSCALING LAYOUT native-2;");
  EXPECT_EQ(effect({"BF.ADD", "f", "x"}), "BF.ADD f x;");
  EXPECT_EQ(effect({"BF.ADD", "f", "x"}), "");
  EXPECT_EQ(effect({"BF.MADD", "f", "x", "y", "x", "z"}), "BF.MADD f y z;");
  EXPECT_EQ(effect({"BF.MADD", "h", "x", "x"}),
            "BF.INSERT h ERROR 0.01 CAPACITY 100 EXPANSION 2 LAYOUT native-2 ITEMS x;");
  EXPECT_EQ(effect({"BF.EXISTS", "f", "x"}), "");
}

TEST_F(JournalEffects, NativeNamesAVersionForClientsAlone) {
  EXPECT_EQ(effect({"BF.RESERVE", "a", "0.01", "100", "LAYOUT", "native"}),
            "BF.RESERVE a 0.01 100 EXPANSION 2 LAYOUT native-2;");
  EXPECT_TRUE(effect({"BF.RESERVE", "b", "1e-9", "100"}).ends_with(" LAYOUT native;"))
      << "too strict for 64 bits of hash";
  run({"CONFIG", "SET", "bf-native-version", "1"});
  EXPECT_EQ(effect({"BF.RESERVE", "c", "0.01", "100"}),
            "BF.RESERVE c 0.01 100 EXPANSION 2 LAYOUT native;");
  EXPECT_EQ(effect({"BF.RESERVE", "d", "0.01", "100", "LAYOUT", "native-2"}),
            "BF.RESERVE d 0.01 100 EXPANSION 2 LAYOUT native-2;");
  const std::string dump = run({"DUMP", "c"});
  run({"CONFIG", "SET", "bf-native-version", "2"});
  run({"DEL", "c"});
  TestClient replayed(*this);
  replayed.session->origin = CommandOrigin::kOwnJournal;
  EXPECT_EQ(replayed.run({"BF.RESERVE", "c", "0.01", "100", "EXPANSION", "2", "LAYOUT", "native"}),
            kOk);
  EXPECT_EQ(run({"DUMP", "c"}), dump);
}

// The journal creates a RedisBloom filter by BF.LOADCHUNK, with the chunk header that RedisBloom
// dumps after the same BF.RESERVE. The effect of other commands, such as BF.RESERVE, would depend
// on the configuration of the replica.
TEST_F(JournalEffects, FiltersOfRedisBloomAreMadeByTheirHeader) {
  run({"CONFIG", "SET", "bf-layout", "redisbloom"});
  const std::string header = " 1 " + vectors::read("redisbloom/scandump/empty/00.bin") + ";";
  EXPECT_EQ(effect({"BF.RESERVE", "a", "0.01", "100"}), "BF.LOADCHUNK a" + header);
  EXPECT_EQ(effect({"BF.RESERVE", "b", "0.01", "100", "EX", "10"}),
            "MULTI;BF.LOADCHUNK b" + header + "PEXPIREAT b " + at(10'000) + ";EXEC;");
  EXPECT_EQ(effect({"BF.ADD", "c", "x"}), "MULTI;BF.LOADCHUNK c" + header + "BF.ADD c x;EXEC;");
  EXPECT_EQ(effect({"BF.INSERT", "d", "PX", "7", "ITEMS", "x", "y", "x"}),
            "MULTI;BF.LOADCHUNK d" + header + "BF.MADD d x y;PEXPIREAT d " + at(7) + ";EXEC;");
  EXPECT_EQ(effect({"BF.KADD", "2", "c", "e", "z"}),
            "MULTI;BF.ADD c z;BF.LOADCHUNK e" + header + "BF.ADD e z;EXEC;");
  EXPECT_EQ(effect({"BF.MADD", "e", "z", "w"}), "BF.ADD e w;");
  EXPECT_EQ(effect({"BF.CLEAR", "e"}), "MULTI;DEL e;BF.LOADCHUNK e" + header + "EXEC;");
  EXPECT_EQ(effect({"BF.CLEAR", "b"}),
            "MULTI;DEL b;BF.LOADCHUNK b" + header + "PEXPIREAT b " + at(10'000) + ";EXEC;");
}

TEST_F(JournalEffects, HeadersMakeTheSameFilterInAnyReplica) {
  run({"BF.INSERT", "f", "CAPACITY", "3", "LAYOUT", "redisbloom", "ITEMS", "a", "b"});
  const std::string items_begin = "BF.MADD f a b;EXEC;";
  const std::string made = journalled();
  ASSERT_TRUE(made.ends_with(items_begin)) << made;
  const std::string dump = run({"DUMP", "f"});
  run({"BF.CLEAR", "f"});
  const std::string begin = "MULTI;DEL f;BF.LOADCHUNK f 1 ";
  const std::string cleared = journalled();
  ASSERT_TRUE(cleared.starts_with(begin)) << cleared;
  constexpr size_t kHeaderBytes = 73;
  run({"DEL", "f"});
  TestClient replayed(*this);
  replayed.session->origin = CommandOrigin::kOwnJournal;
  EXPECT_EQ(replayed.run({"BF.LOADCHUNK", "f", "1", cleared.substr(begin.size(), kHeaderBytes)}),
            kOk);
  replayed.run({"BF.MADD", "f", "a", "b"});
  EXPECT_EQ(run({"DUMP", "f"}), dump);
}

// Current releases of RedisBloom reject the older header formats.
TEST_F(JournalEffects, LoadedHeadersAreJournalledInTheNewestForm) {
  const std::string header = vectors::read("redisbloom/scandump/empty/00.bin");
  const std::string old = header.substr(0, 68) + header.substr(72);
  EXPECT_EQ(effect({"BF.LOADCHUNK", "f", "1", old}), "BF.LOADCHUNK f 1 " + header + ";");
}

// valkey-bloom journals a client's BF.LOAD as a BF.INSERT whose only item is the payload.
TEST_F(JournalEffects, AnInsertionThatIsALoadIsJournalledAsOne) {
  const std::string payload = vectors::read("valkey-bloom/load/empty.bin");
  const auto seed_bytes = core::bloom::kFixedSeed;
  const std::string seed(seed_bytes.begin(), seed_bytes.end());
  TestClient link(*this);
  link.session->origin = CommandOrigin::kForeignJournal;
  link.run({"BF.INSERT", "f", "CAPACITY", "100", "ERROR", "0.01", "TIGHTENING", "0.5", "SEED", seed,
            "EXPANSION", "2", "ITEMS", payload});
  EXPECT_EQ(journalled(), "BF.LOAD f " + payload + ";");
}

// The journal creates a valkey-bloom filter by BF.INSERT, because the BF.RESERVE of valkey-bloom
// accepts no seed. The journalled command omits LAYOUT, which valkey-bloom does not know.
TEST_F(JournalEffects, FiltersOfValkeyBloomAreMadeInItsWords) {
  run({"CONFIG", "SET", "bf-layout", "valkey-bloom"});
  const std::string seed(32, 's');
  const std::string reserved =
      "BF.INSERT v ERROR 0.01 CAPACITY 50 EXPANSION 3 TIGHTENING 0.5 SEED " + seed + ";";
  EXPECT_EQ(effect({"BF.RESERVE", "v", "0.01", "50", "EXPANSION", "3", "SEED", seed}), reserved);
  EXPECT_EQ(
      effect({"BF.INSERT", "w", "NONSCALING", "SEED", seed, "ITEMS", "x"}),
      "BF.INSERT w ERROR 0.01 CAPACITY 100 NONSCALING TIGHTENING 0.5 SEED " + seed + " ITEMS x;");
  const std::string dump = run({"DUMP", "v"});
  run({"CONFIG", "SET", "bf-layout", "native"});
  TestClient replayed(*this);
  replayed.session->origin = CommandOrigin::kOwnJournal;
  run({"DEL", "v"});
  EXPECT_EQ(replayed.run({"BF.INSERT", "v", "ERROR", "0.01", "CAPACITY", "50", "EXPANSION", "3",
                          "TIGHTENING", "0.5", "SEED", seed}),
            "*0\r\n");
  EXPECT_EQ(run({"DUMP", "v"}), dump);
  journalled();
  EXPECT_EQ(effect({"BF.CLEAR", "v"}), "MULTI;DEL v;" + reserved + "EXEC;");
}

TEST_F(JournalEffects, RestoreStatesItsExpiryAbsolutely) {
  run({"SET", "a", "1"});
  const std::string reply = run({"DUMP", "a"});
  const size_t begin = reply.find("\r\n") + 2;
  const std::string payload = reply.substr(begin, reply.size() - begin - 2);
  journalled();
  EXPECT_EQ(effect({"RESTORE", "r", "50", payload}),
            "RESTORE r " + at(50) + " " + payload + " ABSTTL;");
  EXPECT_EQ(effect({"RESTORE", "r", "50", payload, "REPLACE"}),
            "RESTORE r " + at(50) + " " + payload + " REPLACE ABSTTL;");
  EXPECT_EQ(effect({"RESTORE", "s", at(50), payload, "absttl", "FREQ", "7"}),
            "RESTORE s " + at(50) + " " + payload + " absttl FREQ 7;");
}

// Redis 7.0 rejects payloads with a version above 10.
TEST_F(JournalEffects, NewerPayloadsAreJournalledWithVersion10) {
  const auto payload_of = [](uint16_t version) {
    std::string payload("\0\1v", 3);
    persistence::ByteWriter writer(payload);
    writer.u16(version);
    writer.u64(persistence::crc64(0, payload));
    return payload;
  };
  for (const uint16_t version : {5, 10, 11, 81}) {
    const std::string expected = payload_of(version > 10 ? 10 : version);
    EXPECT_EQ(effect({"RESTORE", "r", "0", payload_of(version), "REPLACE"}),
              "RESTORE r 0 " + expected + " REPLACE ABSTTL;");
  }
}

}  // namespace
}  // namespace server
