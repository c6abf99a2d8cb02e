// SPDX-License-Identifier: MIT
//
// SaveRecord: INFO's fields about one kind of save, kept by SaveHistory.
//
// Thread safety: all members of SaveHistory may be called from any thread.
#pragma once

#include <cstdint>
#include <mutex>

#include "core/result.h"

namespace server {

struct SaveRecord {
  int64_t last_time_s = -1;  // duration of the last save in seconds; -1 if there was none
  uint64_t last_copied_bytes = 0;
  uint64_t count = 0;  // number of successful saves since the start
  uint64_t failures_in_a_row = 0;
  bool last_was_ok = true;
};

// SaveEnd: the result and the statistics of a child that has ended.
struct SaveEnd {
  core::Result<> result;
  // True if this server killed the child. The failure then does not mean that the disk failed.
  bool was_stopped = false;
  int64_t ran_s = 0;
  uint64_t copied_bytes = 0;  // memory that was copied because the parent or the child wrote to it
  uint64_t changes_at_fork = 0;
  uint64_t flushes_at_fork = 0;
};

class SaveHistory {
 public:
  SaveRecord record() const {
    const std::scoped_lock lock(mutex_);
    return record_;
  }
  // Called when a child has ended.
  void record_end(const SaveEnd& end, bool is_ok) {
    const std::scoped_lock lock(mutex_);
    record_.last_time_s = end.ran_s;
    record_.last_copied_bytes = end.copied_bytes;
    record_result(is_ok);
  }
  // Records a failed save, because no child could be started.
  void record_no_child() {
    const std::scoped_lock lock(mutex_);
    record_result(false);
  }
  // Records a save that this process made without a child. Updates only the last result and the
  // number of saves.
  void record_saved_here(bool is_ok) {
    const std::scoped_lock lock(mutex_);
    record_.last_was_ok = is_ok;
    record_.count += is_ok ? 1 : 0;
  }

 private:
  void record_result(bool is_ok) {
    record_.last_was_ok = is_ok;
    record_.count += is_ok ? 1 : 0;
    record_.failures_in_a_row = is_ok ? 0 : record_.failures_in_a_row + 1;
  }

  mutable std::mutex mutex_;  // this mutex guards record_
  SaveRecord record_;
};

}  // namespace server
