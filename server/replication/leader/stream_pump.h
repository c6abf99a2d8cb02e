// SPDX-License-Identifier: MIT
//
// StreamPump: sends replicas their pending bytes without blocking. It sleeps until there are more
// bytes to send, or until a socket accepts more.
//
// Invariants: no append is missed: once sleep() has checked for unsent bytes, any wake() ends the
// sleep.
// Thread safety: any thread may call wake() and interrupt(). Only the leader's thread may call the
// other members.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/clock.h"
#include "server/base/process/waker.h"
#include "server/replication/leader/replica_sender.h"
#include "server/replication/stream/backlog.h"

namespace server {

// A replica that can receive bytes.
struct StreamFlow {
  std::shared_ptr<ReplicaSender> link;
  bool has_stream = false;  // if false, the replica receives only the bytes that precede the stream
};

// The results of one pump(), which the caller must handle.
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
  // Sleeps until there is work, or for the timeout. Does not sleep if `is_wanted` returns true. A
  // wake() during or after the call of `is_wanted` ends the sleep.
  void sleep(const std::vector<Flow>& flows, int timeout_ms,
             const std::function<bool()>& is_wanted);
  // Ends the sleep because there are bytes to send. If the thread is awake, the call only exchanges
  // one atomic variable.
  void wake();
  // Ends the present sleep. If the thread is awake, its next sleep ends at once.
  void interrupt();

 private:
  bool is_behind(const std::vector<Flow>& flows) const;

  Backlog& backlog_;
  const core::Clock& clock_;
  Waker waker_;
  std::atomic<bool> is_asleep_{false};
  std::vector<char> buffer_;
  // Replicas whose sockets accepted no more bytes in the last pump().
  std::vector<LinkPtr> blocked_;
  bool has_more_ = false;  // true if a replica has pending bytes that the next pump() sends
};

}  // namespace server
