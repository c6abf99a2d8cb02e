// SPDX-License-Identifier: MIT
//
// Shutdown: the end that SHUTDOWN or a signal asks for. Writes are held back, and those under way
// end; a leader's replicas get the time to take what they lack; then the data are saved, and the
// server ends.
//
//   kNone ──begin()──► kWaits ──► kEnding ──► the process ends
//     ▲                  │abort()    │it could not be saved
//     └──────────────────┴───────────┘
//
// Invariants: the saved data, and the offset that replicas must reach, include every answered
// write: no thread is executing a write then. An attempt that fails or is aborted leaves the server
// as it was.
// Thread safety: all members may be called from any thread that holds no stripe. The data are saved
// by an I/O thread, for which begin() does not wait, or by look().
// Source: SHUTDOWN as in Redis 7.0.15.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "core/result.h"
#include "server/durability/durability.h"
#include "server/process/ordered_mutex.h"

namespace core {
class Clock;
}

namespace server {

class Config;
class Leader;
class PauseGate;
class Replication;

class Shutdown {
 public:
  // Ends the process cleanly, soon.
  class Process {
   public:
    virtual void end() = 0;

   protected:
    ~Process() = default;
  };
  struct Parts {
    const Config& config;
    const core::Clock& clock;
    Durability& durability;
    Replication& replication;
    Leader& leader;
    PauseGate& pause;
    Process& process;
  };
  struct Request {
    FinalSave save = FinalSave::kNone;  // the append log is brought to the disk in any case
    bool is_forced = false;             // end even if the data cannot be saved
    // Its sender hears of no error: it ends the server though the append log fails.
    bool is_signal = false;
    bool waits_for_replicas = true;  // for shutdown-timeout at most
  };
  enum class State : uint8_t { kNone, kWaits, kEnding };

  explicit Shutdown(const Parts& parts) : parts_(parts) {}

  // As SHUTDOWN without options, or a signal, asks: save points decide what is saved.
  Request usual_request() const;
  // Returns the request of a signal. `words` has the bits of shutdown-on-sigint or
  // shutdown-on-sigterm.
  Request signal_request(int64_t words) const;
  // While an attempt waits, a second request joins it, or ends its waiting for replicas if it does
  // not want that. When the data cannot be saved the log says why, and the server serves on.
  void begin(const Request& request);
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
  // When replicas are waited for no more; 0 when none is waited for.
  int64_t replicas_deadline_us() const;
  void note_writes_ended(uint64_t attempt);
  // REQUIRES: mutex_.
  bool wait_is_over() const;
  void log_lagging_replicas() const;
  // REQUIRES: this thread has brought the state to kEnding.
  void finish();
  void take_back();

  const Parts parts_;
  std::atomic<State> state_{State::kNone};
  std::atomic<uint64_t> attempt_{0};
  std::atomic<int64_t> deadline_us_{0};  // of the wait for replicas; 0 for none
  // Orders changes of the state, and guards the members below.
  mutable OrderedMutex mutex_{LockRank::kShutdown};
  Request request_;
  std::optional<uint64_t> wanted_offset_;  // replicas must reach it; unknown before writes end
};

}  // namespace server
