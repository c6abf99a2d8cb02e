// SPDX-License-Identifier: MIT
#include "server/base/metrics/statistics.h"

#include "protocol/error_texts.h"
#include "server/base/latency/latency_histogram.h"

namespace server {
namespace {

// Creates a command's histogram. The function is not inlined, so that the usual calls of
// add_latency() need no stack frame.
[[gnu::noinline]] void begin_latencies(CommandCounters& counters, uint64_t ticks_taken) {
  auto* histogram = new LatencyHistogram;
  histogram->add(ticks_taken);
  counters.latencies.store(histogram, std::memory_order_release);
}

}  // namespace

CommandCounters::~CommandCounters() {
  delete latencies.load(std::memory_order_relaxed);
}

void CommandCounters::add_latency(uint64_t ticks_taken) {
  LatencyHistogram* histogram = latencies.load(std::memory_order_relaxed);
  if (histogram == nullptr) [[unlikely]]
    return begin_latencies(*this, ticks_taken);
  histogram->add(ticks_taken);
}

LatencyCounts Statistics::latencies(size_t command_index) const {
  LatencyCounts counts;
  for (const auto& thread : threads_) {
    const auto* histogram =
        thread->commands[command_index].latencies.load(std::memory_order_acquire);
    if (histogram != nullptr) counts.add(*histogram);
  }
  return counts;
}

void Statistics::count_if_error(CommandCounters& counters, std::string_view replies) {
  if (!replies.starts_with('-')) return;
  counters.failed.add();
  count_error(protocol::error_code(replies.substr(1)));
}

void Statistics::reset() {
  for (auto& thread : threads_) {
    for (Counter* counter :
         {&thread->commands_processed, &thread->connections_received, &thread->connections_rejected,
          &thread->input_bytes, &thread->output_bytes, &thread->reads_processed,
          &thread->writes_processed, &thread->keyspace_hits, &thread->keyspace_misses,
          &thread->query_buffer_disconnections, &thread->output_buffer_disconnections}) {
      counter->reset();
    }
    for (CommandCounters& command : thread->commands) {
      command.calls.reset();
      command.ticks.reset();
      command.rejected.reset();
      command.failed.reset();
      auto* histogram = command.latencies.load(std::memory_order_acquire);
      if (histogram != nullptr) histogram->reset();
    }
  }
  const std::scoped_lock lock(errors_mutex_);
  errors_.clear();
  total_errors_ = 0;
}

}  // namespace server
