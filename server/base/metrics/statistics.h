// SPDX-License-Identifier: MIT
//
// Statistics: counters of each thread that executes commands, which INFO adds up.
//
// Invariants: a Counter has one writing thread, so adding needs no locked instruction.
// Thread safety: any thread may read a Counter, and gets a recent value.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace server {

class LatencyCounts;
class LatencyHistogram;

class Counter {
 public:
  void add(uint64_t n = 1) {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  uint64_t value() const {
    const uint64_t base = base_.load(std::memory_order_acquire);
    return value_.load(std::memory_order_relaxed) - base;
  }
  // May be called by any thread, because it does not change what add() changes.
  void reset() {
    base_.store(value_.load(std::memory_order_relaxed), std::memory_order_release);
  }

 private:
  std::atomic<uint64_t> value_{0};
  std::atomic<uint64_t> base_{0};  // value_ at the last reset
};

struct CommandCounters {
  Counter calls;
  // Total duration of the command's calls, in ticks of TickClock.
  Counter ticks;
  // Number of calls that were rejected before the handler ran.
  Counter rejected;
  // Number of calls whose handler replied with an error.
  Counter failed;
  // Histogram of the durations. The first add_latency() creates it.
  std::atomic<LatencyHistogram*> latencies{nullptr};

  ~CommandCounters();
  // Adds the duration of one call. Must be called on the thread that writes these counters.
  void add_latency(uint64_t ticks_taken);
};

// CommandTrail: the names of the commands that a thread started last, for a crash report.
// Invariants: a trail stores pointers, so a recorded name must exist until the process ends.
// Thread safety: only the thread that runs the commands may call record(). Any thread may call
// name().
class CommandTrail {
 public:
  static constexpr size_t kLength = 16;

  // Records a command. `number` is the number of commands that the thread has completed.
  void record(uint64_t number, const std::string& name) {
    names_[number % kLength].store(&name, std::memory_order_relaxed);
  }
  // Returns the name that was recorded with `number`. If a later name has overwritten it, returns
  // the later name. Returns null if no name was recorded.
  const std::string* name(uint64_t number) const {
    return names_[number % kLength].load(std::memory_order_relaxed);
  }

 private:
  std::array<std::atomic<const std::string*>, kLength> names_{};
};

// ThreadStatistics: the counters of one thread.
struct alignas(64) ThreadStatistics {
  explicit ThreadStatistics(size_t command_count) : commands(command_count) {}

  Counter commands_processed;
  Counter connections_received;
  Counter connections_rejected;
  Counter input_bytes;
  Counter output_bytes;
  Counter reads_processed;
  Counter writes_processed;
  Counter keyspace_hits;
  Counter keyspace_misses;
  Counter query_buffer_disconnections;
  Counter output_buffer_disconnections;
  // The names of the last commands. Each name is recorded together with the value that
  // commands_processed had at that time.
  CommandTrail trail;
  std::vector<CommandCounters> commands;  // indexed by RegisteredCommand::index
};

class Statistics {
 public:
  Statistics(size_t thread_count, size_t command_count) {
    for (size_t i = 0; i < thread_count + 1; ++i) {
      threads_.push_back(std::make_unique<ThreadStatistics>(command_count));
    }
  }

  ThreadStatistics& thread(size_t index) { return *threads_[index]; }
  // Returns the number of counter sets. The last set belongs to the thread that applies a leader's
  // stream.
  size_t thread_count() const { return threads_.size(); }
  const ThreadStatistics& thread(size_t index) const { return *threads_[index]; }
  // Returns the counters of the thread that applies a leader's stream.
  ThreadStatistics& stream() { return *threads_.back(); }

  // Returns the sum of one counter over all threads.
  uint64_t total(Counter ThreadStatistics::*counter) const {
    uint64_t sum = 0;
    for (const auto& thread : threads_) sum += ((*thread).*counter).value();
    return sum;
  }
  uint64_t total(size_t command_index, Counter CommandCounters::*counter) const {
    uint64_t sum = 0;
    for (const auto& thread : threads_) sum += (thread->commands[command_index].*counter).value();
    return sum;
  }

  // Returns the durations of a command in ticks, over all threads.
  LatencyCounts latencies(size_t command_index) const;

  // Counts one error reply under its code ("ERR", "WRONGTYPE"). Errors are rare, so a lock is
  // acceptable.
  void count_error(std::string_view code) {
    const std::scoped_lock lock(errors_mutex_);
    ++total_errors_;
    // The number of distinct codes is limited, because a client can cause errors with any code. The
    // limit is that of Redis 7.0.15.
    if (errors_.size() < kErrorCodesMax || errors_.contains(std::string(code))) {
      ++errors_[std::string(code)];
    }
  }
  // Counts the reply of a command if it is an error. `replies` begins with this reply.
  void count_if_error(CommandCounters& counters, std::string_view replies);
  std::map<std::string, uint64_t> errors() const {
    const std::scoped_lock lock(errors_mutex_);
    return errors_;
  }
  uint64_t total_errors() const {
    const std::scoped_lock lock(errors_mutex_);
    return total_errors_;
  }

  // Implements CONFIG RESETSTAT. The histogram of a thread that counts at that moment may keep an
  // old count.
  void reset();

 private:
  static constexpr size_t kErrorCodesMax = 128;
  std::vector<std::unique_ptr<ThreadStatistics>> threads_;
  mutable std::mutex errors_mutex_;  // this mutex guards errors_ and total_errors_
  std::map<std::string, uint64_t> errors_;
  uint64_t total_errors_ = 0;
};

}  // namespace server
