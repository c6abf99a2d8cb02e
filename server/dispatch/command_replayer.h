// SPDX-License-Identifier: MIT
//
// CommandReplayer: executes the commands of a file or of a leader through the command table, in a
// session without a connection.
//
// Invariants: replayed commands are never rejected for lack of memory or permissions, and do not
// expire keys. They count in the statistics only if statistics were given: as in Redis, a leader's
// commands count and a file's do not. Commands that change no data are rejected: only clients may
// shut the server down or change its settings.
// Thread safety: belongs to one thread.
#pragma once

#include <string>
#include <utility>

#include "core/clock.h"
#include "server/base/metrics/statistics.h"
#include "server/dispatch/dispatcher.h"
#include "server/dispatch/environment.h"
#include "server/dispatch/registry.h"
#include "server/session/replayer.h"
#include "server/session/session.h"

namespace server {

class CommandReplayer final : public Replayer {
 public:
  static constexpr std::string_view kNoChange = "ERR a command that changes no data";

  CommandReplayer(Environment& environment, CommandOrigin origin,
                  ThreadStatistics* counters = nullptr, std::string source = "")
      : environment_(environment),
        uncounted_(environment.registry.size()),
        session_(0),
        dispatcher_(environment, counters == nullptr ? uncounted_ : *counters, session_) {
    session_.origin = origin;
    session_.authenticated = true;
    // SLOWLOG and MONITOR show the name of the commands' source as the client's address.
    session_.client->address = std::move(source);
  }
  ~CommandReplayer() override { dispatcher_.end_session(); }

  std::string_view execute(Arguments arguments) override {
    replies_.clear();
    replies_.shrink(kReplyBytesKept);
    const RegisteredCommand* const command = environment_.registry.find_replayed(arguments.front());
    if (command != nullptr && !command->has(kWrite | kMayReplicate | kInJournal)) {
      protocol::ReplyWriter(replies_, session_.client->resp).error(kNoChange);
      return replies_.view();
    }
    dispatcher_.execute(arguments, environment_.clock.wall_ms(), replies_);
    return replies_.view();
  }

 private:
  static constexpr size_t kReplyBytesKept = size_t{1} << 20;

  Environment& environment_;
  ThreadStatistics uncounted_;
  Session session_;
  Dispatcher dispatcher_;
  protocol::OutputBuffer replies_;
};

}  // namespace server
