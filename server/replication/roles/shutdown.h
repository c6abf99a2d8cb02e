// SPDX-License-Identifier: MIT
//
// Shutdown: ends the server on SHUTDOWN or a signal. New writes are held back and running ones end.
// On a leader, replicas get time to receive the rest of the stream. Then the data are saved and the
// process ends.
//
//   kNone ──begin()──► kWaits ──► kEnding ──► the process ends
//     ▲                  │abort()    │it could not be saved
//     └──────────────────┴───────────┘
//
// Invariants: the saved data, and the offset that replicas must reach, include every acknowledged
// write, because no write is running then. An attempt that fails or is aborted leaves the server as
// it was.
// Thread safety: all members may be called from any thread that holds no stripe lock. The data are
// saved by an I/O thread, for which begin() does not wait, or by look().
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
  // Ends the process cleanly, soon. Implemented by the server.
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
    FinalSave save = FinalSave::kNone;  // the append log is synced in any case
    bool is_forced = false;             // end even if the data cannot be saved
    // A signal's sender receives no error. So the server ends even if the append log fails.
    bool is_signal = false;
    bool waits_for_replicas = true;  // for at most shutdown-timeout
  };
  enum class State : uint8_t { kNone, kWaits, kEnding };

  explicit Shutdown(const Parts& parts) : parts_(parts) {}

  // Returns the request of SHUTDOWN without options: save points decide whether to save.
  Request usual_request() const;
  // Returns the request of a signal. `words` has the bits of shutdown-on-sigint or
  // shutdown-on-sigterm.
  Request signal_request(int64_t words) const;
  // If an attempt is waiting, a second request joins it, or ends its wait for replicas if it
  // requests no wait. If the data cannot be saved, the reason is logged and the server continues.
  void begin(const Request& request);
  // Errors: no attempt can be aborted.
  core::Result<> abort();
  // Continues the attempt if nothing remains to wait for.
  void look();

  State state() const { return state_.load(std::memory_order_acquire); }
  // Returns the number of the current attempt, for callers that wait for its end; 0 for none.
  uint64_t attempt() const { return state() == State::kNone ? 0 : attempt_.load(); }
  // Returns the time left to wait for replicas, or nullopt if none are waited for.
  std::optional<int64_t> left_ms() const;

 private:
  // Returns the deadline of the wait for replicas; 0 for no wait.
  int64_t replicas_deadline_us() const;
  void record_writes_ended(uint64_t attempt);
  // REQUIRES: mutex_.
  bool wait_is_over() const;
  void log_lagging_replicas() const;
  // REQUIRES: this thread has set the state to kEnding.
  void finish();
  void take_back();

  const Parts parts_;
  std::atomic<State> state_{State::kNone};
  std::atomic<uint64_t> attempt_{0};
  std::atomic<int64_t> deadline_us_{0};  // end of the wait for replicas; 0 for none
  // Serializes state changes, and guards the members below.
  mutable OrderedMutex mutex_{LockRank::kShutdown};
  Request request_;
  // replicas must reach it; unknown until all writes have ended
  std::optional<uint64_t> wanted_offset_;
};

}  // namespace server
