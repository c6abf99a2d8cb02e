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
  // Called when the log has advanced, so that some waiting replies may now be sent. Must wake the
  // threads that hold waiting replies. Such a thread checks its replies, and may call commit().
  virtual void on_log_progress() = 0;
  // Called when the log has failed with `appendfsync always`, so the process must end. Does not
  // return.
  virtual void on_log_fatal(const std::string& cause) = 0;
  // Called after a write or sync that LATENCY can record, if latency-monitor-threshold is set.
  // `kind` is Redis' name for such an event.
  virtual void on_log_event(std::string_view /*kind*/, int64_t /*duration_us*/) {}

 protected:
  ~LogListener() = default;
};

}  // namespace server
