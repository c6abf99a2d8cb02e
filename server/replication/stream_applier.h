// SPDX-License-Identifier: MIT
//
// StreamApplier: carries out the units of a leader's stream.
//
// Invariants: a unit with a command that this server does not have is refused before any of it is
// carried out, or carried out without that command, as the caller says. An error that a command
// answers is logged and counted; the stream goes on, as it did at the leader.
// Thread safety: belongs to one thread; the figures may be read by others.
// Source: docs/replication.md, "The replica's stream".
#pragma once

#include <atomic>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "core/result.h"
#include "server/durability/recovery.h"
#include "server/replication/stream_splitter.h"

namespace server {

class StreamApplier {
 public:
  enum class Unserved : uint8_t { kRefuse, kSkip };
  using Commands = std::span<const StreamSplitter::Command>;
  struct Figures {
    std::atomic<uint64_t> failed_commands{0};
    std::atomic<uint64_t> skipped_commands{0};
  };

  // Its first command finds `database` selected.
  StreamApplier(std::unique_ptr<Replayer> replayer, unsigned database, Figures& figures);

  // A command alone, or all from MULTI to EXEC. Errors: what was refused.
  core::Result<> apply(Commands commands, Unserved unserved);
  // Selected by the commands so far.
  unsigned database() const { return database_; }

 private:
  core::Result<> apply_one(const StreamSplitter::Command& command, Unserved unserved);
  core::Result<> apply_group(Commands commands, Unserved unserved);
  core::Result<> refuse_or_skip(const StreamSplitter::Command& command, Unserved unserved);
  // The error of the reply, without '-'; empty when there is none.
  std::string execute(const StreamSplitter::Command& command);
  void note_error(std::string_view name, std::string_view error);
  void note_select(const StreamSplitter::Command& command);

  const std::unique_ptr<Replayer> replayer_;
  unsigned database_;
  Figures& figures_;
  std::set<std::string> told_;  // each kind of trouble is logged once
};

}  // namespace server
