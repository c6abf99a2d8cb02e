// SPDX-License-Identifier: MIT
//
// LogListener: the interface by which AppendLog reports its progress and its failure.
//
// Thread safety: any thread that writes or syncs the log may call the members, also within
// commit().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace server {

class LogListener {
 public:
  // Called when waiting replies may have become safe, so that their threads check them. Such a
  // thread may also call commit() again.
  virtual void on_log_progress() = 0;
  // Called when the log has failed with `appendfsync always`, so the process must end. Does not
  // return.
  virtual void on_log_fatal(const std::string& cause) = 0;
  // Called with a LATENCY event and Redis' name for the event, if latency-monitor-threshold is set.
  virtual void on_log_event(std::string_view kind, int64_t duration_us) {
    (void)kind;
    (void)duration_us;
  }

 protected:
  ~LogListener() = default;
};

}  // namespace server
