// SPDX-License-Identifier: MIT
#include "server/session/client_line.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "core/clock.h"

namespace server {
namespace {

using testing::HasSubstr;

class ClientLineTest : public testing::Test {
 protected:
  ClientLineTest() {
    session_.address = "127.0.0.1:50000";
    session_.local_address = "127.0.0.1:6379";
    session_.socket.descriptor = 8;
    session_.created_us = 1'000 * core::kSecondUs;
    session_.last_interaction_us = 1'005 * core::kSecondUs;
  }
  std::string line(int64_t now_s = 1'010) {
    return client_line(session_, now_s * core::kSecondUs, 10);
  }
  std::string flags() {
    const std::string text = line();
    const size_t start = text.find(" flags=") + 7;
    return text.substr(start, text.find(' ', start) - start);
  }

  Session session_{7};
};

TEST_F(ClientLineTest, AFreshSessionHasEveryFieldInOrder) {
  const std::string memory = std::to_string(session_.memory_bytes());
  EXPECT_EQ(line(),
            "id=7 addr=127.0.0.1:50000 laddr=127.0.0.1:6379 fd=8 name= age=10 idle=5 flags=N db=0 "
            "sub=0 psub=0 ssub=0 multi=-1 qbuf=0 qbuf-free=0 argv-mem=10 multi-mem=0 rbs=0 rbp=0 "
            "obl=0 oll=0 omem=0 tot-mem=" +
                memory +
                " events=r cmd=NULL user=default redir=-1 resp=2 lib-name= lib-ver= watch=0 "
                "tot-net-in=0 tot-net-out=0 tot-cmds=0\n");
}

TEST_F(ClientLineTest, NamesAreShown) {
  session_.names.change([](ClientNames::Values& names) {
    names.name = "me";
    names.library = "lib";
    names.library_version = "1.2";
    names.user = "alice";
  });
  const std::string command = "client|list";
  session_.traffic.set_last_command(&command);
  EXPECT_THAT(line(), HasSubstr(" name=me "));
  EXPECT_THAT(line(), HasSubstr(" cmd=client|list user=alice "));
  EXPECT_THAT(line(), HasSubstr(" lib-name=lib lib-ver=1.2 watch=0 tot-net-in="));
}

TEST_F(ClientLineTest, TrafficAndWatchedKeysAreShown) {
  session_.watched_keys = 3;
  session_.traffic.count_received(100);
  session_.traffic.count_received(20);
  session_.traffic.set_sent(7);
  session_.traffic.count_command();
  EXPECT_THAT(line(), HasSubstr(" watch=3 tot-net-in="));
  EXPECT_THAT(line(), HasSubstr(" tot-net-in=120 tot-net-out=7 tot-cmds=1\n"));
}

TEST_F(ClientLineTest, LaterTimesThanTheReadersShowNoNegativeOnes) {
  EXPECT_THAT(line(900), HasSubstr(" age=0 idle=0 "));
}

TEST_F(ClientLineTest, EachStateHasItsLetter) {
  EXPECT_EQ(flags(), "N");
  for (const auto& [peer, letter] : {std::pair{Peer::kReplica, "S"},
                                     {Peer::kMonitor, "O"},
                                     {Peer::kLeader, "M"},
                                     {Peer::kClient, "N"}}) {
    session_.peer = peer;
    EXPECT_EQ(flags(), letter);
  }
  using enum ClientWait;
  for (const ClientWait wait : {kPaused, kBlocked, kUnblockable, kNone}) {
    session_.wait = wait;
    EXPECT_EQ(flags(), wait == kNone ? "N" : "b");
  }
  for (const auto& [flag, letter] : {std::pair{&session_.reads_replicas, "r"},
                                     {&session_.kill_requested, "A"},
                                     {&session_.no_evict, "e"},
                                     {&session_.no_touch, "T"}}) {
    flag->store(true);
    EXPECT_EQ(flags(), letter);
    flag->store(false);
  }
  session_.socket.is_unix = true;
  EXPECT_EQ(flags(), "U");
}

TEST_F(ClientLineTest, LettersStandTogether) {
  session_.peer = Peer::kMonitor;
  session_.wait = ClientWait::kBlocked;
  session_.transaction.active = true;
  session_.publish_transaction();
  session_.no_evict = true;
  session_.no_touch = true;
  EXPECT_EQ(flags(), "ObxeT");
  EXPECT_THAT(line(), HasSubstr(" multi=0 "));
}

TEST_F(ClientLineTest, SubscriptionsAreCountedByKind) {
  session_.subscriptions.add(SubscriptionKind::kChannel, "a", 1);
  session_.subscriptions.add(SubscriptionKind::kChannel, "b", 2);
  session_.subscriptions.add(SubscriptionKind::kPattern, "p*", 3);
  EXPECT_THAT(line(), HasSubstr(" flags=P db=0 sub=2 psub=1 ssub=0 "));
}

TEST_F(ClientLineTest, TrackingTellsItsLettersAndWhereItRedirects) {
  auto tracking = std::make_unique<ClientTracking>();
  tracking->redirect = 9;
  tracking->is_broadcast = true;
  session_.subscriptions.set_tracking(std::move(tracking));
  EXPECT_EQ(flags(), "tB");
  EXPECT_THAT(line(), HasSubstr(" redir=9 "));
  session_.subscriptions.set_tracking(nullptr);
  EXPECT_THAT(line(), HasSubstr(" redir=-1 "));
}

TEST_F(ClientLineTest, UnsentRepliesAreCountedAndAwaited) {
  session_.output_buffer_bytes = 100;
  session_.output_buffer_capacity_bytes = 256;
  session_.output_buffer_peak_bytes = 200;
  EXPECT_THAT(line(), HasSubstr(" rbs=256 rbp=200 obl=100 oll=0 omem=100 "));
  EXPECT_THAT(line(), HasSubstr(" events=rw "));
  EXPECT_THAT(line(), HasSubstr(" tot-mem=" + std::to_string(session_.memory_bytes()) + " "));
}

}  // namespace
}  // namespace server
