// SPDX-License-Identifier: MIT
#include "server/net/connection.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <initializer_list>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/connection_fixture.h"
#include "tests/support/environment.h"

namespace server::net {
namespace {

using ConnectionTest = ConnectionFixture;

constexpr int64_t kTimeoutUs = core::kSecondUs;

TEST_F(ConnectionTest, AnswersAPipelineInOrder) {
  EXPECT_EQ(answer("SET a 1\r\nGET a\r\nPING\r\n"), "+OK\r\n$1\r\n1\r\n+PONG\r\n");
  EXPECT_EQ(statistics_.thread(0).reads_processed.value(), 1u);
  EXPECT_EQ(statistics_.thread(0).writes_processed.value(), 1u);
}

TEST_F(ConnectionTest, ACommandMayComeInPieces) {
  EXPECT_EQ(answer("*2\r\n$4\r\nEC"), "");
  EXPECT_EQ(remote_.client().query_buffer_bytes, 2u) << "headers are parsed already";
  EXPECT_EQ(answer("HO\r\n$2\r\nhi\r"), "");
  EXPECT_EQ(answer("\nPING\r\n"), "$2\r\nhi\r\n+PONG\r\n");
  EXPECT_EQ(remote_.client().query_buffer_bytes, 0u);
}

TEST_F(ConnectionTest, ABigArgumentIsParsedWithItsLineEnd) {
  const std::string big(300'000, 'v');
  const std::string request = request_of({"ECHO", big});
  ASSERT_TRUE(remote_.send_all(std::string_view(request).substr(0, request.size() - 2)));
  EXPECT_EQ(remote_.client().query_buffer_bytes, big.size());
  send("\r\n");
  EXPECT_TRUE(remote_.received_all() == bulk(big));
}

TEST_F(ConnectionTest, HalfClosedClientGetsReplies) {
  send("PING\r\n");
  ASSERT_EQ(::shutdown(sockets_.far, SHUT_WR), 0);
  serve();
  EXPECT_EQ(received(), "+PONG\r\n(end)");
  EXPECT_TRUE(is_closed());
}

TEST_F(ConnectionTest, AnErrorOfTheProtocolIsTheLastReply) {
  EXPECT_EQ(answer("PING\r\n*1\r\nx\r\nPING\r\n"),
            "+PONG\r\n-ERR Protocol error: expected '$', got 'x'\r\n(end)");
}

TEST_F(ConnectionTest, QuitEndsItAndWhatFollowsIsNotExecuted) {
  EXPECT_EQ(answer("QUIT\r\nSET a 1\r\n"), "+OK\r\n(end)");
  EXPECT_EQ(run({"EXISTS", "a"}), integer(0));
}

TEST_F(ConnectionTest, RepliesWaitForTheLog) {
  append_to_log(10);
  EXPECT_EQ(answer("SET a 1\r\n"), "");
  EXPECT_EQ(log_.commits, 1);
  EXPECT_EQ(answer("GET a\r\n"), "") << "nothing is executed meanwhile";
  log_.safe = 10;
  thread_.log_waker.wake();
  serve();
  EXPECT_EQ(received(), "+OK\r\n$1\r\n1\r\n");
}

TEST_F(ConnectionTest, LogFailureReplacesTheReplyOfAWrite) {
  append_to_log(10);
  EXPECT_EQ(answer("PING\r\nSET a 1\r\nGET a\r\n"), "");
  log_.is_failing = true;
  thread_.log_waker.wake();
  serve();
  EXPECT_EQ(received(), "+PONG\r\n-IOERR full\r\n$1\r\n1\r\n");
  EXPECT_EQ(statistics_.errors().at("IOERR"), 1u);
  // An IOERR reply does not close the connection.
  log_.is_open = false;
  EXPECT_EQ(answer("PING\r\n"), "+PONG\r\n");
}

TEST_F(ConnectionTest, QuitWaitsForTheLogToo) {
  append_to_log(10);
  EXPECT_EQ(answer("SET a 1\r\nQUIT\r\n"), "");
  EXPECT_FALSE(is_closed());
  log_.safe = 10;
  thread_.log_waker.wake();
  serve();
  EXPECT_EQ(received(), "+OK\r\n+OK\r\n(end)");
  EXPECT_TRUE(is_closed());
}

TEST_F(ConnectionTest, AClosedClientIsForgottenThoughItsRepliesWait) {
  append_to_log(10);
  EXPECT_EQ(answer("SET a 1\r\n"), "");
  remote_.client().kill_requested = true;
  connection_->wake();
  end_round();
  EXPECT_TRUE(is_closed());
  log_.safe = 10;
  thread_.log_waker.wake();
  serve();
  EXPECT_EQ(received(), "(end)");
}

TEST_F(ConnectionTest, MessagesComeBehindRepliesThatAreHeld) {
  append_to_log(10);
  EXPECT_EQ(answer("SET a 1\r\nSUBSCRIBE c\r\n"), "");
  run({"PUBLISH", "c", "text"});
  const auto delivery = pubsub_.take(0);
  ASSERT_TRUE(delivery.has_value());
  EXPECT_GT(connection_->add_message(*delivery, delivery->receivers[0].serial), 0u);
  connection_->send_unsent();
  EXPECT_EQ(received(), "");
  log_.safe = 10;
  thread_.log_waker.wake();
  serve();
  EXPECT_EQ(received(),
            "+OK\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n"
            "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$4\r\ntext\r\n");
}

TEST_F(ConnectionTest, AClientThatDoesNotReadIsNotExecutedFurther) {
  const std::string value(1 << 20, 'v');
  run({"SET", "big", value});
  std::string gets;
  for (int i = 0; i < 50; ++i) gets += "GET big\r\n";
  EXPECT_EQ(::send(sockets_.far, gets.data(), gets.size(), 0), static_cast<ssize_t>(gets.size()));
  serve();
  EXPECT_LT(remote_.client().output_buffer_bytes, 36u << 20);
  EXPECT_GT(remote_.client().output_buffer_bytes, 30u << 20);
  size_t total = 0;
  while (true) {
    const size_t size = received().size();
    serve();
    if (size == 0) break;
    total += size;
  }
  EXPECT_EQ(total, 50 * bulk(value).size());
  EXPECT_EQ(remote_.client().output_buffer_bytes, 0u);
}

TEST_F(ConnectionTest, PausedCommandsRunAfterThePause) {
  run({"CLIENT", "PAUSE", "100000", "WRITE"});
  EXPECT_EQ(answer("PING\r\nSET a 1\r\nPING\r\n"), "+PONG\r\n");
  EXPECT_EQ(remote_.client().wait, ClientWait::kPaused);
  run({"CLIENT", "UNPAUSE"});
  connection_->wake();
  serve();
  EXPECT_EQ(received(), "+OK\r\n+PONG\r\n");
  EXPECT_EQ(remote_.client().wait, ClientWait::kNone);
  EXPECT_EQ(answer("PING\r\n"), "+PONG\r\n");
}

// A connection parses a command that is held back again and again. This is no sign of the client.
TEST_F(ConnectionTest, PausedClientBecomesIdle) {
  run({"CLIENT", "PAUSE", "100000", "WRITE"});
  advance_ms(1);
  EXPECT_EQ(answer("SET a 1\r\n"), "");
  const int64_t sent_us = clock_.monotonic_us();
  EXPECT_EQ(remote_.client().last_interaction_us, sent_us);
  advance_ms(5000);
  connection_->wake();
  serve();
  EXPECT_EQ(remote_.client().wait, ClientWait::kPaused);
  EXPECT_EQ(remote_.client().last_interaction_us, sent_us);
  run({"CLIENT", "UNPAUSE"});
  connection_->wake();
  serve();
  EXPECT_EQ(received(), "+OK\r\n");
  EXPECT_EQ(remote_.client().last_interaction_us, clock_.monotonic_us());
}

TEST_F(ConnectionTest, ACommandThatWaitsIsAnsweredLate) {
  EXPECT_EQ(answer("WAIT 1 100\r\nPING\r\n"), "");
  advance_ms(101);
  connection_->poll();
  serve();
  EXPECT_EQ(received(), ":0\r\n+PONG\r\n");
  EXPECT_EQ(remote_.client().last_interaction_us, clock_.monotonic_us()) << "it is not idle";
}

TEST_F(ConnectionTest, AnUnblockedCommandIsAnsweredWithAnError) {
  EXPECT_EQ(answer("WAIT 1 0\r\nPING\r\n"), "");
  EXPECT_EQ(run({"CLIENT", "UNBLOCK", std::to_string(remote_.client().id), "ERROR"}), integer(1));
  connection_->wake();
  serve();
  EXPECT_EQ(received(), error(kUnblocked) + "+PONG\r\n");
}

TEST_F(ConnectionTest, AWaitIsEndedOnRequestOnlyWhileItWaits) {
  const std::string id = std::to_string(remote_.client().id);
  for (const auto& [word, reply] : {std::pair<std::string, std::string>{"", ":0\r\n"},
                                    {"TIMEOUT", ":0\r\n"},
                                    {"ERROR", error(kUnblocked)}}) {
    EXPECT_EQ(run({"CLIENT", "UNBLOCK", id}), integer(0));
    EXPECT_EQ(answer("WAIT 1 0\r\n"), "");
    EXPECT_NE(run({"INFO", "clients"}).find("\nblocked_clients:1\r"), std::string::npos);
    EXPECT_NE(run({"CLIENT", "LIST"}).find("id=" + id + " "), std::string::npos);
    std::vector<std::string> unblock{"CLIENT", "UNBLOCK", id};
    if (!word.empty()) unblock.push_back(word);
    EXPECT_EQ(run(unblock), integer(1));
    connection_->wake();
    serve();
    EXPECT_EQ(received(), reply);
    EXPECT_NE(run({"INFO", "clients"}).find("\nblocked_clients:0\r"), std::string::npos);
  }
}

TEST_F(ConnectionTest, OneRequestEndsOneWait) {
  const std::string id = std::to_string(remote_.client().id);
  EXPECT_EQ(answer("WAIT 1 0\r\n"), "");
  EXPECT_EQ(run({"CLIENT", "UNBLOCK", id, "ERROR"}), integer(1));
  EXPECT_EQ(run({"CLIENT", "UNBLOCK", id, "ERROR"}), integer(0));
  connection_->wake();
  serve();
  EXPECT_EQ(received(), error(kUnblocked));
  EXPECT_EQ(answer("WAIT 1 0\r\n"), "");
  connection_->wake();
  serve();
  EXPECT_EQ(received(), "") << "the next wait is not ended";
}

TEST_F(ConnectionTest, ErrorsOfWaitingCommandsAreCounted) {
  const std::string id = std::to_string(remote_.client().id);
  EXPECT_EQ(answer("WAIT 1 0\r\n"), "");
  EXPECT_EQ(run({"CLIENT", "UNBLOCK", id, "ERROR"}), integer(1));
  connection_->wake();
  serve();
  EXPECT_EQ(received(), error(kUnblocked));
  EXPECT_NE(run({"INFO", "errorstats"}).find("errorstat_UNBLOCKED:count=1"), std::string::npos);
  const std::string commands = run({"INFO", "commandstats"});
  const std::string wait = commands.substr(commands.find("cmdstat_wait:"));
  EXPECT_LT(wait.find("failed_calls=1"), wait.find('\n')) << wait;
}

TEST_F(ConnectionTest, ProtocolErrorsAreSilentWithoutReplies) {
  EXPECT_EQ(answer("CLIENT REPLY OFF\r\n*x\r\n"), "(end)");
  EXPECT_NE(run({"INFO", "errorstats"}).find("errorstat_ERR:count=1"), std::string::npos);
}

TEST_F(ConnectionTest, AClientThatGoesWhileItWaitsIsClosed) {
  const std::string line = "id=" + std::to_string(remote_.client().id) + " ";
  EXPECT_EQ(answer("WAIT 1 0\r\n"), "");
  EXPECT_NE(run({"CLIENT", "LIST"}).find(line), std::string::npos);
  ASSERT_EQ(::shutdown(sockets_.far, SHUT_RDWR), 0);
  serve();
  EXPECT_TRUE(is_closed());
  EXPECT_EQ(run({"CLIENT", "LIST"}).find(line), std::string::npos);
}

TEST_F(ConnectionTest, ASubscriberIsNotIdle) {
  EXPECT_EQ(answer("SUBSCRIBE c\r\n"), array({bulk("subscribe"), bulk("c"), integer(1)}));
  connection_->on_tick(clock_.monotonic_us() + 1'001'000, kTimeoutUs, false);
  end_round();
  EXPECT_FALSE(is_closed());
}

TEST_F(ConnectionTest, AnIdleClientIsClosed) {
  connection_->on_tick(clock_.monotonic_us() + 999'000, kTimeoutUs, false);
  connection_->on_tick(clock_.monotonic_us() + 9'999'000, 0, false);
  end_round();
  EXPECT_FALSE(is_closed());
  connection_->on_tick(clock_.monotonic_us() + 1'001'000, kTimeoutUs, false);
  end_round();
  EXPECT_TRUE(is_closed());
}

TEST_F(ConnectionTest, AnIdleClientIsClosedWhileABusyOneStays) {
  ASSERT_EQ(run({"CONFIG", "SET", "timeout", "1"}), kOk);
  Remote& busy = connect();
  for (int i = 0; i < 4; ++i) {
    advance_ms(600);
    EXPECT_EQ(busy.call("PING"), "+PONG");
    tick();
  }
  EXPECT_EQ(received(), "(end)");
  EXPECT_FALSE(busy.is_closed());
}

TEST_F(ConnectionTest, SlowSenderIsAnsweredAndBlocksNoOne) {
  Remote& other = connect();
  for (const char byte : request_of({"SET", "slow", "value"})) {
    EXPECT_EQ(received(), "");
    send(std::string(1, byte));
    EXPECT_EQ(other.call("PING"), "+PONG");
  }
  EXPECT_EQ(received(), "+OK\r\n");
}

TEST_F(ConnectionTest, AbandonedRequestsBlockNoOne) {
  const std::string request = request_of({"SET", "key", "value"});
  for (size_t size = 1; size < request.size(); ++size) connect().send(request.substr(0, size));
  EXPECT_EQ(answer("PING\r\n"), "+PONG\r\n");
  EXPECT_EQ(run({"EXISTS", "key"}), integer(0));
}

TEST_F(ConnectionTest, PipelinesOfManyClientsMeetWithoutLoss) {
  std::string request;
  for (int i = 0; i < 100; ++i) request += request_of({"INCR", "n"});
  std::vector<Remote*> clients;
  for (int i = 0; i < 20; ++i) clients.push_back(&connect());
  for (Remote* const client : clients) client->send(request + request_of({"BF.ADD", "f", "x"}));
  serve();
  for (Remote* const client : clients) {
    const auto replies = replies_in(client->received());
    ASSERT_EQ(replies.size(), 101U);
    for (size_t i = 1; i < 100; ++i) EXPECT_GT(replies[i].integer, replies[i - 1].integer);
  }
  EXPECT_EQ(run({"GET", "n"}), bulk("2000"));
}

TEST_F(ConnectionTest, BytesOfAnotherProtocolReachNoCommand) {
  // The first bytes of a TLS client's handshake.
  std::string greeting("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  for (int i = 0; i < 512; ++i) greeting += static_cast<char>(i);
  for (const std::string& data : {greeting, greeting + "\r\n", greeting.substr(0, 5)}) {
    Remote& client = connect();
    client.send(data + "\r\n");
    serve();
    const std::string said = client.received();
    EXPECT_TRUE(said.empty() || said[0] == '-') << said;
  }
  EXPECT_EQ(answer("PING\r\n"), "+PONG\r\n");
}

// CVE-2023-41056 was a heap overflow in buffers that grow and shrink with the size of the received
// arguments.
TEST_F(ConnectionTest, WordsOfAnySizeInPiecesOfAnySize) {
  std::mt19937_64 random(support::number_of("BLOOMERY_SEED", 1));
  const uint64_t rounds = support::number_of("BLOOMERY_SECURITY_ROUNDS", 2000) / 100;
  const auto one_of = [&random](std::initializer_list<size_t> sizes) {
    return *(sizes.begin() + random() % sizes.size());
  };
  const auto bytes_of = [&random](size_t size) {
    std::string text(size, ' ');
    for (char& byte : text) byte = static_cast<char>(random());
    return text;
  };
  for (uint64_t round = 0; round < rounds; ++round) {
    std::string request;
    std::string expected;
    const size_t words = 1 + random() % 8;
    for (size_t i = 0; i < words; ++i) {
      const std::string word = bytes_of(one_of({0, 1, 30, 1000, 16383, 16385, 32768, 70'000}));
      request += request_of({"ECHO", word});
      expected += bulk(word);
    }
    const std::string big = bytes_of(one_of({1, size_t{1} << 20}));
    request += request_of({"SET", "big", big}) + request_of({"GET", "big"});
    expected += kOk + bulk(big);
    std::string said;
    for (size_t start = 0; start < request.size();) {
      const size_t size = one_of({7, 1000, 16384, 65536, size_t{1} << 20});
      ASSERT_TRUE(remote_.send_all(request.substr(start, size)));
      said += received();
      start += size;
    }
    said += remote_.received_all();
    ASSERT_TRUE(said == expected) << "round " << round;
  }
}

}  // namespace
}  // namespace server::net
