// SPDX-License-Identifier: MIT
//
// Failover: the state machine of FAILOVER, by which a leader hands over its role to a replica. It
// only decides; ReplicaController executes the decisions.
//
//   kNone ──begin()──► kAwaitsSync ──hand_over()──► kInProgress ──end()──► kNone
//                           └──────────────end()────────────────────────────┘
//
// Invariants: the role is handed over only after all writes have ended. Without FORCE it goes only
// to a replica that has every byte of the stream. Times are monotonic and given by the caller.
// Thread safety: state() may be called from any thread. ReplicaController serializes all other
// calls.
// Source: FAILOVER as in Redis 7.0.15; docs/replication.md, "Handing over".
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"

namespace server {

class Failover {
 public:
  enum class State : uint8_t { kNone, kAwaitsSync, kInProgress };
  struct Address {
    std::string host;
    uint16_t port = 0;
    bool operator==(const Address&) const = default;
  };
  struct Request {
    // The replica that must take over; nullopt: the first one that has the whole stream.
    std::optional<Address> target;
    bool is_forced = false;
    int64_t timeout_ms = 0;  // time limit of the failover; 0: none
  };
  // The state of a replica, as this leader knows it.
  struct Candidate {
    Address address;
    bool is_online = false;
    uint64_t acked = 0;
  };
  struct Decision {
    enum class Kind : uint8_t { kWait, kHandOver, kGiveUp };
    Kind kind = Kind::kWait;
    Address target;
  };

  State state() const { return state_.load(std::memory_order_acquire); }

  // Starts an attempt. Errors: the reply to the client. After an error the state is unchanged.
  core::Result<> begin(const Request& request, bool is_replica,
                       std::span<const Candidate> candidates, int64_t now_us);
  // Returns the number of the attempt. Events of other attempts are ignored.
  uint64_t attempt() const { return attempt_; }
  // Called when all running writes have ended and no new one can start.
  void record_writes_ended(uint64_t attempt);
  // Decides the next action. `offset` is the end of the stream.
  Decision decide(uint64_t offset, std::span<const Candidate> candidates, int64_t now_us) const;
  void hand_over() { state_ = State::kInProgress; }
  void end() { state_ = State::kNone; }

 private:
  std::atomic<State> state_{State::kNone};
  Request request_;
  uint64_t attempt_ = 0;
  bool writes_have_ended_ = false;
  int64_t deadline_us_ = 0;
};

// Returns the state's name as INFO shows it.
std::string_view failover_state_name(Failover::State state);

}  // namespace server
