// SPDX-License-Identifier: MIT
#include "server/net/periodic.h"

#include <boost/asio/co_spawn.hpp>

#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "server/config/config.h"
#include "server/dispatch/pause_gate.h"
#include "server/durability/durability.h"
#include "server/net/connection.h"
#include "server/process/gauges.h"
#include "server/process/log.h"
#include "server/process/memory_monitor.h"
#include "server/process/statistics.h"
#include "server/replication/roles/follower.h"
#include "server/replication/roles/shutdown.h"
#include "server/replication/stream/replication.h"
#include "server/session/clients.h"

namespace server::net {

void Periodic::start() {
  boost::asio::co_spawn(threads_.at(0).context, run(), [](const std::exception_ptr& failure) {
    if (failure) log_error("Periodic tasks ended unexpectedly");
  });
}

void Periodic::stop() {
  stopped_ = true;
  timer_.cancel();
}

Awaitable<> Periodic::run() {
  while (!stopped_) {
    const int64_t hz = std::max<int64_t>(1, services_.config.hz());
    timer_.expires_after(std::chrono::milliseconds(1000 / hz));
    const auto [error] = co_await timer_.async_wait(kAsValue);
    if (error || stopped_) break;
    tick();
  }
}

void Periodic::tick() {
  ++ticks_;
  services_.memory.measure_available();
  services_.follower.drive_failover();
  services_.shutdown.look();
  if (const uint64_t limit_bytes = services_.config.client_memory_limit_bytes(); limit_bytes > 0) {
    services_.clients.evict_over(limit_bytes);
  }
  if (!services_.durability.availability.has(Availability::kLoading) &&
      !services_.pause.holds_back(kWrite, services_.clock.wall_ms())) {
    // A replica's leader says when one of its keys has expired.
    if (services_.replication.is_replica()) {
      expire_own_keys();
    } else {
      expire_keys();
    }
  }
  sample_rates();
  Gauges& gauges = services_.gauges;
  const uint64_t clients = services_.clients.count();
  if (clients > gauges.clients_peak.load()) gauges.clients_peak.store(clients);
  const auto hz = static_cast<uint64_t>(std::max<int64_t>(1, services_.config.hz()));
  if (ticks_ % hz == 0) check_clients();
}

void Periodic::expire_keys() {
  const int64_t start_us = services_.clock.monotonic_us();
  // A quarter of the time at most, as Redis' slow cycle spends.
  constexpr int64_t kShareOfSecond = 4;
  core::keyspace::ExpiryBudget budget;
  budget.duration_us_max = 1'000'000 / kShareOfSecond / std::max<int64_t>(1, services_.config.hz());
  expiry_.tick(budget);
  Gauges& gauges = services_.gauges;
  gauges.expire_cycle_us.fetch_add(
      static_cast<uint64_t>(services_.clock.monotonic_us() - start_us));
}

// Of a writable replica.
void Periodic::expire_own_keys() {
  constexpr int64_t kDurationUsMax = 5000;
  const int64_t start_us = services_.clock.monotonic_us();
  OwnExpiries& keys = services_.replication.own_expiries();
  while (!keys.tick(services_.keyspace, services_.clock.wall_ms())) {
    if (services_.clock.monotonic_us() - start_us > kDurationUsMax) break;
  }
}

void Periodic::sample_rates() {
  const int64_t now_us = services_.clock.monotonic_us();
  const Statistics& statistics = services_.statistics;
  const uint64_t commands = statistics.total(&ThreadStatistics::commands_processed);
  const uint64_t input = statistics.total(&ThreadStatistics::input_bytes);
  const uint64_t output = statistics.total(&ThreadStatistics::output_bytes);
  const int64_t elapsed_us = now_us - sampled_us_;
  // After CONFIG RESETSTAT a total is below its last sample: that interval counts nothing.
  const auto rate = [elapsed_us](uint64_t now, uint64_t before) -> uint64_t {
    if (elapsed_us <= 0 || now < before) return 0;
    return (now - before) * 1'000'000 / static_cast<uint64_t>(elapsed_us);
  };
  if (sampled_us_ != 0) {
    Gauges& gauges = services_.gauges;
    gauges.operations_per_second.store(rate(commands, sampled_commands_));
    gauges.input_bytes_per_second.store(rate(input, sampled_input_));
    gauges.output_bytes_per_second.store(rate(output, sampled_output_));
  }
  sampled_us_ = now_us;
  sampled_commands_ = commands;
  sampled_input_ = input;
  sampled_output_ = output;
}

void Periodic::check_clients() {
  const int64_t timeout_ms = services_.config.timeout_s() * 1000;
  const int64_t now_ms = services_.clock.wall_ms();
  // The interval of Redis' rbp.
  constexpr int64_t kPeakIntervalS = 5;
  const bool new_peak = ++client_checks_ % kPeakIntervalS == 0;
  threads_.post_to_each([now_ms, timeout_ms, new_peak](IoThread& thread) {
    thread.connections.for_each([&](Connection& connection) {
      connection.close_if_idle(now_ms, timeout_ms);
      connection.close_if_over_output_limit();
      if (new_peak) connection.restart_output_peak();
    });
  });
}

}  // namespace server::net
