// SPDX-License-Identifier: MIT
//
// StreamApplier: executes the units of a leader's stream.
//
// Invariants: an unknown command is skipped if it changes no keys, such as PUBLISH, or if the
// caller chose to skip all unknown commands. Otherwise the unit that contains the unknown command
// is rejected before any of its commands is executed. A command that fails is logged and counted,
// and the stream continues as it did on the leader. If data are missing because of the failure, the
// stream ends. But on a replica that evicts keys (replica-ignore-maxmemory no), commands on these
// keys may fail, and the stream continues.
// Thread safety: belongs to one thread; other threads may read StreamFigures.
// Source: docs/replication.md, "The replica's stream".
#pragma once

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

class Config;

class StreamApplier {
 public:
  enum class Unserved : uint8_t { kRefuse, kSkip };
  using Commands = std::span<const StreamSplitter::Command>;
  using Figures = StreamFigures;

  // `origin` says which server wrote the commands. `database` is selected before the first command.
  // `config` must outlive the StreamApplier.
  StreamApplier(std::unique_ptr<Replayer> replayer, CommandOrigin origin, unsigned database,
                Figures& figures, const Config& config);

  // Executes a unit: one command, or all commands from MULTI to EXEC. Errors: a command was
  // rejected, or has failed and may have left a part of the unit executed.
  core::Result<> apply(Commands commands, Unserved unserved);
  // Returns whether a failed command has made the data differ from the leader's.
  bool has_diverged() const { return has_diverged_; }
  // Returns the database selected by the commands so far.
  unsigned database() const { return database_; }

 private:
  core::Result<> apply_one(const StreamSplitter::Command& command, Unserved unserved);
  core::Result<> apply_group(Commands commands, Unserved unserved);
  core::Result<> refuse_or_skip(const StreamSplitter::Command& command, Unserved unserved);
  core::Result<> execute_queued(Commands served, const StreamSplitter::Command& exec);
  // Returns the origin whose rules decide whether an error loses data. If this server evicts keys,
  // its data differ from those of any leader, as they do from those of another kind of server.
  CommandOrigin origin_of_errors() const;
  std::optional<ReplayedError> execute(const StreamSplitter::Command& command);
  // Logs and counts a failed command. Errors: the failure loses data, so the stream must end.
  core::Result<> record_error(std::string_view name, const ReplayedError& error);
  void record_select(const StreamSplitter::Command& command);

  const std::unique_ptr<Replayer> replayer_;
  const CommandOrigin origin_;
  unsigned database_;
  Figures& figures_;
  const Config& config_;
  bool has_diverged_ = false;
  // Kinds of errors that were already logged. Each kind is logged only once.
  std::set<std::string> logged_;
};

}  // namespace server
