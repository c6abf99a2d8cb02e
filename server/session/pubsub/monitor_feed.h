// SPDX-License-Identifier: MIT
//
// MonitorFeed: delivers the lines of MONITOR to the monitoring clients.
//
// feed() appends a line to the inbox of every I/O thread that has a monitor. That thread takes the
// lines and writes them to its connections.
//
// Invariants: all monitors receive the same lines in the same order. A monitor receives the lines
// of all commands after its MONITOR. No thread waits for a monitor: an inbox is bounded, and once
// it has overflowed, the connections of its monitors must be closed.
// Thread safety: all members may be called from any thread. take() of one inbox must not be called
// concurrently. The waker is called without a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace server {

class MonitorFeed {
 public:
  // Called to make the I/O thread with this index call take() soon.
  using Waker = std::function<void(size_t thread_index)>;

  static constexpr size_t kInboxBytesMax = size_t{32} << 20;

  MonitorFeed(size_t thread_count, Waker waker);

  // Adds a monitor. REQUIRES: the session is not a monitor yet.
  void add(uint64_t session_id, size_t thread_index);
  void remove(uint64_t session_id);
  size_t count() const { return count_.load(std::memory_order_relaxed); }

  // Appends a line to the inboxes. The line must include its CR LF.
  void feed(std::string_view line);

  struct Receiver {
    uint64_t session_id;
    size_t first_byte;  // offset in Batch::lines of the first line for this monitor
  };
  struct Batch {
    std::string lines;
    std::vector<Receiver> receivers;
    bool has_overflowed = false;  // true if lines were lost: the clients must be disconnected
  };
  // Removes and returns all lines for the thread. When more lines arrive, the waker is called.
  Batch take(size_t thread_index);

 private:
  struct Monitor {
    uint64_t session_id;
    uint64_t since;  // total bytes that the inbox had received when the monitor began
  };
  struct Inbox {
    std::vector<Monitor> monitors;
    std::string lines;
    uint64_t taken_bytes = 0;  // total bytes that take() returned before the bytes in `lines`
    bool has_overflowed = false;
  };

  const Waker waker_;
  std::atomic<size_t> count_{0};
  // This mutex guards the inboxes, so that all inboxes have the same order of lines.
  std::mutex mutex_;
  std::vector<Inbox> inboxes_;
};

// Returns MONITOR's line for a command. `client` is the address of the client, or "unix:<path>".
std::string monitor_line(int64_t now_us, unsigned database, std::string_view client,
                         const std::vector<std::string_view>& words);

}  // namespace server
