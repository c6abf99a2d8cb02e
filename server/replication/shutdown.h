// SPDX-License-Identifier: MIT
//
// Shutdown: ends the server on SHUTDOWN or a signal. New writes are held back and running ones end.
// On a leader, replicas get time to receive the rest of the stream. Then the data are saved and the
// process ends.
//
//   kNone ──begin()──► kWaits ──► kEnding ──► the process ends
//     ▲                  │abort()    │the save failed
//     └──────────────────┴───────────┘
//
// Invariants: the saved data, and the offset that replicas must reach, include every acknowledged
// write, because both are determined when no write is running. An attempt that fails or is aborted
// leaves the server as it was.
// Thread safety: all members may be called from any thread that holds no stripe lock. An I/O thread
// or the caller of look() saves the data. The first begin() does not wait for the save. A later one
// that ends the wait may save the data on the caller's thread.
// Source: SHUTDOWN as in Redis 7.0.15.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string_view>

#include "core/result.h"
#include "server/base/process/ordered_mutex.h"
#include "server/durability/durability.h"
#include "server/replication/stream/replication_parts.h"

namespace server {

class Leader;
class PauseGate;
class Replication;

inline constexpr std::string_view kNoShutdown = "ERR No shutdown in progress.";

class Shutdown {
 public:
  // Process: ends the process soon and cleanly. The server implements this interface.
  class Process {
   public:
    virtual void end() = 0;

   protected:
    ~Process() = default;
  };
  struct Parts : ReplicationParts {
    Replication& replication;
    Leader& leader;
    PauseGate& pause;
    Process& process;
  };
  struct Request {
    // Whether to save a snapshot; without a value, the save points decide. The append log is synced
    // in all cases.
    std::optional<FinalSave> save = std::nullopt;
    bool is_forced = false;  // true to end the process even if the data cannot be saved

    // True for a request by a signal, whose sender receives no error. So the server ends even if
    // the append log fails.
    bool is_signal = false;
    bool waits_for_replicas = true;  // true to wait for replicas, for at most shutdown-timeout
  };
  enum class State : uint8_t { kNone, kWaits, kEnding };

  explicit Shutdown(const Parts& parts) : parts_(parts) {}

  // Returns the request that a received SIGINT or SIGTERM makes. `words` is the value of
  // shutdown-on-sigint or shutdown-on-sigterm, with one bit for each word.
  Request signal_request(int64_t words) const;
  // Starts an attempt to shut down. If an attempt is waiting already, this request joins it if
  // it does not wait for replicas. It ends the wait of that attempt, and changes whether to save a
  // snapshot only if it says so. If the data cannot be saved, the reason is logged, and the server
  // continues. Two kinds of requests end the server even then: a forced request, and a signal while
  // the append log fails.
  void begin(const Request& request);
  // Aborts the waiting attempt. Errors: no attempt is waiting.
  core::Result<> abort();
  // Continues a waiting attempt to shut down when its wait has ended. Must be called often.
  void look();

  State state() const { return state_.load(std::memory_order_acquire); }
  // Returns the number of the current attempt, for callers that wait for its end; 0 for none.
  uint64_t attempt() const { return state() == State::kNone ? 0 : attempt_.load(); }
  // Returns the remaining time of the wait for replicas; nullopt if there is no wait.
  std::optional<int64_t> left_ms() const;

 private:
  FinalSave usual_save() const;
  // Returns the deadline of the wait for replicas; 0 for no wait.
  int64_t replicas_deadline_us() const;
  void record_writes_ended(uint64_t attempt);
  // Returns whether the wait for replicas is over. The caller must hold mutex_.
  bool wait_is_over() const;
  void log_lagging_replicas() const;
  // Saves the data and ends the process. REQUIRES: this thread has set the state to kEnding.
  void finish();
  void take_back();

  const Parts parts_;
  std::atomic<State> state_{State::kNone};
  std::atomic<uint64_t> attempt_{0};
  std::atomic<int64_t> deadline_us_{0};  // end of the wait for replicas; 0 for none

  // This mutex serializes state changes, except the end of kEnding, and guards the members below.
  mutable OrderedMutex mutex_{LockRank::kShutdown};
  Request request_;
  // Offset that the replicas must reach; unknown until all writes have ended.
  std::optional<uint64_t> wanted_offset_;
};

}  // namespace server
