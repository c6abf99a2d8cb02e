// SPDX-License-Identifier: MIT
//
// Shutdown: the end that SHUTDOWN or a signal asks for. Writes are held back; a leader's replicas
// get the time to take what they lack; then the data are saved, and the server ends.
//
//   kNone ──begin()──► kAwaitsReplicas ──► kEnding ──► the process ends
//     ▲                      │abort()        │it could not be saved
//     └──────────────────────┴───────────────┘
//
// Invariants: what the replicas are waited for includes every write that was answered, because no
// thread is amid a write when the end of the stream is taken. An attempt that fails or is aborted
// leaves the server as it was.
// Thread safety: all members may be called from any thread that holds no stripe. begin() and look()
// may save the data, and then take as long as that.
// Source: SHUTDOWN as in Redis 7.0.15.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "core/result.h"
#include "server/commands/pause_gate.h"
#include "server/replication/replication.h"

namespace server {

class Shutdown {
 public:
  struct Parts {
    const Config& config;
    const core::Clock& clock;
    Durability& durability;
    Replication& replication;
    PauseGate& pause;
  };
  struct Request {
    bool saves = false;      // a snapshot; the append log is brought to the disk anyhow
    bool is_forced = false;  // whatever cannot be saved
    // Its sender hears of no error: it ends the server though the append log fails.
    bool is_signal = false;
    bool waits_for_replicas = true;  // for shutdown-timeout at most
  };
  enum class State : uint8_t { kNone, kAwaitsReplicas, kEnding };
  enum class Outcome : uint8_t { kEnds, kWaits, kFails };

  explicit Shutdown(const Parts& parts) : parts_(parts) {}

  // Calls back, on any thread, when whatever command had begun has ended. Set before begin().
  std::function<void(std::function<void()> on_writes_ended)> drain_writes = [](const auto&) {};
  // Ends the process cleanly, soon. Set before begin().
  std::function<void()> end_process = [] {};

  // As SHUTDOWN without options, or a signal, asks: save points decide what is saved.
  Request usual_request() const;
  // While an attempt waits, another request waits along, or ends the waiting if it does not want
  // to wait. kFails: the log says what cannot be saved; the server serves on.
  Outcome begin(const Request& request);
  // Errors: there is none that could be aborted.
  core::Result<> abort();
  // Goes on if nothing is to be waited for any more.
  void look();

  State state() const { return state_.load(std::memory_order_acquire); }
  // Which attempt is under way, for those that wait for its end; 0 for none.
  uint64_t attempt() const { return state() == State::kNone ? 0 : attempt_.load(); }
  // Until replicas are waited for no more; nothing when they are not.
  std::optional<int64_t> left_ms() const;

 private:
  void note_writes_ended(uint64_t attempt);
  // REQUIRES: mutex_.
  bool is_waited_for_enough() const;
  void tell_of_replicas() const;
  // REQUIRES: this thread has brought the state to kEnding.
  Outcome finish();

  const Parts parts_;
  std::atomic<State> state_{State::kNone};
  std::atomic<uint64_t> attempt_{0};
  std::atomic<int64_t> deadline_us_{0};
  mutable std::mutex mutex_;  // orders changes of the state, and guards what follows
  Request request_;
  std::optional<uint64_t> wanted_offset_;  // what replicas must have; not known before writes end
};

}  // namespace server
