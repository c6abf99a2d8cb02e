// SPDX-License-Identifier: MIT
//
// PauseGate: CLIENT PAUSE, and the holds on writes by FAILOVER, SHUTDOWN, DEBUG RELOAD, and the
// handover of a shard. A held-back command waits in its connection, without a lock. drain() reports
// when all commands that were already running have ended.
//
// Invariants: a pause of writes never shortens or weakens a pause of all commands. Pauses and holds
// are independent: CLIENT UNPAUSE ends no hold, the end of a hold ends no pause, and holds do not
// end each other.
// Thread safety: all members may be called from any thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include "server/base/process/command_drain.h"
#include "server/dispatch/command.h"
#include "server/dispatch/drain.h"

namespace server {

class PauseGate final : public CommandDrain {
 public:
  explicit PauseGate(CommandThreads& threads) : threads_(threads), drain_(threads) {}

  enum class Mode : uint8_t { kNone, kWrites, kAll };
  // Reasons to hold writes back, one bit each. FAILOVER sets kHandover, and a leader that hands its
  // shard over sets kResigning. A shutdown sets kEnding while it saves the final data.
  enum class Hold : uint8_t {
    kHandover = 1,
    kShutdown = 2,
    kReload = 4,
    kEnding = 8,
    kResigning = 16
  };

  // Returns whether holds_back() must be called. Costs two relaxed loads.
  bool may_hold_back() const {
    return mode_.load(std::memory_order_relaxed) != Mode::kNone || holds_writes();
  }
  // Returns whether a command must wait. `flags` are the flags in the command's row of the command
  // table.
  bool holds_back(uint32_t flags, int64_t now_ms) const {
    return holds_back_by_client(flags, now_ms) ||
           (holds_writes() && (flags & (kWrite | kMayReplicate)) != 0);
  }
  bool has(Hold hold) const { return (holds_ & static_cast<uint8_t>(hold)) != 0; }
  // Returns whether the leader may add nothing more to the replication stream, not even PING. The
  // saved data, or the replica that takes over, must have the whole stream.
  bool ends_stream() const { return has(Hold::kResigning) || has(Hold::kEnding); }
  bool holds_writes() const { return holds_.load(std::memory_order_relaxed) != 0; }

  // Returns whether CLIENT PAUSE makes a command wait.
  bool holds_back_by_client(uint32_t flags, int64_t now_ms) const {
    const Mode mode = mode_.load(std::memory_order_relaxed);
    if (mode == Mode::kNone || now_ms >= end_ms_.load(std::memory_order_relaxed)) return false;
    if (mode == Mode::kAll) return (flags & kNotPaused) == 0;
    return (flags & (kWrite | kMayReplicate)) != 0;
  }

  void pause(Mode mode, int64_t end_ms, int64_t now_ms) {
    const std::scoped_lock lock(mutex_);
    const bool running = mode_.load() != Mode::kNone && now_ms < end_ms_.load();
    if (running && mode_.load() > mode) mode = mode_.load();
    if (running && end_ms_.load() > end_ms) end_ms = end_ms_.load();
    end_ms_.store(end_ms);
    mode_.store(mode);
  }
  // Calls `on_ended` once no I/O thread still runs a command that started before this call.
  void drain(Drain::Callback on_ended) override { drain_.begin(std::move(on_ended)); }

  void end() {
    {
      const std::scoped_lock lock(mutex_);
      mode_.store(Mode::kNone);
    }
    threads_.wake_held_back();
  }

  // Holds writes back until release_writes(). Running writes continue: drain() reports their end.
  void hold_writes(Hold hold) { holds_ |= static_cast<uint8_t>(hold); }
  void release_writes(Hold hold) {
    holds_ &= static_cast<uint8_t>(~static_cast<uint8_t>(hold));
    threads_.wake_held_back();
  }

  // Ends a pause whose time is over, so that it does not come back if the wall clock steps back.
  void end_if_over(int64_t now_ms) {
    const std::scoped_lock lock(mutex_);
    if (now_ms >= end_ms_.load()) mode_.store(Mode::kNone);
  }

  int64_t end_ms() const { return end_ms_.load(); }

 private:
  CommandThreads& threads_;
  std::mutex mutex_;  // this mutex serializes pause(), end() and end_if_over()
  std::atomic<Mode> mode_{Mode::kNone};
  std::atomic<int64_t> end_ms_{0};
  std::atomic<uint8_t> holds_{0};
  Drain drain_;
};

}  // namespace server
