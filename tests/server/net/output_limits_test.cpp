// SPDX-License-Identifier: MIT
//
// Tests the limits for unread replies, for endless requests and for a client's total memory, and
// the sizes that CLIENT LIST reports.
#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "server/base/process/memory_monitor.h"
#include "tests/support/clients_fixture.h"
#include "tests/support/sanitized.h"
#include "tests/support/test_threads.h"

namespace server::net {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr size_t kMebibyte = size_t{1} << 20;

class OutputLimitsTest : public ClientsFixture {
 protected:
  OutputLimitsTest() { run({"SET", "big", big_}); }

  void limit(const std::string& words) {
    ASSERT_EQ(run({"CONFIG", "SET", "client-output-buffer-limit", words}), kOk);
  }
  // Connects a client that requests a reply bigger than its socket's buffer, and does not read the
  // reply.
  Remote& slow_client() {
    Remote& client = connect();
    client.send(request_of({"GET", "big"}));
    serve();
    return client;
  }
  bool is_listed(const Remote& client) {
    return run({"CLIENT", "LIST"}).find("id=" + client.id_text() + " ") != std::string::npos;
  }
  // Returns the numeric fields of the client's line in CLIENT LIST.
  std::map<std::string, int64_t> figures(const Remote& client) {
    std::map<std::string, int64_t> figures;
    std::istringstream fields(run({"CLIENT", "LIST", "ID", client.id_text()}));
    for (std::string field; fields >> field;) {
      const size_t middle = field.find('=');
      if (middle == std::string::npos) continue;
      figures[field.substr(0, middle)] = std::strtoll(field.c_str() + middle + 1, nullptr, 10);
    }
    return figures;
  }
  std::string disconnections() {
    return info("stats", "client_output_buffer_limit_disconnections");
  }

  const std::string big_ = std::string(4 * kMebibyte, 'x');
};

TEST_F(OutputLimitsTest, ASilentClientOverTheSoftLimitIsFound) {
  limit("normal 0 1mb 1");
  Remote& client = slow_client();
  advance_ms(900);
  tick();
  EXPECT_TRUE(is_listed(client));
  advance_ms(1200);
  tick();
  EXPECT_FALSE(is_listed(client));
  EXPECT_LT(client.received().size(), big_.size());
  EXPECT_EQ(disconnections(), "1");
}

TEST_F(OutputLimitsTest, AClientThatDrainsInTimeIsLeftAlone) {
  limit("normal 0 1mb 2");
  Remote& client = slow_client();
  // The client exceeds its limit three times, each time for 1.8 s. A client may exceed it for two
  // seconds without a break, so the server must not close this client.
  for (int i = 0; i < 3; ++i) {
    advance_ms(1800);
    tick();
    EXPECT_EQ(client.received_all(), bulk(big_));
    client.send(request_of({"GET", "big"}));
    serve();
  }
  EXPECT_EQ(client.received_all(), bulk(big_));
  EXPECT_EQ(client.call("PING"), "+PONG");
  EXPECT_EQ(disconnections(), "0");
}

TEST_F(OutputLimitsTest, TheHardLimitClosesAtOnce) {
  limit("normal 1mb 0 0");
  Remote& client = slow_client();
  EXPECT_FALSE(is_listed(client));
  EXPECT_LT(client.received().size(), big_.size());
  EXPECT_EQ(disconnections(), "1");
}

TEST_F(OutputLimitsTest, TheHardLimitCountsWhileRepliesAreBuilt) {
  limit("normal 6mb 0 0");
  Remote& client = connect();
  client.send(request_of({"MGET", "big", "big", "big", "big", "big", "big", "big", "big"}));
  serve();
  EXPECT_TRUE(client.is_closed());
  EXPECT_EQ(client.received(), "(end)") << "nothing of a torn reply is sent";
  EXPECT_EQ(disconnections(), "1");
  EXPECT_LT(thread_.gate.replies().capacity(), 6 * kMebibyte);
  // A client receives a whole reply if its size is below the limit.
  Remote& other = connect();
  other.send(request_of({"GET", "big"}));
  serve();
  EXPECT_EQ(other.received_all(), bulk(big_));
  EXPECT_EQ(disconnections(), "1");
}

TEST_F(OutputLimitsTest, UnsentRepliesCountAgainstTheRoomOfTheNext) {
  limit("normal 6mb 0 0");
  Remote& client = slow_client();
  EXPECT_TRUE(is_listed(client));
  client.send(request_of({"GET", "big"}));
  serve();
  EXPECT_FALSE(is_listed(client));
  EXPECT_EQ(disconnections(), "1");
}

TEST_F(OutputLimitsTest, AHardLimitThatIsSetLaterFindsASilentClient) {
  Remote& client = slow_client();
  tick();
  EXPECT_TRUE(is_listed(client));
  limit("normal 1mb 0 0");
  tick();
  EXPECT_FALSE(is_listed(client));
}

TEST_F(OutputLimitsTest, ARaisedLimitSparesIt) {
  limit("normal 1mb 0 0");
  limit("normal 100mb 0 0");
  Remote& client = slow_client();
  tick();
  EXPECT_TRUE(is_listed(client));
  EXPECT_EQ(client.received_all(), bulk(big_));
}

TEST_F(OutputLimitsTest, AClientThatNeverReadsIsNotReadForever) {
  Remote& client = connect();
  std::string requests;
  for (int i = 0; i < 30'000; ++i) requests += request_of({"GET", "big"});
  EXPECT_FALSE(client.send_all(requests));
  EXPECT_FALSE(client.is_closed());
  EXPECT_LT(client.client().output_buffer_bytes, 40 * kMebibyte);
  EXPECT_LT(client.client().query_buffer_bytes, kMebibyte);
  EXPECT_EQ(connect().call("PING"), "+PONG");
}

TEST_F(OutputLimitsTest, UnsentRepliesAreShown) {
  Remote& client = connect();
  EXPECT_EQ(client.call("PING"), "+PONG");
  EXPECT_EQ(figures(client)["rbs"], 0);
  client.send(request_of({"GET", "big"}));
  serve();
  auto shown = figures(client);
  EXPECT_GT(shown["omem"], 0);
  EXPECT_GE(shown["rbs"], shown["omem"]);
  EXPECT_GE(shown["rbp"], static_cast<int64_t>(big_.size()));
  EXPECT_GT(shown["tot-mem"], shown["omem"]);
  EXPECT_EQ(client.received_all(), bulk(big_));
  shown = figures(client);
  EXPECT_EQ(shown["omem"], 0);
  EXPECT_EQ(shown["rbs"], 0) << "memory is given back";
}

TEST_F(OutputLimitsTest, ThePeakIsThatOfTheLastSeconds) {
  Remote& client = slow_client();
  EXPECT_EQ(client.received_all(), bulk(big_));
  client.connection->on_tick(clock_.monotonic_us(), 0, true);
  EXPECT_EQ(client.call("PING"), "+PONG");
  EXPECT_LT(figures(client)["rbp"], 1000);
}

// Tests the memory of single clients after they are idle again, and the total memory of all
// clients.
class ClientSumsTest : public OutputLimitsTest {
 protected:
  void limit_sum(const std::string& bytes) {
    ASSERT_EQ(run({"CONFIG", "SET", "maxmemory-clients", bytes}), kOk);
  }
  std::string evicted() { return info("stats", "evicted_clients"); }
};

TEST_F(ClientSumsTest, MemoryOfABigCommandIsFreed) {
  Remote& client = connect();
  client.send_all(request_of({"SET", "k", std::string(5 * kMebibyte, 'x')}));
  EXPECT_EQ(client.replies(), "+OK");
  EXPECT_LT(client.client().memory_bytes(), kMebibyte);
  // The memory of the big command stays freed, even if the first part of another command arrives.
  client.send("*1\r\n$4\r\nPI");
  serve();
  auto shown = figures(client);
  EXPECT_EQ(shown["qbuf"], 2) << "headers are parsed already";
  EXPECT_LT(shown["qbuf-free"], static_cast<int64_t>(kMebibyte));
}

TEST_F(ClientSumsTest, IdleClientGivesFreeInputRoomBack) {
  constexpr int64_t kAnnounced = 1'000'000;
  Remote& client = connect();
  client.send("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000000\r\n");
  serve();
  client.send("begin");
  serve();
  ASSERT_GT(figures(client)["qbuf-free"], kAnnounced / 2);
  const int64_t now_us = client.client().last_interaction_us;
  client.connection->on_tick(now_us + 2 * core::kSecondUs, 0, false);
  EXPECT_GT(figures(client)["qbuf-free"], kAnnounced / 2) << "it is not idle yet";
  client.connection->on_tick(now_us + 3 * core::kSecondUs, 0, false);
  auto shown = figures(client);
  EXPECT_EQ(shown["qbuf"], 5);
  EXPECT_EQ(shown["qbuf-free"], 0);
  EXPECT_LT(client.client().memory_bytes(), 20'000U);
  client.send_all(std::string(kAnnounced - 5, 'x') + "\r\n");
  EXPECT_EQ(client.replies(), "+OK");
  EXPECT_EQ(run({"STRLEN", "k"}), ":1000000\r\n");
}

TEST_F(ClientSumsTest, ACommandOfManyWordsIsForgotten) {
  run({"BF.RESERVE", "f", "0.01", "1000000"});
  std::vector<std::string> words{"BF.MADD", "f"};
  for (int i = 0; i < 100'000; ++i) words.push_back(std::to_string(i));
  const std::string request = request_of(words);
  Remote& client = connect();
  EXPECT_EQ(client.call("PING"), "+PONG");
  const uint64_t before = client.client().memory_bytes();
  const uint64_t used_before = memory_.refresh();
  for (int i = 0; i < 4; ++i) {
    client.send_all(request);
    const auto replies = replies_in(client.received_all());
    ASSERT_EQ(replies.size(), 1U);
    EXPECT_EQ(replies[0].elements.size(), 100'000U);
  }
  EXPECT_EQ(client.call("PING"), "+PONG");
  EXPECT_EQ(client.client().memory_bytes(), before);
  EXPECT_LT(memory_.refresh(), used_before + 4 * kMebibyte);
}

TEST_F(ClientSumsTest, TheBiggestClientIsClosed) {
  limit_sum("8mb");
  Remote& small = connect();
  Remote& big = connect();
  EXPECT_FALSE(big.send_all("*2\r\n$3\r\nGET\r\n$90000000\r\n" + std::string(20 * kMebibyte, 'x')));
  EXPECT_TRUE(big.is_closed());
  EXPECT_EQ(small.call("PING"), "+PONG");
  EXPECT_EQ(evicted(), "1");
}

TEST_F(ClientSumsTest, EvictedClientsCloseAtOnce) {
  Remote& first = slow_client();
  Remote& second = slow_client();
  const uint64_t held = first.client().memory_bytes();
  ASSERT_GT(held, kMebibyte);
  limit_sum(std::to_string(held + second.client().memory_bytes() - 1));
  const uint64_t used_before = memory_.refresh();
  second.connection->on_tick(clock_.monotonic_us(), 0, true);
  EXPECT_EQ(evicted(), "1");
  EXPECT_LT(memory_.refresh(), used_before - kMebibyte) << "before the round ends";
  EXPECT_EQ(clients_.closing_bytes(), first.client().memory_bytes());
  thread_.connections.end_round();
  EXPECT_TRUE(first.is_closed());
  EXPECT_FALSE(second.is_closed());
}

TEST_F(ClientSumsTest, AQueueCounts) {
  limit_sum("4mb");
  Remote& queue = connect({"MULTI"});
  for (int i = 0; i < 40 && !queue.is_closed(); ++i) {
    queue.send_all(request_of({"GET", std::string(kMebibyte, 'k')}));
  }
  EXPECT_TRUE(queue.is_closed());
  EXPECT_EQ(evicted(), "1");
}

TEST_F(ClientSumsTest, SubscriptionsCount) {
  limit_sum("4mb");
  Remote& subscriber = connect();
  for (int i = 0; i < 80 && !subscriber.is_closed(); ++i) {
    subscriber.send_all(
        request_of({"SUBSCRIBE", std::string(kMebibyte / 4, 'c') + std::to_string(i)}));
    subscriber.received();
  }
  EXPECT_TRUE(subscriber.is_closed());
  EXPECT_EQ(evicted(), "1");
  EXPECT_EQ(run({"PUBSUB", "CHANNELS"}), "*0\r\n");
}

// Compares the reported memory with the used memory. Sanitized builds skip this comparison, because
// their allocator rounds sizes differently from jemalloc.
TEST_F(ClientSumsTest, SubscriptionsCountAsMuchAsTheyTake) {
  struct Case {
    std::string command;
    size_t name_size;
  };
  for (const Case& one : {Case{"SUBSCRIBE", 6}, Case{"PSUBSCRIBE", 17}, Case{"SSUBSCRIBE", 300}}) {
    Remote& subscriber = connect();
    const uint64_t reported_before = subscriber.client().memory_bytes();
    const uint64_t used_before = memory_.refresh();
    constexpr int kCount = 10'000;
    for (int first = 0; first < kCount; first += 100) {
      std::vector<std::string> words{one.command};
      for (int i = first; i < first + 100; ++i) {
        words.push_back(std::string(one.name_size - 6, 'c') + std::to_string(100'000 + i));
      }
      subscriber.send_all(request_of(words));
      subscriber.received_all();
    }
    const auto shown =
        static_cast<double>(subscriber.client().memory_bytes() - reported_before) / kCount;
    const auto used = static_cast<double>(memory_.refresh() - used_before) / kCount;
    if (!support::kIsSanitized) {
      EXPECT_NEAR(shown / used, 1, 0.05) << one.command << used;
    }
    EXPECT_LT(shown, 1000) << one.command;
  }
}

TEST_F(ClientSumsTest, ManySmallClientsAreEvictedAtOnce) {
  limit_sum("1mb");
  std::vector<Remote*> clients;
  for (int i = 0; i < 30; ++i) {
    clients.push_back(&connect());
    clients.back()->send("*2\r\n$3\r\nGET\r\n$50000\r\n" + std::string(40'000, 'x'));
    serve();
  }
  const auto open = std::ranges::count_if(clients, [](Remote* one) { return !one->is_closed(); });
  // Each client takes about 50 kB of the limit on all clients' memory.
  EXPECT_GE(open, 18);
  EXPECT_LE(open, 25);
  EXPECT_EQ(evicted(), std::to_string(30 - open));
}

TEST_F(ClientSumsTest, ALoweredLimitActsWithoutATick) {
  std::vector<Remote*> clients;
  for (int i = 0; i < 15; ++i) {
    clients.push_back(&connect());
    clients.back()->send("*2\r\n$3\r\nGET\r\n$100000\r\n" + std::string(90'000, 'x'));
    serve();
  }
  Remote& control = connect();
  EXPECT_EQ(control.call("CONFIG SET maxmemory-clients 1mb"), "+OK");
  serve();
  const auto open = std::ranges::count_if(clients, [](Remote* one) { return !one->is_closed(); });
  // Each client takes 100 kB in addition to its session, so ten clients fit into 1 MB.
  EXPECT_EQ(open, 10);
}

TEST_F(ClientSumsTest, ArgumentsThatWereQueuedAreCountedOnce) {
  limit_sum("4mb");
  Remote& client = connect({"MULTI"});
  const std::string request = request_of({"SET", "k", std::string(kMebibyte, 'v')});
  for (int i = 0; i < 2; ++i) {
    client.send_all(request);
    EXPECT_EQ(client.replies(), "+QUEUED");
  }
  EXPECT_EQ(client.call("EXEC"), "[+OK, +OK]");
  EXPECT_EQ(evicted(), "0");
}

TEST_F(ClientSumsTest, AQueueIsRefusedWhenMemoryIsShort) {
  memory_.set_limit(memory_.refresh() + 8 * kMebibyte);
  Remote& client = connect({"MULTI"});
  const std::string request = request_of({"GET", std::string(kMebibyte, 'k')});
  int queued = 0;
  std::string reply;
  for (; queued < 30; ++queued) {
    client.send_all(request);
    reply = client.replies();
    if (reply != "+QUEUED") break;
  }
  EXPECT_THAT(reply, StartsWith("-OOM"));
  EXPECT_GT(queued, 0);
  EXPECT_LT(queued, 10);
  for (int i = 0; i < 5; ++i) {
    client.send_all(request);
    client.replies();
  }
  // After the first rejected command, the transaction queues no further commands, so these must use
  // no memory.
  auto shown = figures(client);
  EXPECT_EQ(shown["multi"], queued);
  EXPECT_LT(shown["multi-mem"], static_cast<int64_t>(10 * kMebibyte));
  EXPECT_THAT(client.call("EXEC"), StartsWith("-EXECABORT"));
}

TEST_F(ClientSumsTest, AStrangersUnreadRepliesAreBounded) {
  ASSERT_EQ(run({"CONFIG", "SET", "requirepass", "secret"}), kOk);
  std::string hellos;
  for (int i = 0; i < 100'000; ++i) hellos += "HELLO\r\n";
  for (int i = 0; i < 5; ++i) {
    Remote& stranger = connect();
    EXPECT_FALSE(stranger.send_all(hellos));
    EXPECT_TRUE(stranger.is_closed());
    EXPECT_LT(stranger.client().output_buffer_peak_bytes, 200U << 10);
  }
}

TEST_F(ClientSumsTest, UnauthenticatedSizesAllocateNothing) {
  ASSERT_EQ(run({"CONFIG", "SET", "requirepass", "secret"}), kOk);
  const uint64_t before = memory_.refresh();
  for (int i = 0; i < 50; ++i) {
    Remote& stranger = connect();
    stranger.send(i % 2 == 0 ? "*10\r\n$16384\r\nx" : "*10\r\n$1\r\nx\r\n$16384\r\n");
  }
  serve();
  EXPECT_LT(memory_.refresh() - before, 50 * 40U << 10);
  EXPECT_THAT(info("clients", "connected_clients"), testing::Ne("0"));
}

// Tests the reply of CLIENT PAUSE, which the server sends only when no write is running any longer.
class PauseRepliesTest : public ClientsFixture {
 protected:
  PauseRepliesTest() {
    threads_.on_visit = [this](const Drain::Callback& on_all_passed) {
      end_writes_ = on_all_passed;
    };
  }
  ~PauseRepliesTest() override {
    threads_.on_visit = [](const auto&) {};
  }

  Drain::Callback end_writes_;
  Remote& client_on_socket_ = connect();
};

TEST_F(PauseRepliesTest, PipelinedCommandsWaitForThePauseReply) {
  run({"SET", "key", "value"});
  EXPECT_EQ(client_on_socket_.pipeline(
                {"CLIENT PAUSE 100000 WRITE", "PING", "CLIENT UNPAUSE", "GET key"}),
            "");
  ASSERT_TRUE(end_writes_);
  end_writes_();
  thread_.blocked_waker.wake();
  EXPECT_EQ(client_on_socket_.replies(), "+OK | +PONG | +OK | value");
}

TEST_F(PauseRepliesTest, AClientThatWantsNoRepliesGetsNone) {
  EXPECT_EQ(client_on_socket_.pipeline({"CLIENT REPLY SKIP", "CLIENT PAUSE 1 WRITE", "ECHO next"}),
            "");
  ASSERT_TRUE(end_writes_);
  end_writes_();
  thread_.blocked_waker.wake();
  EXPECT_EQ(client_on_socket_.replies(), "next");
}

TEST_F(PauseRepliesTest, NoKeyExpiresWhileWritesArePaused) {
  run({"SET", "key", "value", "PX", "200"});
  EXPECT_EQ(client_on_socket_.call("CLIENT PAUSE 100000 WRITE"), "");
  end_writes_();
  thread_.blocked_waker.wake();
  EXPECT_EQ(client_on_socket_.replies(), "+OK");
  advance_ms(201);
  for (int i = 0; i < 5; ++i) tick();
  EXPECT_EQ(client_on_socket_.call("GET key"), "nil");
  EXPECT_EQ(info("stats", "expired_keys"), "0");
  EXPECT_EQ(run({"DBSIZE"}), integer(1));
  EXPECT_EQ(client_on_socket_.call("CLIENT UNPAUSE"), "+OK");
  tick();
  EXPECT_EQ(info("stats", "expired_keys"), "1");
  EXPECT_EQ(run({"DBSIZE"}), integer(0));
}

}  // namespace
}  // namespace server::net
