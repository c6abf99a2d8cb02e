// SPDX-License-Identifier: MIT
#include "server/session/deferred_reply.h"

#include <gtest/gtest.h>

#include "protocol/output_buffer.h"
#include "server/session/clients.h"

namespace server {
namespace {

class DeferredReplyTest : public ::testing::Test {
 protected:
  DeferredReplyTest() {
    client_->wake = [this] { ++wakes_; };
    clients_.add(client_);
  }
  bool try_answer(bool is_late = false) {
    protocol::ReplyWriter reply(replies_, protocol::RespVersion::kResp2);
    return deferred_.awaited->try_answer(reply, is_late);
  }

  Clients clients_;
  std::shared_ptr<Client> client_ = std::make_shared<Client>(clients_.next_id());
  DeferredReply deferred_ = defer_reply(clients_, client_->id);
  protocol::OutputBuffer replies_;
  int wakes_ = 0;
};

TEST_F(DeferredReplyTest, WaitsForTheEndHoweverLate) {
  EXPECT_FALSE(try_answer());
  EXPECT_FALSE(try_answer(true));
  EXPECT_TRUE(replies_.empty());
  EXPECT_EQ(deferred_.awaited->deadline_us(), 0);
  EXPECT_FALSE(deferred_.awaited->can_be_unblocked());
  deferred_.end({});
  EXPECT_EQ(wakes_, 1);
  EXPECT_TRUE(try_answer());
  EXPECT_EQ(replies_.view(), "+OK\r\n");
}

TEST_F(DeferredReplyTest, AFailureIsTheReply) {
  deferred_.end(core::Error{"ERR no"});
  EXPECT_TRUE(try_answer());
  EXPECT_EQ(replies_.view(), "-ERR no\r\n");
}

TEST_F(DeferredReplyTest, TheClientMayHaveGone) {
  clients_.remove(client_->id);
  client_.reset();
  deferred_.awaited.reset();
  deferred_.end({});
  EXPECT_EQ(wakes_, 0);
}

}  // namespace
}  // namespace server
