// SPDX-License-Identifier: MIT
//
// StreamListener: what serves the stream to replicas, as Replication sees it.
//
// Thread safety: both are called from any thread, without the stripes' locks being relied on.
#pragma once

namespace server {

class StreamListener {
 public:
  // The stream is another one now: those that have read it so far must ask anew.
  virtual void on_stream_replaced() = 0;
  // The role is another one: whether writes need replicas follows from it.
  virtual void update_write_gate() = 0;

 protected:
  ~StreamListener() = default;
};

}  // namespace server
