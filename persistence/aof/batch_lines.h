// SPDX-License-Identifier: MIT
//
// BatchLines: creates the annotation lines of a batch of the append log. They state the time of the
// batch, and the position in the replication stream that the data have reached after the batch.
//
// Thread safety: set_timestamps() may be called from any thread, set_position_source() before the
// log is opened or after its last use. The writer calls all other members under its mutex.
// Source: docs/formats.md, "Append log".
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "core/clock.h"
#include "persistence/aof/aof_format.h"

namespace persistence {

class BatchLines {
 public:
  // Returns the line that states the data's position in the replication stream when the journal
  // ends at `journal_end`. Returns an empty string if the position is unknown.
  using PositionSource = std::function<std::string(uint64_t journal_end)>;

  explicit BatchLines(const core::Clock& clock) : clock_(clock) {}

  // Applies the option `aof-timestamp-enabled`.
  void set_timestamps(bool enabled) { has_timestamps_.store(enabled, std::memory_order_relaxed); }
  void set_position_source(PositionSource source) { position_source_ = std::move(source); }

  // Prepends a `#TS:` line to the first batch of each second.
  void open(std::string& batch) {
    if (!has_timestamps_.load(std::memory_order_relaxed)) return;
    const int64_t now_s = clock_.wall_ms() / 1000;
    if (now_s == timestamp_s_) return;
    timestamp_s_ = now_s;
    std::string line;
    append_timestamp_line(line, now_s);
    batch.insert(0, line);
  }
  std::string position_line(uint64_t journal_end) const { return position_source_(journal_end); }

  // Returns the last line in the file that states a replication position, or an empty string.
  const std::string& written_position() const { return written_position_; }
  void set_written_position(std::string line) { written_position_ = std::move(line); }
  // Must be called when a new file begins: it has neither a position nor a time yet.
  void begin_file() {
    written_position_.clear();
    timestamp_s_ = 0;
  }

 private:
  const core::Clock& clock_;
  std::atomic<bool> has_timestamps_{false};
  PositionSource position_source_ = [](uint64_t) { return std::string(); };
  std::string written_position_;
  int64_t timestamp_s_ = 0;
};

}  // namespace persistence
