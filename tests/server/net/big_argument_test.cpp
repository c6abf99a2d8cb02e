// SPDX-License-Identifier: MIT
//
// Tests commands with an argument whose bytes were received into memory of their own.
#include "server/session/big_argument.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/keyspace/keyspace.h"
#include "persistence/journal.h"
#include "server/base/latency/slow_log.h"
#include "server/base/metrics/statistics.h"
#include "server/net/request_runner.h"
#include "server/session/observer.h"
#include "server/session/pubsub/monitor_feed.h"
#include "server/session/session.h"
#include "tests/support/command_test.h"
#include "tests/support/fake_reply_log.h"

namespace server::net {
namespace {

using End = RequestRunner::End;

class BigArgumentTest : public CommandTest {
 protected:
  static constexpr size_t kSize = 1'000'000;

  // Stores a request as ClientInput does: the first argument of kSize bytes goes to `big_`, all
  // other bytes to `data_`.
  void receive(const std::vector<std::string>& request) {
    std::string head = "*" + std::to_string(request.size()) + "\r\n";
    for (const std::string& word : request) {
      head += "$" + std::to_string(word.size()) + "\r\n";
      if (word.size() == kSize && big_ == nullptr) {
        core::keyspace::ByteBuffer memory;
        ASSERT_TRUE(memory.resize_for_overwrite(kSize));
        big_ = std::make_unique<BigArgument>(std::move(memory), data_.size() + head.size());
        std::string_view text = word;
        big_->take_from(text);
      } else {
        head += word;
      }
      head += "\r\n";
    }
    data_ += head;
  }
  // Returns the replies to the received requests.
  std::string serve() {
    const auto [end, consumed, pending] =
        runner_.run(data_, batch_, gate_, RequestRunner::kNoLimit, big_.get());
    end_ = end;
    if (consumed > 0) was_taken_ = big_->is_taken();
    if (consumed > 0) big_.reset();
    data_.erase(0, consumed);
    std::string replies(gate_.fresh());
    gate_.drop_fresh();
    return replies;
  }
  std::string answer(const std::vector<std::string>& request) {
    receive(request);
    return serve();
  }
  // Returns the address of the bytes of a key's value.
  const char* place_of(std::string_view key) {
    core::keyspace::IntegerText scratch;
    return keyspace_.find_any(0, keyspace_.ref(key))->text(scratch).data();
  }

  const std::string value_ = "begin" + std::string(kSize - 8, 'v') + "end";
  FakeReplyLog log_;
  ReplyGate gate_{log_, [](bool) {}};
  RequestRunner runner_{services_, statistics_.thread(0), *client_->session};
  RequestBatch batch_;
  std::unique_ptr<BigArgument> big_;
  std::string data_;
  End end_ = End::kNeedsInput;
  bool was_taken_ = false;
};

TEST_F(BigArgumentTest, BecomesAValueWithoutACopy) {
  using Request = std::vector<std::string>;
  for (const Request& request : {Request{"SET", "k", value_},
                                 {"SETEX", "k", "100", value_},
                                 {"SETNX", "new", value_},
                                 {"PSETEX", "k", "100000", value_},
                                 {"GETSET", "k", value_},
                                 {"APPEND", "missing", value_},
                                 {"SET", "k", value_, "KEEPTTL"},
                                 {"SET", "k", value_, "GET", "EX", "5"}}) {
    receive(request);
    const char* const place = big_->text().data();
    serve();
    EXPECT_TRUE(was_taken_) << request[0];
    EXPECT_EQ(place_of(request[1]), place) << request[0];
    EXPECT_TRUE(run({"GET", request[1]}) == bulk(value_)) << request[0];
  }
}

TEST_F(BigArgumentTest, OtherCommandsOnlyReadIt) {
  using Request = std::vector<std::string>;
  for (const Request& request : {Request{"ECHO", value_},
                                 {"MSET", "a", value_, "b", value_},
                                 {"APPEND", "a", value_},
                                 {"MSET", "same", value_, "same", "x"},
                                 {"EXISTS", value_},
                                 {value_}}) {
    answer(request);
    EXPECT_FALSE(was_taken_) << request[0];
  }
  EXPECT_TRUE(run({"GET", "a"}) == bulk(value_ + value_));
  EXPECT_TRUE(run({"GET", "b"}) == bulk(value_));
  EXPECT_EQ(answer({"SETRANGE", "b", "0", value_}), integer(kSize));
}

TEST_F(BigArgumentTest, ARefusedValueIsFreed) {
  run({"SET", "k", "old"});
  EXPECT_EQ(answer({"SET", "k", value_, "NX"}), kNull);
  EXPECT_EQ(answer({"SETNX", "k", value_}), integer(0));
  run({"BF.ADD", "f", "x"});
  EXPECT_EQ(answer({"GETSET", "f", value_}), error(kWrongType));
  EXPECT_EQ(run({"GET", "k"}), bulk("old"));
}

TEST_F(BigArgumentTest, LaterCommandsRunToo) {
  receive({"SET", "k", value_});
  data_ += "STRLEN k\r\n*2\r\n$6\r\nEXISTS\r\n$1\r\nk\r\nSTR";
  EXPECT_EQ(serve(), kOk + integer(kSize) + integer(1));
  EXPECT_EQ(data_, "STR");
}

TEST_F(BigArgumentTest, SurvivesBeingHeldBack) {
  run({"CLIENT", "PAUSE", "1000", "WRITE"});
  EXPECT_EQ(answer({"SET", "k", value_}), "");
  EXPECT_EQ(end_, End::kHeldBack);
  EXPECT_EQ(serve(), "");
  run({"CLIENT", "UNPAUSE"});
  data_ += "STRLEN k\r\n";
  EXPECT_EQ(serve(), kOk + integer(kSize));
}

TEST_F(BigArgumentTest, ATransactionKeepsACopy) {
  run({"MULTI"});
  EXPECT_EQ(answer({"SET", "k", value_}), "+QUEUED\r\n");
  EXPECT_FALSE(was_taken_);
  EXPECT_EQ(run({"EXEC"}), array({kOk}));
  EXPECT_TRUE(run({"GET", "k"}) == bulk(value_));
}

TEST_F(BigArgumentTest, TheJournalHoldsIt) {
  journal_.set_active(true);
  answer({"SETEX", "k", "100", value_});
  std::string bytes;
  journal_.take(bytes);
  EXPECT_NE(bytes.find("\r\n" + value_ + "\r\n"), std::string::npos);
  EXPECT_TRUE(was_taken_);
}

TEST_F(BigArgumentTest, MonitorsSeeAllOfIt) {
  run_as_other({"MONITOR"});
  EXPECT_EQ(answer({"SET", "k", value_}), kOk);
  EXPECT_FALSE(was_taken_);
  EXPECT_NE(observer_.monitors().take(0).lines.find(value_), std::string::npos);
}

TEST_F(BigArgumentTest, TheSlowLogHasItsBeginning) {
  receive({"SET", "k", value_});
  const std::string_view text = big_->text();
  const core::keyspace::ByteBuffer stored = big_->take();
  const std::vector<std::string_view> words = {"SET", "k", text, "KEEPTTL"};
  const uint64_t long_ticks = observer_.ticks_min() * 100;
  observer_.observe({.session = *client_->session,
                     .words = words,
                     .ticks = long_ticks,
                     .big_argument = big_.get()});
  ASSERT_EQ(observer_.slow_log().size(), 1u);
  EXPECT_EQ(observer_.slow_log().newest(1)[0]->words,
            (std::vector<std::string>{"SET", "k", value_.substr(0, 128) + "... (999872 more bytes)",
                                      "KEEPTTL"}));
}

}  // namespace
}  // namespace server::net
