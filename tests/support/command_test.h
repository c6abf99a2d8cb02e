// SPDX-License-Identifier: MIT
//
// CommandTest: a fixture that speaks commands to handlers, without a socket.
//
//   EXPECT_EQ(run({"SET", "a", "1"}), "+OK\r\n");
//
// Time stands still until advance_ms() moves it. Each test has a keyspace of its own; `other()`
// is a second session on the same one.
// Thread safety: one thread.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/reclaimer.h"
#include "persistence/journal.h"
#include "server/acl/access_log.h"
#include "server/acl/command_table.h"
#include "server/acl/user.h"
#include "server/acl/users.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/view.h"
#include "server/commands/services.h"
#include "server/config/config.h"
#include "server/dispatch/context.h"
#include "server/dispatch/dispatcher.h"
#include "server/dispatch/pause_gate.h"
#include "server/dispatch/permissions.h"
#include "server/dispatch/registry.h"
#include "server/durability/durability.h"
#include "server/durability/durability_parts.h"
#include "server/process/gauges.h"
#include "server/process/memory_monitor.h"
#include "server/process/process_facts.h"
#include "server/process/server_state.h"
#include "server/process/statistics.h"
#include "server/process/tick_clock.h"
#include "server/pubsub/key_events.h"
#include "server/pubsub/tracking.h"
#include "server/replication/leader/leader.h"
#include "server/replication/roles/follower.h"
#include "server/replication/roles/shutdown.h"
#include "server/replication/stream/replication.h"
#include "server/session/awaited_reply.h"
#include "server/session/clients.h"
#include "server/session/observer.h"
#include "tests/support/test_threads.h"
#include "tests/support/virtual_disk.h"

namespace server {

class ManualClock final : public core::Clock {
 public:
  int64_t wall_ms() const override { return now_ms; }
  int64_t monotonic_us() const override { return now_ms * 1000; }
  std::atomic<int64_t> now_ms{1'700'000'000'000};  // a leader's thread looks at it too
};

// What the process around the parts is told.
struct Surroundings final : AckListener, Shutdown::Process {
  void on_ack() override {}
  void end() override { ++ends; }
  int ends = 0;
};

class CommandTest : public ::testing::Test {
 protected:
  // A session with its dispatcher.
  struct Client {
    explicit Client(CommandTest& test)
        : session(std::make_shared<Session>(test.clients_.next_id())),
          dispatcher(test.services_, test.statistics_.thread(0), *session),
          owner(test) {
      session->authenticated = true;
      session->created_ms = test.clock_.now_ms;
      session->last_interaction_ms = test.clock_.now_ms.load();
      session->address = "127.0.0.1:1";
      session->local_address = "127.0.0.1:2";
      test.clients_.add(session);
    }
    ~Client() {
      dispatcher.end_session();
      owner.clients_.remove(session->id);
    }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    // The reply's bytes.
    std::string run(const std::vector<std::string>& command) {
      const std::vector<std::string_view> args(command.begin(), command.end());
      protocol::OutputBuffer replies;
      last_outcome = dispatcher.execute(args, owner.clock_.now_ms, replies);
      return std::string(replies.view());
    }

    // As a connection does with the commands that it has read at once.
    std::vector<std::string> run_pipeline(
        const std::vector<std::vector<std::string_view>>& commands) {
      std::vector<Request> requests;
      for (const auto& args : commands) requests.push_back({.args = args});
      dispatcher.look_ahead(requests, owner.clock_.now_ms);
      std::vector<std::string> answers;
      for (const Request& request : requests) {
        protocol::OutputBuffer replies;
        last_outcome = dispatcher.execute(request, owner.clock_.now_ms, replies);
        answers.emplace_back(replies.view());
      }
      return answers;
    }

    // The reply that the client waits for; empty while there is none.
    std::string try_answer() {
      protocol::OutputBuffer replies;
      protocol::ReplyWriter reply(replies, session->resp);
      const bool is_answered = session->awaited->try_answer(reply, false);
      EXPECT_EQ(is_answered, !replies.empty());
      return std::string(replies.view());
    }

    std::shared_ptr<Session> session;
    Dispatcher dispatcher;
    CommandTest& owner;
    Outcome last_outcome = Outcome::kDone;
  };

  CommandTest()
      : registry_(std::move(*Registry::create({}))),
        statistics_(1, registry_->size()),
        services_{{config_, clock_, keyspace_, reclaimer_, journal_, *registry_, pubsub_,
                   key_events_, tracking_, statistics_, memory_, pause_, state_, replication_,
                   observer_, users_, cluster_, services_},
                  ticks_,
                  clients_,
                  durability_,
                  replication_,
                  leader_,
                  follower_,
                  shutdown_,
                  gauges_,
                  facts_} {
    config_.follow({OptionId::kSlowlogLogSlowerThan, OptionId::kLatencyMonitorThreshold},
                   [this] { observer_.update(); });
    config_.follow(OptionId::kRequirePass,
                   [this] { users_.set_default_password(config_.text(OptionId::kRequirePass)); });
    client_ = std::make_unique<Client>(*this);
    other_ = std::make_unique<Client>(*this);
  }

  std::string run(const std::vector<std::string>& command) { return client_->run(command); }
  std::vector<std::string> run_pipeline(
      const std::vector<std::vector<std::string_view>>& commands) {
    return client_->run_pipeline(commands);
  }
  std::string run_as_other(const std::vector<std::string>& command) { return other_->run(command); }
  void advance_ms(int64_t ms) { clock_.now_ms += ms; }

  // What a reply looks like, to keep expectations short.
  static std::string bulk(std::string_view text) {
    return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
  }
  static std::string integer(int64_t value) { return ":" + std::to_string(value) + "\r\n"; }
  static std::string error(std::string_view text) { return "-" + std::string(text) + "\r\n"; }
  static std::string array(const std::vector<std::string>& replies) {
    std::string text = "*" + std::to_string(replies.size()) + "\r\n";
    for (const std::string& reply : replies) text += reply;
    return text;
  }
  static inline const std::string kOk = "+OK\r\n";
  static inline const std::string kNull = "$-1\r\n";

  Config config_;
  ManualClock clock_;
  TickClock ticks_;
  core::keyspace::Reclaimer reclaimer_;
  core::keyspace::Keyspace keyspace_{16, 1};
  persistence::Journal journal_;
  std::unique_ptr<Registry> registry_;
  acl::Users users_{acl_table_of(*registry_)};
  cluster::ClusterState cluster_{1};
  Clients clients_;
  TestThreads threads_;
  PubSub pubsub_{1, threads_};
  Statistics statistics_;
  MemoryMonitor memory_;
  PauseGate pause_{threads_};
  Gauges gauges_;
  ProcessFacts facts_{std::string(40, 'a'), "bloomery-server", 1'700'000'000'000, 1, ""};
  ServerState state_;
  KeyEvents key_events_{pubsub_, state_.listeners};
  Tracking tracking_{pubsub_, state_, 1};
  Observer observer_{config_, clock_, ticks_, 1,
                     [this](size_t thread_index) { threads_.on_monitored(thread_index); }};
  virtual_disk::VirtualDisk disk_;
  std::atomic<uint64_t> free_bytes_{uint64_t{1} << 40};
  Durability durability_{{{config_, clock_, keyspace_, journal_, disk_, state_},
                          SaveChild::start,
                          [this] { return free_bytes_.load(); }}};
  Replication replication_{{{config_, clock_, keyspace_, journal_, disk_, state_}, durability_}};
  Surroundings surroundings_;
  Leader leader_{{{config_, clock_, keyspace_, journal_, disk_, state_}, durability_},
                 replication_,
                 pause_,
                 surroundings_};
  Follower follower_{
      {config_, clock_, durability_, replication_, disk_, clients_}, keyspace_, leader_, pause_};
  Shutdown shutdown_{{config_, clock_, durability_, replication_, leader_, pause_, surroundings_}};
  int& shutdowns_requested_ = surroundings_.ends;
  Services services_;
  std::unique_ptr<Client> client_;
  std::unique_ptr<Client> other_;
};

}  // namespace server
