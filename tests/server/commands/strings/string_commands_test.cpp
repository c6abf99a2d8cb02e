// SPDX-License-Identifier: MIT
#include "core/keyspace/keyspace.h"
#include "protocol/error_texts.h"
#include "server/base/metrics/statistics.h"
#include "server/base/process/memory_monitor.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/registry.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/error_matcher.h"
#include "tests/support/keyspace_access.h"

namespace server {
namespace {

class StringCommandsTest : public CommandTest {
 protected:
  // Returns the key's expiry in milliseconds since 1970, or kNoExpiry; nullopt if the key is
  // missing.
  std::optional<int64_t> expiry_of(std::string_view name) {
    const auto* entry = keyspace_.find_any(0, keyspace_.ref(name));
    return entry == nullptr ? std::nullopt : std::optional(entry->expires_at_ms());
  }
  std::string encoding_of(std::string_view name) {
    return std::string(keyspace_.find_any(0, keyspace_.ref(name))->encoding());
  }
};

const std::string kSyntaxReply = encoded_error(protocol::kSyntaxError);
const std::string kNoExpiryAllowed = encoded_error(protocol::invalid_expiry("set"));

TEST_F(StringCommandsTest, GetReturnsWhatSetStored) {
  EXPECT_EQ(run({"GET", "a"}), kNull);
  EXPECT_EQ(run({"SET", "a", "xyz"}), kOk);
  EXPECT_EQ(run({"GET", "a"}), bulk("xyz"));
  EXPECT_EQ(run({"SET", "a", ""}), kOk);
  EXPECT_EQ(run({"GET", "a"}), bulk(""));
}

TEST_F(StringCommandsTest, EncodingFollowsTheText) {
  run({"MSET", "i", "-42", "z", "042", "e", std::string(44, 'x'), "r", std::string(45, 'x')});
  EXPECT_EQ(encoding_of("i"), "int");
  EXPECT_EQ(encoding_of("z"), "embstr");
  EXPECT_EQ(encoding_of("e"), "embstr");
  EXPECT_EQ(encoding_of("r"), "raw");
}

TEST_F(StringCommandsTest, SetClearsTheExpiryUnlessItIsToStay) {
  run({"SET", "a", "1", "EX", "10"});
  EXPECT_EQ(expiry_of("a"), clock_.now_ms + 10'000);
  run({"SET", "a", "2", "KEEPTTL"});
  EXPECT_EQ(expiry_of("a"), clock_.now_ms + 10'000);
  run({"SET", "a", "3"});
  EXPECT_EQ(expiry_of("a"), core::keyspace::kNoExpiry);
  EXPECT_EQ(keyspace_.expires_count(0), 0U);
}

TEST_F(StringCommandsTest, SetTakesFourKindsOfExpiry) {
  run({"SET", "a", "1", "px", "15"});
  EXPECT_EQ(expiry_of("a"), clock_.now_ms + 15);
  run({"SET", "a", "1", "EXAT", "2000000000"});
  EXPECT_EQ(expiry_of("a"), 2'000'000'000'000);
  run({"SET", "a", "1", "PXAT", "2000000000123"});
  EXPECT_EQ(expiry_of("a"), 2'000'000'000'123);
  run({"SET", "a", "1", "EX", "1", "EX", "2"});
  EXPECT_EQ(expiry_of("a"), clock_.now_ms + 2'000);
  advance_ms(2'001);
  EXPECT_EQ(run({"GET", "a"}), kNull);
}

TEST_F(StringCommandsTest, SetRefusesImpossibleTimes) {
  for (const char* amount : {"0", "-1", "9223372036854775807", "9223372036854776"}) {
    EXPECT_EQ(run({"SET", "a", "1", "EX", amount}), kNoExpiryAllowed) << amount;
  }
  EXPECT_EQ(run({"SET", "a", "1", "PX", "9223372036854775807"}), kNoExpiryAllowed);
  EXPECT_EQ(run({"SET", "a", "1", "EX", "x"}), error(kNotAnInteger));
  EXPECT_EQ(run({"SETEX", "a", "0", "1"}), error(protocol::invalid_expiry("setex")));
  EXPECT_EQ(run({"PSETEX", "a", "-1", "1"}), error(protocol::invalid_expiry("psetex")));
  EXPECT_EQ(run({"GET", "a"}), kNull);
}

TEST_F(StringCommandsTest, SetRefusesOptionsThatContradict) {
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"NX", "XX"},
                                             {"EX", "1", "PX", "1"},
                                             {"KEEPTTL", "EX", "1"},
                                             {"EX"},
                                             {"PERSIST"},
                                             {"nonsense"}}) {
    std::vector<std::string> command = {"SET", "a", "1"};
    command.insert(command.end(), options.begin(), options.end());
    EXPECT_EQ(run(command), kSyntaxReply) << options.front();
  }
}

TEST_F(StringCommandsTest, TimeInThePastStoresAnExpiredKey) {
  EXPECT_EQ(run({"SET", "a", "1", "PXAT", "1"}), kOk);
  EXPECT_EQ(keyspace_.db_size(0), 1U);
  EXPECT_EQ(run({"GET", "a"}), kNull);
}

TEST_F(StringCommandsTest, ConditionsDecideWhetherSetStores) {
  EXPECT_EQ(run({"SET", "a", "1", "XX"}), kNull);
  EXPECT_EQ(run({"SET", "a", "1", "NX"}), kOk);
  EXPECT_EQ(run({"SET", "a", "2", "NX"}), kNull);
  EXPECT_EQ(run({"SET", "a", "3", "XX"}), kOk);
  EXPECT_EQ(run({"SETNX", "a", "4"}), integer(0));
  EXPECT_EQ(run({"SETNX", "b", "4"}), integer(1));
  EXPECT_EQ(run({"MGET", "a", "b"}), array({bulk("3"), bulk("4")}));
}

TEST_F(StringCommandsTest, SetGetAnswersTheOldValueWhateverTheCondition) {
  EXPECT_EQ(run({"SET", "a", "1", "GET"}), kNull);
  EXPECT_EQ(run({"SET", "a", "2", "NX", "GET"}), bulk("1"));
  EXPECT_EQ(run({"SET", "a", "3", "XX", "GET"}), bulk("1"));
  EXPECT_EQ(run({"SET", "b", "3", "XX", "GET"}), kNull);
  EXPECT_EQ(run({"GETSET", "a", "4"}), bulk("3"));
  EXPECT_EQ(run({"GET", "a"}), bulk("4"));
}

TEST_F(StringCommandsTest, OtherTypesAreOverwrittenButNotRead) {
  put_filter(keyspace_, "f");
  EXPECT_EQ(run({"GET", "f"}), error(kWrongType));
  EXPECT_EQ(run({"GETSET", "f", "1"}), error(kWrongType));
  EXPECT_EQ(run({"GETDEL", "f"}), error(kWrongType));
  EXPECT_EQ(run({"GETEX", "f"}), error(kWrongType));
  EXPECT_EQ(run({"SET", "f", "1", "GET"}), error(kWrongType));
  EXPECT_EQ(run({"SET", "f", "1"}), kOk);
  EXPECT_EQ(run({"GET", "f"}), bulk("1"));
}

TEST_F(StringCommandsTest, BigValuesReplaceEachOther) {
  const std::string big(300'000, 'b');
  EXPECT_EQ(run({"SET", "a", big, "EX", "5"}), kOk);
  EXPECT_EQ(run({"SET", "a", big + "!", "KEEPTTL"}), kOk);
  EXPECT_EQ(expiry_of("a"), clock_.now_ms + 5'000);
  EXPECT_EQ(run({"GET", "a"}), bulk(big + "!"));
  EXPECT_EQ(run({"SET", "a", "7"}), kOk);
  EXPECT_EQ(run({"GET", "a"}), bulk("7"));
  EXPECT_EQ(keyspace_.db_size(0), 1U);
  EXPECT_EQ(keyspace_.expires_count(0), 0U);
}

TEST_F(StringCommandsTest, ValuesBeyondTheMemoryLimitAreRefused) {
  const std::string big(8 << 20, 'b');
  memory_.set_limit(memory_.refresh() + (4 << 20));
  EXPECT_EQ(run({"SET", "a", big}), error(kOutOfMemory));
  EXPECT_EQ(run({"MSET", "a", big}), error(kOutOfMemory));
  EXPECT_EQ(keyspace_.db_size(0), 0U);
}

TEST_F(StringCommandsTest, GetdelRemovesTheKey) {
  run({"SET", "a", "1", "EX", "5"});
  EXPECT_EQ(run({"GETDEL", "a"}), bulk("1"));
  EXPECT_EQ(run({"GETDEL", "a"}), kNull);
  EXPECT_EQ(keyspace_.expires_count(0), 0U);
}

TEST_F(StringCommandsTest, GetexChangesTheExpiry) {
  run({"SET", "a", "1"});
  EXPECT_EQ(run({"GETEX", "a", "PX", "5"}), bulk("1"));
  EXPECT_EQ(expiry_of("a"), clock_.now_ms + 5);
  EXPECT_EQ(run({"GETEX", "a"}), bulk("1"));
  EXPECT_EQ(expiry_of("a"), clock_.now_ms + 5);
  EXPECT_EQ(run({"GETEX", "a", "PERSIST"}), bulk("1"));
  EXPECT_EQ(expiry_of("a"), core::keyspace::kNoExpiry);
  EXPECT_EQ(run({"GETEX", "a", "EXAT", "1"}), bulk("1"));
  EXPECT_EQ(expiry_of("a"), std::nullopt);
}

TEST_F(StringCommandsTest, GetexAnswersAMissingKeyBeforeAWrongTime) {
  EXPECT_EQ(run({"GETEX", "a", "EX", "0"}), kNull);
  EXPECT_EQ(run({"GETEX", "a", "KEEPTTL"}), kSyntaxReply);
  run({"SET", "a", "1"});
  EXPECT_EQ(run({"GETEX", "a", "EX", "0"}), error(protocol::invalid_expiry("getex")));
}

TEST_F(StringCommandsTest, WatchersHearOnlyOfRealChanges) {
  run({"SET", "a", "1"});
  run_as_other({"WATCH", "a"});
  run({"SET", "a", "2", "NX"});
  run({"GETEX", "a", "PERSIST"});
  run({"SETNX", "a", "3"});
  EXPECT_FALSE(other_->session->transaction.watch_flag->dirty.load());
  run({"SET", "a", "1"});
  EXPECT_TRUE(other_->session->transaction.watch_flag->dirty.load());
}

TEST_F(StringCommandsTest, CommandsThatAnswerTheValueCountTheirLookup) {
  run({"GETSET", "a", "1"});
  run({"GETEX", "a"});
  run({"SET", "a", "1"});
  EXPECT_EQ(statistics_.thread(0).keyspace_misses.value(), 1U);
  EXPECT_EQ(statistics_.thread(0).keyspace_hits.value(), 1U);
}

TEST_F(StringCommandsTest, KeyUseOfSetDependsOnGet) {
  const auto* row = registry_->find("set")->row;
  const std::vector<std::string_view> plain = {"SET", "a", "get"};
  const std::vector<std::string_view> getting = {"SET", "a", "1", "get"};
  EXPECT_EQ(row->key_use(plain), kKeyOw | kKeyUpdate);
  EXPECT_EQ(row->key_use(getting), kKeyRw | kKeyAccess | kKeyUpdate);
}

}  // namespace
}  // namespace server
