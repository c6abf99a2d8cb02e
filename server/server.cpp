// SPDX-License-Identifier: MIT
#include "server/server.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <filesystem>
#include <random>

#include "server/commands/services.h"
#include "server/log.h"
#include "server/net/connection.h"
#include "server/net/io_threads.h"
#include "server/net/listener.h"
#include "server/net/periodic.h"

namespace server {
namespace {

uint64_t random_seed() {
  std::random_device device;
  return (uint64_t{device()} << 32) | device();
}

std::string random_run_id() {
  constexpr int kDigits = 40;
  std::mt19937_64 random(random_seed());
  std::string id;
  for (int i = 0; i < kDigits; ++i) id += "0123456789abcdef"[random() % 16];
  return id;
}

// Lets the process open a descriptor per client; lowers maxclients when the system does not.
void raise_descriptor_limit(Config& config) {
  constexpr rlim_t kReserved = 32;
  const rlim_t wanted = static_cast<rlim_t>(config.max_clients()) + kReserved;
  struct rlimit limit {};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  struct rlimit raised = limit;
  raised.rlim_cur = wanted;
  raised.rlim_max = std::max(limit.rlim_max, wanted);
  if (setrlimit(RLIMIT_NOFILE, &raised) == 0) return;
  raised.rlim_cur = raised.rlim_max = limit.rlim_max;
  (void)setrlimit(RLIMIT_NOFILE, &raised);
  const rlim_t clients = raised.rlim_cur > kReserved ? raised.rlim_cur - kReserved : 1;
  if (clients >= static_cast<rlim_t>(config.max_clients())) return;
  log_warning("maxclients has been reduced to {}: the limit of open files is {}", clients,
              raised.rlim_cur);
  const NamedValue reduced{"maxclients", std::to_string(clients)};
  if (auto set = config.set({&reduced, 1}); !set) log_warning("{}", set.error().message);
}

size_t thread_count(const Config& config) {
  return static_cast<size_t>(config.io_thread_count());
}

std::string executable_path() {
  std::error_code ignored;
  return std::filesystem::read_symlink("/proc/self/exe", ignored).string();
}

}  // namespace

// In the order of construction; destroyed in reverse.
struct Server::Parts {
  Parts(Config& config, std::unique_ptr<Registry> commands)
      : registry(std::move(commands)),
        keyspace(static_cast<unsigned>(config.database_count()), random_seed()),
        statistics(thread_count(config), registry->size()),
        facts{random_run_id(), executable_path(), clock.wall_ms(), thread_count(config),
              config.file_path()},
        threads(thread_count(config)),
        services{config,     clock,  ticks, keyspace, reclaimer, journal, *registry, clients,
                 statistics, memory, pause, gauges,   facts,     changes, {}},
        listener(threads, services),
        periodic(threads, services),
        signals(threads.at(0).context, SIGTERM, SIGINT) {}

  core::SystemClock clock;
  TickClock ticks;
  std::unique_ptr<Registry> registry;
  core::keyspace::Reclaimer reclaimer;
  core::keyspace::Keyspace keyspace;
  persistence::Journal journal;
  Clients clients;
  Statistics statistics;
  MemoryMonitor memory;
  PauseGate pause;
  Gauges gauges;
  ProcessFacts facts;
  std::atomic<uint64_t> changes{0};
  net::IoThreads threads;
  Services services;
  net::Listener listener;
  net::Periodic periodic;
  boost::asio::signal_set signals;
  bool stopping = false;
};

Server::Server(Config& config) : config_(config) {}
Server::~Server() = default;

core::Result<> Server::start() {
  raise_descriptor_limit(config_);
  auto registry = Registry::create(config_.renamed_commands());
  if (!registry) return registry.error();
  parts_ = std::make_unique<Parts>(config_, std::move(*registry));
  Parts& parts = *parts_;
  parts.keyspace.set_reclaimer(&parts.reclaimer);
  parts.keyspace.set_expired_hook([&parts](unsigned database, std::string_view key) {
    parts.journal.append(database, std::array<std::string_view, 2>{"DEL", key});
  });
  const auto apply_memory_limit = [&parts, this]() -> core::Result<> {
    parts.memory.set_limit(static_cast<uint64_t>(config_.max_memory_bytes()));
    return {};
  };
  (void)apply_memory_limit();
  config_.on_change(OptionId::kMaxMemory, apply_memory_limit);
  config_.on_change(OptionId::kLogLevel, [this]() -> core::Result<> {
    set_log_level(config_.log_level());
    return {};
  });
  parts.services.request_shutdown = [this] { request_stop(); };
  parts.pause.wake_all = [&parts] {
    parts.threads.post_to_each([](net::IoThread& thread) {
      for (const auto& [id, connection] : thread.connections) connection->wake();
    });
  };
  return parts.listener.open();
}

void Server::run() {
  Parts& parts = *parts_;
  parts.signals.async_wait([this](const boost::system::error_code& error, int signal) {
    if (error) return;
    log_notice("Received {}, shutting down", signal == SIGINT ? "SIGINT" : "SIGTERM");
    request_stop();
  });
  parts.listener.start();
  parts.periodic.start();
  log_notice("Ready to accept connections");
  parts.threads.run();
  log_notice("Bloomery is now ready to exit, bye bye...");
}

void Server::request_stop() {
  // On thread 0, where the listener and the timers live.
  parts_->threads.at(0).post([this] {
    Parts& parts = *parts_;
    if (parts.stopping) return;
    parts.stopping = true;
    parts.listener.close();
    parts.periodic.stop();
    parts.signals.cancel();
    parts.threads.stop();
  });
}

}  // namespace server
