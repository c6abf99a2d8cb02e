// SPDX-License-Identifier: MIT
//
// LogListener: notified by AppendLog of its progress and of its end.
//
// Thread safety: called from any thread that writes or syncs the log, within commit() too.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace server {

class LogListener {
 public:
  // Waiting replies may have become safe, and another thread may commit() again.
  virtual void on_log_progress() = 0;
  // With `appendfsync always` the log fails: the process must end. Does not return.
  virtual void on_log_fatal(const std::string& cause) = 0;
  // While there is a latency-monitor-threshold: an event of LATENCY, under Redis' name.
  virtual void on_log_event(std::string_view kind, int64_t duration_us) {
    (void)kind;
    (void)duration_us;
  }

 protected:
  ~LogListener() = default;
};

}  // namespace server
