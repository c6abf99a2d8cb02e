// SPDX-License-Identifier: MIT
//
// StreamPump: sends replicas their pending bytes, without blocking, and sleeps until there is
// more or a socket takes more.
//
// Invariants: a wake() after the last look ends the next sleep at once, so no append is missed.
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
  bool has_stream = false;  // else only what comes before the stream
};

// What a pass has met, for the caller to handle.
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
  // `is_wanted` is asked after the last moment at which wake() would do nothing.
  void sleep(const std::vector<Flow>& flows, int timeout_ms,
             const std::function<bool()>& is_wanted);
  // Ends a sleep: there is something to send. Costs one load while the thread is awake.
  void wake();
  // Ends this sleep or else the next one.
  void interrupt();

 private:
  bool is_behind(const std::vector<Flow>& flows) const;

  Backlog& backlog_;
  const core::Clock& clock_;
  const Descriptor wake_event_;
  std::atomic<bool> is_asleep_{false};
  std::vector<char> buffer_;
  std::vector<LinkPtr> blocked_;  // by the last pump()
  bool has_more_ = false;         // that waits for its turn
};

}  // namespace server
