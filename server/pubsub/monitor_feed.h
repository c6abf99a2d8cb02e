// SPDX-License-Identifier: MIT
//
// MonitorFeed: the lines of MONITOR on their way to the clients that asked for them.
//
// feed() appends a line to the inbox of every I/O thread that has a monitor; that thread takes the
// lines out and writes them to its connections.
//
// Invariants: all monitors see the same lines in the same order, each from its MONITOR on. Nobody
// waits for a monitor: an inbox that its thread does not empty is bounded, and once it has
// overflowed its monitors are to be closed.
// Thread safety: all members may be called from any thread, take() of one inbox by one at a time.
// The waker is called without a lock.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace server {

class MonitorFeed {
 public:
  // Has the thread take() its lines soon.
  using Waker = std::function<void(size_t thread_index)>;

  static constexpr size_t kInboxBytesMax = size_t{32} << 20;

  MonitorFeed(size_t thread_count, Waker waker);

  // REQUIRES: the session is no monitor.
  void add(uint64_t session_id, size_t thread_index);
  void remove(uint64_t session_id);
  size_t count() const { return count_.load(std::memory_order_relaxed); }

  // A line with its CR LF.
  void feed(std::string_view line);

  struct Receiver {
    uint64_t session_id;
    size_t first_byte;  // of the batch's lines: those before it are older than the monitor
  };
  struct Batch {
    std::string lines;
    std::vector<Receiver> receivers;
    bool has_overflowed = false;  // lines are missing: close the receivers
  };
  // All lines for the thread; after this the waker announces the next.
  Batch take(size_t thread_index);

 private:
  struct Monitor {
    uint64_t session_id;
    uint64_t since;  // bytes that the inbox had ever had when it began
  };
  struct Inbox {
    std::vector<Monitor> monitors;
    std::string lines;
    uint64_t taken_bytes = 0;  // before `lines`
    bool has_overflowed = false;
  };

  const Waker waker_;
  std::atomic<size_t> count_{0};
  std::mutex mutex_;  // guards the inboxes, and makes their order of lines the same
  std::vector<Inbox> inboxes_;
};

// The line that MONITOR shows of a command. `client` is its address, or "unix:<path>".
std::string monitor_line(int64_t now_us, unsigned database, std::string_view client,
                         const std::vector<std::string_view>& words);

}  // namespace server
