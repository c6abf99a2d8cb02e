// SPDX-License-Identifier: MIT
#include "tests/support/command_test.h"

#include <atomic>

#include "protocol/output_buffer.h"
#include "protocol/reply_writer.h"
#include "server/commands/families.h"
#include "server/dispatch/context.h"
#include "tests/support/server_parts.h"

namespace server {

struct CommandTest::Server {
  explicit Server(const Renames& renames);

  Config config;
  ManualClock clock;
  TickClock ticks;
  // This Reclaimer has no thread of its own, so values are freed on the caller's thread.
  core::keyspace::Reclaimer reclaimer{0};
  core::keyspace::Keyspace keyspace{16, 1};
  persistence::Journal journal;
  std::unique_ptr<Registry> registry;
  acl::Users users{acl_table_of(*registry)};
  cluster::ClusterState cluster{1};
  Clients clients;
  TestThreads threads;
  PubSub pubsub{1, threads};
  Statistics statistics{1, registry->size()};
  MemoryMonitor memory;
  PauseGate pause{threads};
  Gauges gauges;
  ProcessFacts facts{std::string(40, 'a'), "bloomery-server", 1'700'000'000'000, 1, ""};
  ServerState state;
  KeyEvents key_events{pubsub, state.listeners};
  Tracking tracking{pubsub, state, 1};
  Observer observer{config, clock, ticks, 1,
                    [this](size_t thread_index) { threads.on_monitored(thread_index); }};
  virtual_disk::VirtualDisk disk;
  std::atomic<uint64_t> free_bytes{uint64_t{1} << 40};
  Durability durability{{{config, clock, keyspace, journal, disk, state}, SaveChild::start, [this] {
                           return free_bytes.load();
                         }}};
  Replication replication{{{config, clock, keyspace, journal, disk, state}, durability}};
  Surroundings surroundings;
  Leader leader{{{config, clock, keyspace, journal, disk, state}, durability},
                replication,
                pause,
                surroundings};
  ReplicaController replica_controller{
      {{{config, clock, keyspace, journal, disk, state}, durability}, replication, clients},
      leader,
      pause};
  Shutdown shutdown{{{{config, clock, keyspace, journal, disk, state}, durability},
                     replication,
                     leader,
                     pause,
                     surroundings}};
  Services services;
};

CommandTest::Server::Server(const Renames& renames)
    : registry{*Registry::create(command_families(), renames)},
      services{
          {config, clock, keyspace, reclaimer, journal, *registry, pubsub, key_events, tracking,
           statistics, memory, pause, state, replication, observer, users, cluster, services},
          ticks,
          clients,
          durability,
          replication,
          leader,
          replica_controller,
          shutdown,
          gauges,
          facts} {
  config.follow({OptionId::kSlowlogLogSlowerThan, OptionId::kLatencyMonitorThreshold},
                [this] { observer.update(); });
  config.follow(OptionId::kRequirePass,
                [this] { users.set_default_password(config.text(OptionId::kRequirePass)); });
  // Debug builds check that handlers journal their changes (server/dispatch/commit_check.h).
  journal.set_active(true);
}

CommandTest::TestClient::TestClient(CommandTest& test)
    : session(std::make_unique<Session>(test.clients_.next_id())),
      dispatcher(test.services_, test.statistics_.thread(0), *session),
      owner(test) {
  session->authenticated = true;
  session->client->created_us = test.clock_.monotonic_us();
  session->client->last_interaction_us = session->client->created_us;
  session->client->address = "127.0.0.1:1";
  session->client->local_address = "127.0.0.1:2";
  test.clients_.add(session->client);
}

CommandTest::TestClient::~TestClient() {
  dispatcher.end_session();
  owner.clients_.remove(session->client->id);
}

std::string CommandTest::TestClient::run(const std::vector<std::string>& command) {
  const std::vector<std::string_view> args(command.begin(), command.end());
  protocol::OutputBuffer replies;
  last_result = dispatcher.execute(args, owner.clock_.now_ms, replies);
  return std::string(replies.view());
}

std::vector<std::string> CommandTest::TestClient::run_pipeline(
    const std::vector<std::vector<std::string_view>>& commands) {
  std::vector<Request> requests;
  for (const auto& args : commands) requests.push_back({.args = args});
  dispatcher.look_ahead(requests, owner.clock_.now_ms);
  std::vector<std::string> answers;
  for (const Request& request : requests) {
    protocol::OutputBuffer replies;
    last_result = dispatcher.execute(request, owner.clock_.now_ms, replies);
    answers.emplace_back(replies.view());
  }
  return answers;
}

std::string CommandTest::TestClient::try_answer() {
  protocol::OutputBuffer replies;
  protocol::ReplyWriter reply(replies, session->client->resp);
  const bool is_answered = last_result.pending.reply->try_answer(reply, false);
  EXPECT_EQ(is_answered, !replies.empty());
  return std::string(replies.view());
}

CommandTest::CommandTest() : CommandTest(Renames{}) {}

CommandTest::CommandTest(const Renames& renames)
    : server_(std::make_unique<Server>(renames)),
      config_(server_->config),
      clock_(server_->clock),
      keyspace_(server_->keyspace),
      reclaimer_(server_->reclaimer),
      journal_(server_->journal),
      registry_(server_->registry.get()),
      users_(server_->users),
      cluster_(server_->cluster),
      clients_(server_->clients),
      threads_(server_->threads),
      pubsub_(server_->pubsub),
      statistics_(server_->statistics),
      memory_(server_->memory),
      pause_(server_->pause),
      gauges_(server_->gauges),
      facts_(server_->facts),
      state_(server_->state),
      key_events_(server_->key_events),
      tracking_(server_->tracking),
      observer_(server_->observer),
      disk_(server_->disk),
      free_bytes_(server_->free_bytes),
      durability_(server_->durability),
      replication_(server_->replication),
      leader_(server_->leader),
      replica_controller_(server_->replica_controller),
      shutdown_(server_->shutdown),
      shutdowns_requested_(server_->surroundings.ends),
      services_(server_->services),
      client_(std::make_unique<TestClient>(*this)),
      other_(std::make_unique<TestClient>(*this)) {}

CommandTest::~CommandTest() = default;

const std::string_view CommandTest::kWrongType = server::kWrongType;
const std::string_view CommandTest::kSyntaxError = protocol::kSyntaxError;
const std::string_view CommandTest::kNotAnInteger = protocol::kNotAnInteger;
const std::string_view CommandTest::kNotAFloat = protocol::kNotAFloat;

std::string CommandTest::run(const std::vector<std::string>& command) {
  return client_->run(command);
}

std::vector<std::string> CommandTest::run_pipeline(
    const std::vector<std::vector<std::string_view>>& commands) {
  return client_->run_pipeline(commands);
}

std::string CommandTest::run_as_other(const std::vector<std::string>& command) {
  return other_->run(command);
}

std::string CommandTest::bulk(std::string_view text) {
  return "$" + std::to_string(text.size()) + "\r\n" + std::string(text) + "\r\n";
}

std::string CommandTest::integer(int64_t value) {
  return ":" + std::to_string(value) + "\r\n";
}

std::string CommandTest::error(std::string_view text) {
  return "-" + std::string(text) + "\r\n";
}

std::string CommandTest::array(const std::vector<std::string>& replies) {
  std::string text = "*" + std::to_string(replies.size()) + "\r\n";
  for (const std::string& reply : replies) text += reply;
  return text;
}

}  // namespace server
