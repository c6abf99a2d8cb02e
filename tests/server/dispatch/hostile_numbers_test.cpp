// SPDX-License-Identifier: MIT
//
// Tests sizes, offsets and counts beyond the range of the arithmetic. docs/security.md lists the
// faults of other servers that each test covers.
#include <gmock/gmock.h>

#include <algorithm>
#include <cctype>
#include <string>
#include <vector>

#include "server/base/process/memory_monitor.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

using WordList = std::vector<std::string>;

const std::string kMinI64 = "-9223372036854775808";
const std::string kMaxI64 = "9223372036854775807";
struct Extreme {
  std::string text;
  // True if the number is legal but needs gigabytes. Commands that would accept such a number are
  // skipped.
  bool is_huge = false;
};
const std::vector<Extreme> kExtremes = {
    {"0"},
    {"1"},
    {"-1"},
    {"2147483647", true},
    {"2147483648", true},
    {"4294967295", true},
    {"4294967296", true},
    {"288230376151711744"},
    {"2305843009213693952"},
    {"4611686018427387904"},
    {kMaxI64},
    {kMinI64},
    {"9223372036854775808"},
    {"18446744073709551615"},
    {"18446744073709551616"},
    {"2305843009213693951"},
};

class HostileNumbersTest : public CommandTest {
 protected:
  void expect_refused(const WordList& words) {
    EXPECT_THAT(run(words), testing::StartsWith("-")) << testing::PrintToString(words);
  }
};

// Tests SETBIT, GETBIT, BITFIELD and SETRANGE with offsets around every relevant power of two.
TEST_F(HostileNumbersTest, SizesThatOverflow) {
  for (const std::string limit : {"512mb", "9223372036854775807"}) {
    run({"CONFIG", "SET", "proto-max-bulk-len", limit});
    run({"SET", "k", "x"});
    for (const auto& [number, is_huge] : kExtremes) {
      for (const WordList& words : {WordList{"GETBIT", "k", number},
                                    {"GETRANGE", "k", number, number},
                                    {"BITFIELD", "k", "GET", "u8", number},
                                    {"BITCOUNT", "k", number, number},
                                    {"BITFIELD_RO", "k", "GET", "i64", "#" + number},
                                    {"BITPOS", "k", "1", number}}) {
        EXPECT_NE(run(words), "");
      }
      if (is_huge || number == "0" || number == "1") continue;
      for (const WordList& words : {WordList{"SETBIT", "k", number, "1"},
                                    {"SETRANGE", "k", number, "y"},
                                    {"BITFIELD", "k", "SET", "u8", number, "1"},
                                    {"BITFIELD", "k", "INCRBY", "i64", "#" + number, "1"}}) {
        expect_refused(words);
      }
    }
    EXPECT_EQ(run({"GET", "k"}), bulk("x"));
  }
}

// Redis 7.0 multiplies the offset 2^58 by 64 bits. The product 2^64 wraps around, so Redis writes
// at offset 0.
TEST_F(HostileNumbersTest, BitfieldOffsetsThatWrap) {
  run({"SET", "k", "abcdefgh"});
  expect_refused({"BITFIELD", "k", "SET", "i64", "#288230376151711744", "1"});
  EXPECT_EQ(run({"GET", "k"}), bulk("abcdefgh"));
}

TEST_F(HostileNumbersTest, SetRangeBeyondEveryString) {
  for (const std::string& offset : {kMaxI64, std::string("9223372036854775806"),
                                    std::string("536870912"), kMinI64, std::string("-1")}) {
    expect_refused({"SETRANGE", "k", offset, "abc"});
  }
  EXPECT_EQ(run({"EXISTS", "k"}), integer(0));
}

TEST_F(HostileNumbersTest, CountsThatCannotBeNegated) {
  run({"SET", "k", "v"});
  for (const std::string line : {
           "SCAN 0 COUNT M",
           "BITCOUNT k M M",
           "BITPOS k 1 M M",
           "GETRANGE k M M",
           "DECRBY n M",
           "INCRBY n M",
           "DECRBY n M",
           "LCS k k IDX MINMATCHLEN M",
           "EXPIRE nokey M",
           "PEXPIREAT nokey M",
           "SET k v PX M",
           "GETEX k EX M",
           "SETEX k M v",
           "RESTORE r M x",
           "CLIENT PAUSE M",
           "CLIENT KILL ID M",
           "CLIENT LIST ID M",
           "CLIENT UNBLOCK M",
           "SLOWLOG GET M",
           "MEMORY USAGE k SAMPLES M",
           "BF.KEXISTS M k i",
           "BF.RESERVE f 0.01 M",
           "BF.SCANDUMP k M",
           "BF.RESERVE f 0.01 10 EXPANSION M",
           "BF.INSERT f CAPACITY M ITEMS a",
           "BF.LOADCHUNK f M x",
           "SELECT M",
           "SWAPDB M 0",
           "MOVE k M",
           "CONFIG SET maxmemory M",
           "CONFIG SET hz M",
       }) {
    WordList words;
    for (size_t start = 0; start < line.size();) {
      const size_t end = std::min(line.find(' ', start), line.size());
      words.push_back(line.substr(start, end - start));
      if (words.back() == "M") words.back() = kMinI64;
      start = end + 1;
    }
    EXPECT_NE(run(words), "") << line;
  }
  EXPECT_EQ(run({"PING"}), "+PONG\r\n");
}

// Tests that the server still works after extreme numbers in WAIT, REPLCONF and PSYNC. The replies
// to these commands are not checked.
TEST_F(HostileNumbersTest, CountsOfReplicasThatCannotBeNegated) {
  run_as_other({"WAIT", kMinI64, "1"});
  TestClient third(*this);
  third.run({"REPLCONF", "ack", kMinI64});
  TestClient fourth(*this);
  fourth.run({"PSYNC", "?", kMinI64});
  EXPECT_EQ(run({"PING"}), "+PONG\r\n");
}

TEST_F(HostileNumbersTest, TheSameKeyInAllPlaces) {
  for (const WordList& setup :
       {WordList{"SET", "k", "\x01\x02"}, {"BF.RESERVE", "k", "0.01", "100"}}) {
    for (const WordList& words : {WordList{"BITOP", "AND", "k", "k", "k"},
                                  {"BITOP", "NOT", "k", "k"},
                                  {"MSET", "k", "1", "k", "2"},
                                  {"MSETNX", "k", "1", "k", "2"},
                                  {"MGET", "k", "k"},
                                  {"LCS", "k", "k"},
                                  {"LCS", "k", "k", "IDX"},
                                  {"RENAME", "k", "k"},
                                  {"RENAMENX", "k", "k"},
                                  {"COPY", "k", "k"},
                                  {"COPY", "k", "k", "REPLACE"},
                                  {"DEL", "k", "k"},
                                  {"UNLINK", "k", "k"},
                                  {"EXISTS", "k", "k"},
                                  {"TOUCH", "k", "k"},
                                  {"WATCH", "k", "k"},
                                  {"BF.MERGE", "k", "k"},
                                  {"BF.MERGE", "k", "k", "k"},
                                  {"BF.KEXISTS", "2", "k", "k", "i"},
                                  {"BF.KADD", "2", "k", "k", "i"},
                                  {"MOVE", "k", "0"},
                                  {"BF.CLEAR", "k"}}) {
      run({"DEL", "k"});
      EXPECT_EQ(run(setup), kOk);
      EXPECT_NE(run(words), "");
      EXPECT_EQ(run({"UNWATCH"}), kOk);
    }
  }
}

TEST_F(HostileNumbersTest, NumbersThatAreNone) {
  for (const std::string number : {"nan", "NaN", "-nan", "inf", "-inf", "1e400", "0x1p3", ""}) {
    expect_refused({"BF.RESERVE", "f", number, "100"});
    expect_refused({"BF.INSERT", "f", "ERROR", number, "ITEMS", "a"});
    expect_refused({"CONFIG", "SET", "bf-error-rate", number});
    run({"INCRBYFLOAT", "n", number});
    std::string value = run({"GET", "n"});
    for (char& letter : value) letter = static_cast<char>(std::tolower(letter));
    EXPECT_EQ(value.find("nan"), std::string::npos) << number;
    EXPECT_EQ(value.find("inf"), std::string::npos) << number;
  }
}

// BF.RESERVE with an extreme capacity or error rate must return an error or allocate little memory.
TEST_F(HostileNumbersTest, ReservationsBeyondReason) {
  const uint64_t before = resident_memory().total_bytes;
  for (const std::string rate : {"0", "1", "0.999999", "1e-300", "-0.5", "1.5", "0.01", "5e-324"}) {
    for (const auto& [capacity, is_huge] : kExtremes) {
      for (const WordList& options : {WordList{},
                                      {"EXPANSION", "0"},
                                      {"EXPANSION", "4294967296"},
                                      {"NONSCALING"},
                                      {"DELETABLE"},
                                      {"WINDOW", kMaxI64}}) {
        WordList words{"BF.RESERVE", "f", rate, capacity};
        words.insert(words.end(), options.begin(), options.end());
        run(words);
        run({"BF.INFO", "f"});
        run({"DEL", "f"});
      }
    }
  }
  EXPECT_LT(resident_memory().total_bytes, before + (uint64_t{200} << 20));
}

// The bit counts for these capacities are around 2^64 and must not wrap around: BF.RESERVE fails,
// or the filter works.
TEST_F(HostileNumbersTest, ProductsThatWrap) {
  for (const std::string capacity :
       {"2305843009213693952", "2305843009213693951", "2305843009213693953", "1152921504606846976",
        "281474976710657"}) {
    for (const std::string rate : {"0.0000000001", "0.01", "0.9"}) {
      run({"BF.RESERVE", "f", rate, capacity});
      const std::string added = run({"BF.ADD", "f", "item"});
      if (!added.starts_with("-")) {
        EXPECT_EQ(run({"BF.EXISTS", "f", "item"}), integer(1)) << capacity << " " << rate;
      }
      run({"DEL", "f"});
      EXPECT_NE(run({"BF.PLAN", rate, capacity}), "");
    }
  }
}

}  // namespace
}  // namespace server
