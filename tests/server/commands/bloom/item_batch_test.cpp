// SPDX-License-Identifier: MIT
#include "server/commands/bloom/item_batch.h"

#include <gmock/gmock.h>

#include <memory>
#include <string_view>
#include <vector>

#include "core/bloom/layouts.h"
#include "protocol/output_buffer.h"
#include "tests/support/command_test.h"
#include "tests/support/filters.h"

namespace server {
namespace {

using core::bloom::LayoutId;
using core::bloom::RedisBloomLayout;

class EarlyBatchTest : public CommandTest {
 protected:
  const std::vector<std::string_view> command_{"BF.MADD", "f", "a", "b", "c"};
  const Request request_{.args = command_};
  protocol::OutputBuffer replies_;
  CommandResult result_;
  const Context context_{{services_, statistics_.thread(0), *client_->session, client_->dispatcher},
                         request_,
                         protocol::ReplyWriter(replies_, client_->session->client->resp),
                         clock_.now_ms,
                         result_};
};

// While a command does not hold the lock, another client can replace the filter.
TEST_F(EarlyBatchTest, HashesAgainForAnotherFilter) {
  const Arguments items = context_.args.subspan(2);
  std::vector<std::unique_ptr<core::bloom::ScalableFilter>> all;
  for (const LayoutId layout : filters::kLayouts) {
    all.push_back(filters::make(filters::parameters(layout, 100, 0.01), "x", 1));
  }
  EarlyBatch early(context_, items);
  for (const auto& first : all) {
    for (const auto& second : all) {
      for (const auto* const filter : {first.get(), second.get(), first.get()}) {
        const auto hashes = early.for_filter(*filter).hashes();
        EXPECT_THAT(filters::hashes_of(*filter, items), ::testing::ElementsAreArray(hashes));
        EXPECT_EQ(early.at_hand(*filter), hashes.data());
      }
    }
  }
}

// BF.KADD prefetches with the hashes only where they fit the filter.
TEST_F(EarlyBatchTest, HashesOfOtherLayoutAreNotAtHand) {
  EarlyBatch early(context_, context_.args.subspan(2));
  const auto configured =
      filters::make(filters::parameters(BloomDefaults(config_).layout(), 100, 0.01), "x", 1);
  const auto other = filters::make(filters::parameters(RedisBloomLayout::kId, 100, 0.01), "x", 1);
  EXPECT_NE(early.at_hand(*configured), nullptr);
  EXPECT_EQ(early.at_hand(*other), nullptr);
  early.for_filter(*other);
  EXPECT_EQ(early.at_hand(*configured), nullptr);
  EXPECT_NE(early.at_hand(*other), nullptr);
}

}  // namespace
}  // namespace server
