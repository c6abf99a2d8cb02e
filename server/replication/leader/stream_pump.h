// SPDX-License-Identifier: MIT
//
// StreamPump: sends replicas their pending bytes without blocking, and sleeps until there are more
// or a socket accepts more.
//
// Invariants: a wake() after the last check ends the next sleep at once, so no append is missed.
// Thread safety: wake() and interrupt() from any thread; the rest belongs to the leader's thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/clock.h"
#include "server/replication/leader/replica_sender.h"
#include "server/replication/stream/backlog.h"

namespace server {

// A replica to send to.
struct StreamFlow {
  std::shared_ptr<ReplicaSender> link;
  bool has_stream = false;  // if false, only the bytes that precede the stream
};

// Events of a pass that the caller must handle.
struct PumpOutcome {
  std::vector<std::shared_ptr<ReplicaSender>> file_sent;
  std::vector<std::shared_ptr<ReplicaSender>> gone;
  uint64_t sent_bytes = 0;
};

class StreamPump {
 public:
  using LinkPtr = std::shared_ptr<ReplicaSender>;
  using Flow = StreamFlow;
  using Outcome = PumpOutcome;

  StreamPump(Backlog& backlog, const core::Clock& clock);

  Outcome pump(const std::vector<Flow>& flows);
  // `is_wanted` is called after wake() has become effective.
  void sleep(const std::vector<Flow>& flows, int timeout_ms,
             const std::function<bool()>& is_wanted);
  // Ends a sleep because there are bytes to send. Costs one load while the thread is awake.
  void wake();
  // Ends this sleep, or else the next one.
  void interrupt();

 private:
  bool is_behind(const std::vector<Flow>& flows) const;

  Backlog& backlog_;
  const core::Clock& clock_;
  const Descriptor wake_event_;
  std::atomic<bool> is_asleep_{false};
  std::vector<char> buffer_;
  std::vector<LinkPtr> blocked_;  // found by the last pump()
  bool has_more_ = false;         // whether bytes wait for their next turn
};

}  // namespace server
