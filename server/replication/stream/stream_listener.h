// SPDX-License-Identifier: MIT
//
// StreamListener: the interface by which Replication notifies Leader, which serves this server's
// replicas.
//
// Thread safety: any thread may call both functions, with or without stripe locks.
#pragma once

namespace server {

class StreamListener {
 public:
  // Called when the stream was replaced. All connected replicas must then reconnect and send PSYNC
  // again.
  virtual void on_stream_replaced() = 0;
  // Called when the role has changed. Checks again whether min-replicas-to-write forbids writes,
  // because this option applies only to a leader.
  virtual void update_write_gate() = 0;

 protected:
  ~StreamListener() = default;
};

}  // namespace server
