// SPDX-License-Identifier: MIT
#include "server/session/client_line.h"

#include <gmock/gmock.h>

#include <memory>
#include <string>

#include "core/clock.h"
#include "server/session/pubsub/subscriptions.h"

namespace server {
namespace {

using testing::HasSubstr;

class ClientLineTest : public testing::Test {
 protected:
  ClientLineTest() {
    client_.address = "127.0.0.1:50000";
    client_.local_address = "127.0.0.1:6379";
    client_.socket.descriptor = 8;
    client_.created_us = 1'000 * core::kSecondUs;
    client_.last_interaction_us = 1'005 * core::kSecondUs;
  }
  std::string line(int64_t now_s = 1'010) {
    return client_line(client_, now_s * core::kSecondUs, 10);
  }
  std::string flags() {
    const std::string text = line();
    const size_t start = text.find(" flags=") + 7;
    return text.substr(start, text.find(' ', start) - start);
  }

  Client client_{7};
};

TEST_F(ClientLineTest, AFreshSessionHasEveryFieldInOrder) {
  const std::string memory = std::to_string(client_.memory_bytes());
  EXPECT_EQ(line(),
            "id=7 addr=127.0.0.1:50000 laddr=127.0.0.1:6379 fd=8 name= age=10 idle=5 flags=N db=0 "
            "sub=0 psub=0 ssub=0 multi=-1 qbuf=0 qbuf-free=0 argv-mem=10 multi-mem=0 rbs=0 rbp=0 "
            "obl=0 oll=0 omem=0 tot-mem=" +
                memory +
                " events=r cmd=NULL user=default redir=-1 resp=2 lib-name= lib-ver= watch=0 "
                "tot-net-in=0 tot-net-out=0 tot-cmds=0\n");
}

TEST_F(ClientLineTest, NamesAreShown) {
  client_.names.change([](ClientNames::Values& names) {
    names.name = "me";
    names.library = "lib";
    names.library_version = "1.2";
    names.user = "alice";
  });
  const std::string command = "client|list";
  client_.traffic.last_command = &command;
  EXPECT_THAT(line(), HasSubstr(" name=me "));
  EXPECT_THAT(line(), HasSubstr(" cmd=client|list user=alice "));
  EXPECT_THAT(line(), HasSubstr(" lib-name=lib lib-ver=1.2 watch=0 tot-net-in="));
}

TEST_F(ClientLineTest, TrafficAndWatchedKeysAreShown) {
  client_.watched_keys = 3;
  client_.traffic.received_bytes += 100;
  client_.traffic.received_bytes += 20;
  client_.traffic.sent_bytes = 7;
  client_.traffic.commands += 1;
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
    client_.peer = peer;
    EXPECT_EQ(flags(), letter);
  }
  using enum ClientWait;
  for (const ClientWait wait : {kPaused, kBlocked, kUnblockable, kNone}) {
    client_.wait = wait;
    EXPECT_EQ(flags(), wait == kNone ? "N" : "b");
  }
  for (const auto& [flag, letter] : {std::pair{&client_.reads_replicas, "r"},
                                     {&client_.no_evict, "e"},
                                     {&client_.no_touch, "T"}}) {
    *flag = true;
    EXPECT_EQ(flags(), letter);
    *flag = false;
  }
  client_.kill_requested = true;
  EXPECT_EQ(flags(), "A");
  client_.kill_requested = false;
  client_.socket.is_unix = true;
  EXPECT_EQ(flags(), "U");
}

TEST_F(ClientLineTest, LettersStandTogether) {
  client_.peer = Peer::kMonitor;
  client_.wait = ClientWait::kBlocked;
  client_.queued_commands = 0;
  client_.no_evict = true;
  client_.no_touch = true;
  EXPECT_EQ(flags(), "ObxeT");
  EXPECT_THAT(line(), HasSubstr(" multi=0 "));
}

TEST_F(ClientLineTest, SubscriptionsAreCountedByKind) {
  Subscriptions subscriptions(client_.subscriptions);
  subscriptions.add(SubscriptionKind::kChannel, "a", 1);
  subscriptions.add(SubscriptionKind::kChannel, "b", 2);
  subscriptions.add(SubscriptionKind::kPattern, "p*", 3);
  EXPECT_THAT(line(), HasSubstr(" flags=P db=0 sub=2 psub=1 ssub=0 "));
}

TEST_F(ClientLineTest, TrackingTellsItsLettersAndWhereItRedirects) {
  Subscriptions subscriptions(client_.subscriptions);
  auto tracking = std::make_unique<ClientTracking>();
  tracking->redirect = 9;
  tracking->is_broadcast = true;
  subscriptions.set_tracking(std::move(tracking));
  EXPECT_EQ(flags(), "tB");
  EXPECT_THAT(line(), HasSubstr(" redir=9 "));
  subscriptions.set_tracking(nullptr);
  EXPECT_THAT(line(), HasSubstr(" redir=-1 "));
}

TEST_F(ClientLineTest, UnsentRepliesAreCountedAndAwaited) {
  client_.output_buffer_bytes = 100;
  client_.output_buffer_capacity_bytes = 256;
  client_.output_buffer_peak_bytes = 200;
  EXPECT_THAT(line(), HasSubstr(" rbs=256 rbp=200 obl=100 oll=0 omem=100 "));
  EXPECT_THAT(line(), HasSubstr(" events=rw "));
  EXPECT_THAT(line(), HasSubstr(" tot-mem=" + std::to_string(client_.memory_bytes()) + " "));
}

}  // namespace
}  // namespace server
