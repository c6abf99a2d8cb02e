// SPDX-License-Identifier: MIT
//
// Tests the expiry that a command gives to a filter that it creates. bloom_commands_test.cpp tests
// the other options.
#include "server/commands/bloom/bloom_options.h"

#include <string>
#include <string_view>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "protocol/error_texts.h"
#include "server/commands/bloom/bloom_access.h"
#include "tests/support/command_test.h"

namespace server {
namespace {

class BloomExpiryTest : public CommandTest {
 protected:
  std::string now_s(int64_t more) const { return std::to_string(clock_.now_ms / 1000 + more); }
  std::string now_ms(int64_t more) const { return std::to_string(clock_.now_ms + more); }
};

TEST_F(BloomExpiryTest, ReserveSetsItAtOnce) {
  struct Case {
    std::string word;
    std::string amount;
    int64_t ttl_ms;
  };
  const Case cases[] = {{"EX", "10", 10'000},
                        {"px", "1500", 1500},
                        {"EXAT", now_s(20), 20'000},
                        {"PXAT", now_ms(7), 7}};
  for (const Case& one : cases) {
    EXPECT_EQ(run({"BF.RESERVE", one.word, "0.01", "100", one.word, one.amount, "EXPANSION", "4"}),
              kOk);
    EXPECT_EQ(run({"PTTL", one.word}), integer(one.ttl_ms));
    EXPECT_EQ(run({"BF.INFO", one.word, "EXPANSION"}), array({integer(4)}));
  }
  EXPECT_EQ(keyspace_.expires_count(0), 4U);
  advance_ms(8);
  EXPECT_EQ(run({"BF.ADD", "PXAT", "x"}), integer(1));
  EXPECT_EQ(run({"PTTL", "PXAT"}), integer(-1));
  EXPECT_EQ(keyspace_.expires_count(0), 3U);
}

TEST_F(BloomExpiryTest, InsertSetsItOnlyWhereItCreates) {
  EXPECT_EQ(run({"BF.INSERT", "k", "EX", "10", "ITEMS", "a", "b"}),
            array({integer(1), integer(1)}));
  EXPECT_EQ(run({"PTTL", "k"}), integer(10'000));
  EXPECT_EQ(run({"BF.INSERT", "k", "EX", "99", "ITEMS", "c"}), array({integer(1)}));
  EXPECT_EQ(run({"PTTL", "k"}), integer(10'000));
  run({"BF.ADD", "plain", "x"});
  EXPECT_EQ(run({"BF.INSERT", "plain", "PX", "5", "ITEMS", "c"}), array({integer(1)}));
  EXPECT_EQ(run({"PTTL", "plain"}), integer(-1));
  EXPECT_EQ(run({"BF.INSERT", "none", "NOCREATE", "PX", "5", "ITEMS", "c"}),
            error(kFilterNotFound));
  // Every word after ITEMS is an item, even the name of an option.
  EXPECT_EQ(run({"BF.INSERT", "i", "ITEMS", "EX", "10"}), array({integer(1), integer(1)}));
  EXPECT_EQ(run({"PTTL", "i"}), integer(-1));
}

TEST_F(BloomExpiryTest, ErrorsAreThoseOfSet) {
  struct Case {
    std::vector<std::string> words;
    std::string_view text;
  };
  const std::string invalid = protocol::invalid_expiry("bf.reserve");
  const Case cases[] = {{{"EX"}, kSyntaxError},
                        {{"EX", "1", "PX", "1"}, kSyntaxError},
                        {{"EX", "x"}, kNotAnInteger},
                        {{"EX", "0"}, invalid},
                        {{"PX", "-1"}, invalid},
                        {{"PXAT", "0"}, invalid},
                        {{"EX", "9223372036854775807"}, invalid},
                        {{"PX", "9223372036854775807"}, invalid}};
  for (const Case& one : cases) {
    std::vector<std::string> command{"BF.RESERVE", "k", "0.01", "100"};
    command.insert(command.end(), one.words.begin(), one.words.end());
    EXPECT_EQ(run(command), error(one.text)) << one.words[0];
  }
  EXPECT_EQ(run({"BF.INSERT", "k", "EX", "0", "ITEMS", "a"}),
            error(protocol::invalid_expiry("bf.insert")));
  EXPECT_EQ(run({"EXISTS", "k"}), integer(0));
  EXPECT_EQ(run({"BF.PLAN", "0.01", "100", "EX", "10"}), error("Unknown argument received: 'EX'"));
}

// As with SET, an expiry in the past is stored, and the next lookup deletes the key.
TEST_F(BloomExpiryTest, ATimeInThePastMakesAKeyThatIsGone) {
  EXPECT_EQ(run({"SET", "s", "x", "PXAT", "1"}), kOk);
  EXPECT_EQ(run({"BF.RESERVE", "k", "0.01", "100", "PXAT", "1"}), kOk);
  EXPECT_EQ(run({"DBSIZE"}), integer(2));
  EXPECT_EQ(run({"BF.CARD", "k"}), integer(0));
  EXPECT_EQ(run({"EXISTS", "k", "s"}), integer(0));
  EXPECT_EQ(run({"BF.INSERT", "k", "EXAT", "1", "ITEMS", "a"}), array({integer(1)}));
  EXPECT_EQ(run({"BF.EXISTS", "k", "a"}), integer(0));
  EXPECT_EQ(run({"BF.RESERVE", "k", "0.01", "100"}), kOk);
}

}  // namespace
}  // namespace server
