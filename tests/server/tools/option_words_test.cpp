// SPDX-License-Identifier: MIT
#include "server/tools/option_words.h"

#include <gmock/gmock.h>

#include "server/base/config/option_table.h"

namespace server {
namespace {

TEST(OptionWords, TellOfNumbers) {
  const Option& port = option_row(OptionId::kPort);
  EXPECT_EQ(type_words(port), "integer");
  EXPECT_EQ(default_words(port), "`6379`");
  EXPECT_EQ(range_words(port), "0 to 65535");
  EXPECT_EQ(mutability_words(port), "yes");
  EXPECT_EQ(range_words(option_row(OptionId::kUnixSocketPerm)), "0 to 777");
  EXPECT_EQ(range_words(option_row(OptionId::kSlowlogLogSlowerThan)), "-1 or more");
  EXPECT_EQ(range_words(option_row(OptionId::kBloomInitialSize)), "1 to 281474976710656");
}

TEST(OptionWords, TellOfMemoryAsPeopleWriteIt) {
  const Option& bulk = option_row(OptionId::kProtoMaxBulkLen);
  EXPECT_EQ(type_words(bulk), "memory");
  EXPECT_EQ(default_words(bulk), "`512mb`");
  EXPECT_EQ(range_words(bulk), "1mb or more");
}

TEST(OptionWords, TellOfChoices) {
  const Option& sync = option_row(OptionId::kAppendFsync);
  EXPECT_EQ(range_words(sync), "`everysec`, `always`, `no`");
  EXPECT_EQ(range_words(option_row(OptionId::kDaemonize)), "");
  EXPECT_EQ(type_words(option_row(OptionId::kDaemonize)), "yes or no");
}

TEST(OptionWords, AreTheSameOnEveryMachine) {
  EXPECT_EQ(default_words(option_row(OptionId::kDir)), "where the server is started");
  EXPECT_EQ(default_words(option_row(OptionId::kIoThreads)), "number of cores, at most 8");
  EXPECT_EQ(default_words(option_row(OptionId::kLogFile)), "empty");
}

TEST(OptionWords, TellWhatConfigSetChanges) {
  EXPECT_EQ(mutability_words(option_row(OptionId::kIoThreads)), "no");
  EXPECT_EQ(mutability_words(option_row(OptionId::kDir)), "if `enable-protected-configs` allows");
}

TEST(OptionWords, KnowEveryParser) {
  for (const Option& option : option_table()) {
    if (option.parser == nullptr) continue;
    EXPECT_NE(range_words(option), "") << option.name;
  }
}

}  // namespace
}  // namespace server
