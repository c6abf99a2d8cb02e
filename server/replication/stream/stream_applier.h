// SPDX-License-Identifier: MIT
//
// StreamApplier: carries out the units of a leader's stream.
//
// Invariants: a unit with a command that this server does not have is refused before any of it is
// carried out, or carried out without that command, as the caller says. A command that fails is
// logged and counted, and the stream goes on as it did at the leader, unless data are missing
// because of it: then the stream ends here.
// Thread safety: belongs to one thread; the figures may be read by others.
// Source: docs/replication.md, "The replica's stream".
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "core/result.h"
#include "server/replication/stream/stream_figures.h"
#include "server/replication/stream/stream_splitter.h"
#include "server/session/replayer.h"

namespace server {

struct ReplayedError;

class StreamApplier {
 public:
  enum class Unserved : uint8_t { kRefuse, kSkip };
  using Commands = std::span<const StreamSplitter::Command>;
  using Figures = StreamFigures;

  // `origin` is the replayer's. Its first command finds `database` selected.
  StreamApplier(std::unique_ptr<Replayer> replayer, CommandOrigin origin, unsigned database,
                Figures& figures);

  // A command alone, or all from MULTI to EXEC. Errors: what was refused, or what failed and may
  // have left a part of the unit behind.
  core::Result<> apply(Commands commands, Unserved unserved);
  // Whether one has failed so that the data are not the leader's any more.
  bool has_diverged() const { return has_diverged_; }
  // Selected by the commands so far.
  unsigned database() const { return database_; }

 private:
  core::Result<> apply_one(const StreamSplitter::Command& command, Unserved unserved);
  core::Result<> apply_group(Commands commands, Unserved unserved);
  core::Result<> refuse_or_skip(const StreamSplitter::Command& command, Unserved unserved);
  core::Result<> execute_queued(Commands served, const StreamSplitter::Command& exec);
  std::optional<ReplayedError> execute(const StreamSplitter::Command& command);
  // Errors: when the stream must end here.
  core::Result<> note_error(std::string_view name, const ReplayedError& error);
  void note_select(const StreamSplitter::Command& command);

  const std::unique_ptr<Replayer> replayer_;
  const CommandOrigin origin_;
  unsigned database_;
  Figures& figures_;
  bool has_diverged_ = false;
  std::set<std::string> told_;  // each kind of trouble is logged once
};

}  // namespace server
