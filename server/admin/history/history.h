// SPDX-License-Identifier: MIT
//
// History: the server's statistics of the last hour, for the dashboard's charts.
//
// Values of the whole server are stored per second, and values of each command per interval of ten
// seconds.
//
// Invariants: the memory is bounded by kSeconds, kIntervals and the number of commands.
// Thread safety: none.
#pragma once

#include <array>
#include <boost/circular_buffer.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace server::admin {

// The values stored for each second. Rates are per second, times are in microseconds. A percentile
// is 0 if no command ran.
enum class Figure : uint8_t {
  kOperations,
  kInputBytes,
  kOutputBytes,
  kProcessors,  // number of processors that the process kept busy
  kUsedMemory,
  kResidentMemory,
  kClients,
  kMedian,
  kPercentile99,
  kPercentile999,
  kReplicaLagBytes,  // lag in bytes of the replica that is furthest behind
  kReplicaLagSeconds,
  kCount,
};
inline constexpr size_t kFigureCount = static_cast<size_t>(Figure::kCount);
// The names of the stored values, indexed by Figure.
inline constexpr std::array<std::string_view, kFigureCount> kFigureNames = {
    "operations", "input bytes", "output bytes",      "processors",
    "used",       "resident",    "clients",           "p50",
    "p99",        "p99.9",       "replica lag bytes", "replica lag seconds"};

struct Moment {
  int64_t time_ms = 0;  // Unix time of the values in milliseconds
  std::array<float, kFigureCount> figures{};

  float& operator[](Figure figure) { return figures[static_cast<size_t>(figure)]; }
  float operator[](Figure figure) const { return figures[static_cast<size_t>(figure)]; }
};

// The calls of one command within one interval.
struct CommandInterval {
  float calls = 0;
  float percentile99_us = 0;
};

// Ring: the last values of a series, in memory that is allocated once. The oldest value is the
// first.
template <class T>
using Ring = boost::circular_buffer<T>;

class History {
 public:
  static constexpr size_t kSeconds = 3600;
  static constexpr size_t kSecondsPerInterval = 10;
  static constexpr size_t kIntervals = kSeconds / kSecondsPerInterval;

  explicit History(size_t command_count)
      : command_count_(command_count), intervals_(kIntervals), commands_(kIntervals) {}

  void add(const Moment& moment) { moments_.push_back(moment); }
  // `commands` is indexed by RegisteredCommand::index.
  void add_interval(int64_t time_ms, std::vector<CommandInterval> commands) {
    intervals_.push_back(time_ms);
    commands_.push_back(std::move(commands));
  }

  const Ring<Moment>& moments() const { return moments_; }
  // intervals() returns the end times of the intervals, and commands() the commands that ran in
  // each interval.
  const Ring<int64_t>& intervals() const { return intervals_; }
  const Ring<std::vector<CommandInterval>>& commands() const { return commands_; }

  size_t size_bytes() const {
    return moments_.capacity() * sizeof(Moment) + intervals_.capacity() * sizeof(int64_t) +
           commands_.capacity() * sizeof(std::vector<CommandInterval>) +
           commands_.size() * command_count_ * sizeof(CommandInterval);
  }

 private:
  const size_t command_count_;
  Ring<Moment> moments_{kSeconds};
  Ring<int64_t> intervals_;
  Ring<std::vector<CommandInterval>> commands_;
};

}  // namespace server::admin
