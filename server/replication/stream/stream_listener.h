// SPDX-License-Identifier: MIT
//
// StreamListener: notified by Replication of changes that concern the replicas of this server.
//
// Thread safety: both are called from any thread, without the stripes' locks being relied on.
#pragma once

namespace server {

class StreamListener {
 public:
  // The stream has changed: its readers must ask anew.
  virtual void on_stream_replaced() = 0;
  // The role has changed, and with it whether writes need replicas.
  virtual void update_write_gate() = 0;

 protected:
  ~StreamListener() = default;
};

}  // namespace server
