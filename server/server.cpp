// SPDX-License-Identifier: MIT
#include "server/server.h"

#include <algorithm>
#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "core/keyspace/reclaimer.h"
#include "persistence/files/file_system.h"
#include "persistence/journal.h"
#include "server/admin/admin_server.h"
#include "server/background_tasks.h"
#include "server/base/config/directives.h"
#include "server/base/log/log.h"
#include "server/base/metrics/gauges.h"
#include "server/base/metrics/rate_sampler.h"
#include "server/base/metrics/statistics.h"
#include "server/base/process/crash_log.h"
#include "server/base/process/descriptor_limit.h"
#include "server/base/process/memory_monitor.h"
#include "server/base/process/process_facts.h"
#include "server/base/process/server_state.h"
#include "server/base/process/start_thread.h"
#include "server/base/process/tick_clock.h"
#include "server/base/process/watchdog.h"
#include "server/base/transport/tls.h"
#include "server/clustering.h"
#include "server/commands/families.h"
#include "server/commands/services.h"
#include "server/dispatch/command_replayer.h"
#include "server/dispatch/drain.h"
#include "server/dispatch/pause_gate.h"
#include "server/dispatch/permissions.h"
#include "server/dispatch/registry.h"
#include "server/durability/durability.h"
#include "server/durability/durability_parts.h"
#include "server/durability/loading/data_loader.h"
#include "server/durability/log/append_log.h"
#include "server/durability/log/log_listener.h"
#include "server/durability/saves/save_slot.h"
#include "server/durability/saves/saves.h"
#include "server/insync_acks.h"
#include "server/net/connection.h"
#include "server/net/io_threads.h"
#include "server/net/listener.h"
#include "server/net/message_delivery.h"
#include "server/net/periodic.h"
#include "server/page_collapser.h"
#include "server/replication/leader/leader.h"
#include "server/replication/replica_controller.h"
#include "server/replication/shutdown.h"
#include "server/replication/stream/backlog.h"
#include "server/replication/stream/replication.h"
#include "server/session/acl/acl_options.h"
#include "server/session/acl/command_table.h"
#include "server/session/acl/users.h"
#include "server/session/clients.h"
#include "server/session/observer.h"
#include "server/session/pubsub/key_events.h"
#include "server/session/pubsub/monitor_feed.h"
#include "server/session/pubsub/tracking.h"
#include "server/startup_banner.h"

namespace server {
namespace {

uint64_t random_hash_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

// Builds the registry. An error names the first rename-command line that is invalid by itself or
// conflicts with an earlier line.
core::Result<std::unique_ptr<Registry>> make_registry(const OtherDirectives& directives) {
  const std::span<const NamedValue> renames = directives.renamed_commands;
  auto registry = Registry::create(command_families(), renames);
  if (registry) return registry;
  size_t sound = 0;
  while (sound < renames.size() && Registry::create(command_families(), renames.first(sound + 1))) {
    ++sound;
  }
  if (sound == renames.size()) return registry;
  return fatal_config_error(directives.rename_lines[sound], registry.error().message);
}

size_t thread_count(const Config& config) {
  return static_cast<size_t>(config.io_thread_count());
}

}  // namespace

// ForkEvents records each fork as a LATENCY event.
class ForkEvents {
 public:
  void record(const SaveSlot& slot, Observer& observer) {
    const uint64_t forks = slot.fork_count();
    if (forks == seen_) return;
    seen_ = forks;
    observer.record_event("fork", slot.last_fork_us() / 1000);
  }

 private:
  uint64_t seen_ = 0;
};

// Access: the command registry, and the users with their permissions.
struct Access {
  explicit Access(std::unique_ptr<Registry> commands)
      : registry(std::move(commands)), users(acl_table_of(*registry)) {}
  const std::unique_ptr<Registry> registry;
  acl::Users users;
};
// The state of the process: whether it is stopping, its exit code, and the thread that loads the
// data.
struct Run {
  std::atomic<bool> stopping{false};
  std::atomic<int> exit_code{EXIT_SUCCESS};
  std::thread recovery;
};
// Memory: the monitor of the process' memory, and the thread that moves filters to huge pages.
struct Memory {
  explicit Memory(const core::Clock& clock) : collapser(clock) {}
  MemoryMonitor monitor;
  PageCollapser collapser;
};
// Members are listed in the order of construction, and destroyed in reverse order.
struct Server::Parts final : AckListener,
                             CommandThreads,
                             LogListener,
                             MessageWaker,
                             Shutdown::Process {
  Parts(Server& owner, Config& config, std::unique_ptr<Registry> commands)
      : server(owner),
        access(std::move(commands)),
        keyspace(static_cast<unsigned>(config.database_count()), random_hash_seed()),
        data{config, clock, keyspace, journal, persistence::posix_file_system(), state},
        pause(*this),
        durability({data, {}, &pause, this}),
        replication({data, durability}),
        leader({data, durability}, replication, pause, *this),
        tls(config),
        replica_controller({{data, durability}, replication, clients, &tls}, leader, pause),
        shutdown({{data, durability}, replication, leader, pause, *this}),
        pubsub(thread_count(config), *this),
        key_events(pubsub, state.listeners),
        tracking(pubsub, state, thread_count(config)),
        statistics(thread_count(config), access.registry->size()),
        observer(config, clock, ticks, thread_count(config),
                 [this](size_t thread_index) { wake_for_monitors(thread_index); }),
        facts{random_id(), own_executable(), clock.wall_ms(), thread_count(config),
              config.file_path()},
        clustering(
            {{config, keyspace, state, replication, leader, replica_controller, pause, *this},
             facts,
             &tls}),
        threads(thread_count(config), durability.append_log),
        services{{config, clock, keyspace, reclaimer, journal, *access.registry, pubsub, key_events,
                  tracking, statistics, memory.monitor, pause, state, replication, observer,
                  access.users, clustering.state(), services},
                 ticks,
                 clients,
                 durability,
                 replication,
                 leader,
                 replica_controller,
                 shutdown,
                 gauges,
                 facts},
        listener(threads, services, tls),
        admin(
            services, tls, [this](std::function<void()> answer) { visit(std::move(answer)); },
            [this](admin::WriteCaller::Task task) { run_on_first_thread(std::move(task)); }),
        rates(statistics, gauges),
        background_tasks(
            services, replication.own_expiries(),
            [this](std::function<void()> task) { threads.at(0).loop.post(std::move(task)); },
            random_hash_seed()),
        periodic(threads, config, clock, [this] { tick(); }),
        signals(threads.at(0).context, SIGTERM, SIGINT) {}

  void on_ack() override;
  void visit(Drain::Callback on_all_passed) override;
  void run_on_first_thread(admin::WriteCaller::Task task);
  void wake_held_back() override;
  void on_log_progress() override;
  void on_log_event(std::string_view kind, int64_t duration_us) override;
  [[noreturn]] void on_log_fatal(const std::string& cause) override;
  void wake_for_messages(size_t thread_index) override;
  void wake_for_monitors(size_t thread_index);
  // Called several times a second, on I/O thread 0.
  void tick();
  void end() override { server.request_stop(); }

  Server& server;
  core::SystemClock clock;
  TickClock ticks;
  Access access;
  core::keyspace::Reclaimer reclaimer;
  core::keyspace::Keyspace keyspace;
  persistence::Journal journal;
  ServerState state;
  const DataParts data;
  PauseGate pause;
  Durability durability;
  Replication replication;
  Leader leader;
  Tls tls;
  ReplicaController replica_controller;
  Shutdown shutdown;
  Clients clients;
  PubSub pubsub;
  KeyEvents key_events;
  Tracking tracking;
  Statistics statistics;
  const CrashTrails crash_trails{statistics};
  Observer observer;
  Memory memory{clock};
  Gauges gauges;
  ProcessFacts facts;
  Clustering clustering;
  net::IoThreads threads;
  Watchdog watchdog{threads.count(), [this](size_t index, std::function<void()> answer) {
                      threads.at(index).loop.post(std::move(answer));
                    }};
  Services services;
  net::Listener listener;
  admin::AdminServer admin;
  RateSampler rates;
  BackgroundTasks background_tasks;
  net::Periodic periodic;
  boost::asio::signal_set signals;
  ForkEvents forks;
  Run run;
};

namespace {

// Releases the replies to writes that all in-sync members of the shard have acknowledged.
void release_acknowledged(Clustering& clustering, LogListener& threads) {
  InsyncAcks* const acks = clustering.acks();
  if (acks == nullptr) return;
  acks->refresh();
  threads.on_log_progress();
}

}  // namespace

void Server::Parts::on_ack() {
  release_acknowledged(clustering, *this);
  for (size_t i = 0; i < threads.count(); ++i) threads.at(i).blocked_waker.wake();
  if (replica_controller.is_failing_over()) {
    threads.at(0).loop.post([this] { replica_controller.drive_failover(); });
  }
  if (shutdown.state() == Shutdown::State::kWaits) {
    threads.at(0).loop.post([this] { shutdown.look(); });
  }
}

void Server::Parts::visit(Drain::Callback on_all_passed) {
  const auto left = std::make_shared<std::atomic<size_t>>(threads.count());
  threads.post_to_each([left, on_all_passed = std::move(on_all_passed)](net::IoThread&) {
    if (--*left == 0) on_all_passed();
  });
}

void Server::Parts::run_on_first_thread(admin::WriteCaller::Task task) {
  net::IoThread& thread = threads.at(0);
  thread.loop.post([&thread, &counters = statistics.thread(0), task = std::move(task)] {
    task(thread.gate, counters);
  });
}

void Server::Parts::wake_held_back() {
  release_acknowledged(clustering, *this);
  threads.post_to_each([](net::IoThread& thread) {
    thread.connections.for_each([](net::Connection& connection) { connection.wake(); });
  });
}

void Server::Parts::on_log_progress() {
  for (size_t i = 0; i < threads.count(); ++i) threads.at(i).log_waker.wake();
}

void Server::Parts::on_log_event(std::string_view kind, int64_t duration_us) {
  observer.record_event(kind, duration_us / 1000);
}

void Server::Parts::on_log_fatal(const std::string& cause) {
  log_error(
      "The append log fails and appendfsync is always: ending before anything is answered "
      "that is not on the disk: {}",
      cause);
  flush_log();
  std::_Exit(EXIT_FAILURE);
}

void Server::Parts::wake_for_messages(size_t thread_index) {
  net::IoThread& thread = threads.at(thread_index);
  thread.loop.post([this, &thread] { net::deliver_messages(thread, pubsub, tracking); });
}

void Server::Parts::wake_for_monitors(size_t thread_index) {
  net::IoThread& thread = threads.at(thread_index);
  thread.loop.post([this, &thread] { net::deliver_monitored(thread, observer.monitors()); });
}

void Server::Parts::tick() {
  memory.monitor.tick();
  if (state.is_cron_paused) return;
  listener.clients().end_late_handshakes();
  replica_controller.drive_failover();
  shutdown.look();
  const auto limit_bytes = static_cast<uint64_t>(data.config.client_memory_limit_bytes());
  if (limit_bytes > 0) clients.evict_over(limit_bytes);
  background_tasks.tick();
  forks.record(durability.saves.slot, observer);
  rates.sample(clock.monotonic_us());
  observer.update();
  server.supervisor_.tick(clock.monotonic_us(), durability.loaded_share());
}

Server::Server(Config& config, std::function<void()> on_ready)
    : config_(config),
      on_ready_(std::move(on_ready)),
      supervisor_(Supervised{config.integer(OptionId::kSupervised)}) {}
Server::~Server() = default;

core::Result<> Server::start() {
  raise_descriptor_limit(config_);
  auto registry = make_registry(config_.other_directives());
  if (!registry) return registry.error();
  parts_ = std::make_unique<Parts>(*this, config_, std::move(*registry));
  Parts& parts = *parts_;
  if (auto prepared = parts.durability.prepare(); !prepared) return prepared;
  if (auto prepared = parts.clustering.prepare(parts.services.member); !prepared) return prepared;
  parts.threads.set_permit(parts.clustering.permit());
  parts.threads.set_acks(parts.clustering.acks());
  parts.keyspace.set_reclaimer(&parts.reclaimer);
  parts.memory.monitor.set_reclaimer(&parts.reclaimer);
  parts.memory.monitor.set_exempt([&parts] {
    return parts.replication.backlog().replica_bytes() + parts.clients.closing_bytes() +
           parts.durability.log_memory_bytes();
  });
  config_.follow(OptionId::kTrackingTableMaxKeys, [&parts, this] {
    parts.tracking.set_limit(
        static_cast<uint64_t>(config_.integer(OptionId::kTrackingTableMaxKeys)));
    parts.tracking.trim(BackgroundTasks::kTrimmedKeysMax);
  });
  config_.follow(OptionId::kNotifyKeyspaceEvents, [&parts, this] {
    parts.key_events.choose(
        static_cast<uint32_t>(config_.integer(OptionId::kNotifyKeyspaceEvents)));
  });
  config_.follow(OptionId::kMaxMemory, [&parts, this] {
    parts.memory.monitor.set_limit(static_cast<uint64_t>(config_.max_memory_bytes()));
  });
  config_.follow(OptionId::kFilterHugePages, [&parts, this] {
    const HugePageMode mode{config_.integer(OptionId::kFilterHugePages)};
    parts.memory.collapser.set_enabled(mode == HugePageMode::kAuto);
  });
  // In a cluster, cluster-node-timeout must not change, because the node derives from it how long
  // its permit to serve writes is valid.
  if (ClusterMode{config_.integer(OptionId::kClusterEnabled)} != ClusterMode::kYes) {
    config_.follow(OptionId::kClusterNodeTimeout, [] {});
  }
  config_.follow(OptionId::kLogLevel,
                 [this] { set_log_level(LogLevel{config_.integer(OptionId::kLogLevel)}); });
  config_.follow(OptionId::kWatchdogPeriod, [&parts, this] {
    const bool is_allowed =
        DebugCommand{config_.integer(OptionId::kEnableDebugCommand)} != DebugCommand::kNo;
    const int64_t period_ms = is_allowed ? config_.integer(OptionId::kWatchdogPeriod) : 0;
    parts.watchdog.set_period(std::chrono::milliseconds(period_ms));
  });
  config_.follow({OptionId::kSlowlogLogSlowerThan, OptionId::kLatencyMonitorThreshold},
                 [&parts] { parts.observer.update(); });
  // The option hooks of TLS are registered before those of the listener, because a new TLS port
  // needs the certificates.
  if (auto followed = parts.tls.follow(); !followed) return followed;
  if (auto prepared = acl::prepare_users(parts.access.users, config_); !prepared) return prepared;
  if (auto opened = parts.listener.open(); !opened) return opened;
  return parts.admin.open();
}

void Server::recover() {
  Parts& parts = *parts_;
  const auto make_replayer = [&parts](CommandOrigin origin) -> std::unique_ptr<Replayer> {
    return std::make_unique<CommandReplayer>(parts.services, origin);
  };
  if (auto recovered = parts.durability.recover(make_replayer); !recovered) {
    if (!parts.run.stopping) {
      log_error("Can't load the data, the server ends and changes no data: {}",
                recovered.error().message);
      parts.run.exit_code = EXIT_FAILURE;
    }
    return request_stop();
  }
  if (auto fits = parts.clustering.check_data(); !fits) {
    log_error("{}", fits.error().message);
    parts.run.exit_code = EXIT_FAILURE;
    return request_stop();
  }
  if (const auto& position = parts.durability.loader.recovered_position()) {
    parts.replication.restore(*position);
  }
  parts.durability.start();
  parts.leader.start();
  parts.replica_controller.start([&parts](CommandOrigin origin) -> std::unique_ptr<Replayer> {
    // The value of the option `replicaof` is "host port".
    std::string leader = parts.services.config.text(OptionId::kReplicaOf);
    std::ranges::replace(leader, ' ', ':');
    return std::make_unique<CommandReplayer>(parts.services, origin, &parts.statistics.stream(),
                                             std::move(leader));
  });
  parts.services.state.ready_us = parts.services.clock.monotonic_us();
  parts.durability.availability.end(Availability::kLoading);
  parts.clustering.start();
  log_notice("{}", startup_banner(config_, parts.durability.loader.figures(), parts.keyspace));
  supervisor_.ready("Ready to accept connections");
  on_ready_();
}

int Server::run() {
  Parts& parts = *parts_;
  await_signal();
  parts.listener.start();
  parts.admin.start();
  parts.periodic.start();
  parts.run.recovery = start_thread("recovery", [this] { recover(); });
  parts.threads.run();
  parts.watchdog.stop();
  parts.memory.collapser.stop();
  parts.run.recovery.join();
  parts.admin.stop();
  parts.clustering.stop();
  parts.replica_controller.stop();
  parts.leader.stop();
  if (auto finished = parts.durability.finish(); !finished) {
    log_error("{}", finished.error().message);
    parts.run.exit_code = EXIT_FAILURE;
  }
  if (parts.run.exit_code == EXIT_SUCCESS) log_notice("Bloomery is now ready to exit, bye bye...");
  return parts.run.exit_code;
}

void Server::await_signal() {
  parts_->signals.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    log_notice("Received {}, shutting down", signal == SIGINT ? "SIGINT" : "SIGTERM");
    on_signal(signal);
  });
}

// A signal has the same effect as SHUTDOWN with the options that shutdown-on-sigterm or
// shutdown-on-sigint lists. A second signal during the shutdown ends the wait for replicas.
void Server::on_signal(int signal) {
  await_signal();
  auto done = [this, signal] {
    parts_->threads.at(0).loop.post([this, signal] { shut_down(signal); });
  };
  if (parts_->shutdown.attempt() != 0) return done();
  parts_->clustering.retire(std::move(done));
}

void Server::shut_down(int signal) {
  if (parts_->run.stopping) return;
  const OptionId option =
      signal == SIGINT ? OptionId::kShutdownOnSigint : OptionId::kShutdownOnSigterm;
  Shutdown::Request request = parts_->shutdown.signal_request(config_.integer(option));
  if (parts_->shutdown.attempt() != 0) request.waits_for_replicas = false;
  parts_->shutdown.begin(request);
}

void Server::request_stop() {
  // The task runs on thread 0, to which the listener and the timers belong.
  parts_->threads.at(0).loop.post([this] {
    Parts& parts = *parts_;
    if (parts.run.stopping) return;
    parts.run.stopping = true;
    supervisor_.stopping();
    parts.durability.loader.cancel();
    parts.listener.close();
    parts.clustering.close_list([this] { parts_->threads.at(0).loop.post([this] { stop(); }); });
  });
}

void Server::stop() {
  parts_->periodic.stop();
  parts_->signals.cancel();
  parts_->threads.stop();
}

}  // namespace server
