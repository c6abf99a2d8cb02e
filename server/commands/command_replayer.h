// SPDX-License-Identifier: MIT
//
// CommandReplayer: executes the commands of a file, or of a leader, through the command table, as a
// client of no connection.
//
// Invariants: its commands are not refused for want of memory or rights, do not let keys expire,
// and count in no statistics.
// Thread safety: belongs to one thread.
#pragma once

#include "server/commands/dispatcher.h"
#include "server/durability/recovery.h"

namespace server {

class CommandReplayer final : public Replayer {
 public:
  CommandReplayer(Services& services, CommandOrigin origin)
      : services_(services),
        counters_(services.registry.size()),
        session_(0),
        dispatcher_(services, counters_, session_) {
    session_.origin = origin;
    session_.authenticated = true;
  }
  ~CommandReplayer() override { dispatcher_.end_session(); }

  std::string_view execute(persistence::Words words) override {
    replies_.clear();
    dispatcher_.execute(words, services_.clock.wall_ms(), replies_);
    return replies_.view();
  }

 private:
  Services& services_;
  ThreadStatistics counters_;
  Session session_;
  Dispatcher dispatcher_;
  protocol::OutputBuffer replies_;
};

}  // namespace server
