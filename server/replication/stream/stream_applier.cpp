// SPDX-License-Identifier: MIT
#include "server/replication/stream/stream_applier.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/keyspace/eviction_pool.h"
#include "core/number.h"
#include "protocol/arguments.h"
#include "server/base/config/config.h"
#include "server/base/log/log.h"
#include "server/replication/stream/excerpt.h"
#include "server/session/replayed_error.h"

namespace server {
namespace {

// Commands in a leader's stream that change no keys, so that skipping them loses no data.
constexpr std::array<std::string_view, 4> kDispensable = {"PUBLISH", "SPUBLISH", "SCRIPT",
                                                          "FUNCTION"};
// The set of logged names and errors is limited, because a faulty leader can send any number of
// different unknown commands.
constexpr size_t kLoggedMax = 1000;
constexpr size_t kNameBytesMax = 64;
constexpr size_t kErrorBytesMax = 200;

bool is_dispensable(std::string_view name) {
  return std::any_of(kDispensable.begin(), kDispensable.end(), [&](std::string_view known) {
    return protocol::equals_ignore_case(name, known);
  });
}

// Returns whether the command failed because this server does not have it. FUNCTION and SCRIPT are
// known, but their subcommands that change scripts are not there.
bool is_left_out(const StreamSplitter::Command& command, const ReplayedError& error) {
  return error.is_unknown_command || is_dispensable(command.front());
}

}  // namespace

StreamApplier::StreamApplier(std::unique_ptr<Replayer> replayer, CommandOrigin origin,
                             unsigned database, Figures& figures, const Config& config)
    : replayer_(std::move(replayer)),
      origin_(origin),
      database_(database),
      figures_(figures),
      config_(config) {
  if (database == 0) return;
  const std::string number = fmt::format("{}", database);
  // If the database does not exist, all later commands would change keys of another database.
  if (execute({"SELECT", number})) has_diverged_ = true;
}

core::Result<> StreamApplier::apply(Commands commands, Unserved unserved) {
  if (has_diverged_) return core::Error{"the stream's database is not there (see `databases`)"};
  return commands.size() == 1 ? apply_one(commands.front(), unserved)
                              : apply_group(commands, unserved);
}

core::Result<> StreamApplier::apply_one(const StreamSplitter::Command& command, Unserved unserved) {
  const auto error = execute(command);
  if (!error) {
    record_select(command);
    return {};
  }
  if (is_left_out(command, *error)) return refuse_or_skip(command, unserved);
  return record_error(command.front(), *error);
}

core::Result<> StreamApplier::apply_group(Commands commands, Unserved unserved) {
  std::vector<StreamSplitter::Command> served;
  served.push_back(commands.front());
  bool is_whole = true;
  (void)execute(commands.front());
  for (const StreamSplitter::Command& command : commands.subspan(1, commands.size() - 2)) {
    const auto error = execute(command);
    if (!error) {
      served.push_back(command);
      continue;
    }
    is_whole = false;
    const auto handled = is_left_out(command, *error) ? refuse_or_skip(command, unserved)
                                                      : record_error(command.front(), *error);
    if (!handled) {
      (void)execute({"DISCARD"});
      return handled;
    }
  }
  if (!is_whole) {
    // A command was rejected while it was queued, so EXEC would discard the whole transaction. The
    // transaction is discarded here, and a new one gets only the accepted commands.
    (void)execute({"DISCARD"});
    for (const StreamSplitter::Command& command : served) (void)execute(command);
  }
  return execute_queued(served, commands.back());
}

// Executes the accepted commands of a transaction. REQUIRES: `served` begins with MULTI.
core::Result<> StreamApplier::execute_queued(Commands served, const StreamSplitter::Command& exec) {
  const auto reply = read_reply(replayer_->execute(exec));
  if (!reply) {
    return record_error(exec.front(), {"ERR a reply that cannot be read",
                                       origin_of_errors() == CommandOrigin::kOwnJournal});
  }
  if (const auto error =
          reply->is_error() ? find_error(origin_of_errors(), exec.front(), *reply) : std::nullopt) {
    return record_error(exec.front(), *error);
  }
  core::Result<> done;
  for (size_t i = 0; i < reply->elements.size() && i + 1 < served.size(); ++i) {
    const StreamSplitter::Command& command = served[i + 1];
    if (const auto error = find_error(origin_of_errors(), command.front(), reply->elements[i])) {
      if (auto noted = record_error(command.front(), *error); !noted && done) done = noted;
    } else {
      record_select(command);
    }
  }
  return done;
}

CommandOrigin StreamApplier::origin_of_errors() const {
  constexpr auto kNever = static_cast<int64_t>(core::keyspace::EvictionPolicy::kNoEviction);
  const bool evicts = config_.max_memory_bytes() != 0 &&
                      !config_.flag(OptionId::kReplicaIgnoreMaxMemory) &&
                      config_.integer(OptionId::kMaxMemoryPolicy) != kNever;
  return evicts ? CommandOrigin::kForeignJournal : origin_;
}

std::optional<ReplayedError> StreamApplier::execute(const StreamSplitter::Command& command) {
  return find_error(origin_of_errors(), command.front(), replayer_->execute(command));
}

core::Result<> StreamApplier::refuse_or_skip(const StreamSplitter::Command& command,
                                             Unserved unserved) {
  const std::string name = excerpt(command.front(), kNameBytesMax);
  if (unserved == Unserved::kRefuse && !is_dispensable(name)) {
    return core::Error{
        fmt::format(
            "it sends '{}', which this server does not have (rdb-foreign-types skip leaves it out)",
            name),
        core::ErrorCode::kUnsupported};
  }
  ++figures_.skipped_commands;
  if (logged_.size() < kLoggedMax && logged_.insert(name).second) {
    log_notice("The leader sends '{}', which is left out: this server does not have it", name);
  }
  return {};
}

core::Result<> StreamApplier::record_error(std::string_view name, const ReplayedError& error) {
  ++figures_.failed_commands;
  const std::string printable_name = excerpt(name, kNameBytesMax);
  const std::string printable_text = excerpt(error.text, kErrorBytesMax);
  if (error.loses_data) {
    has_diverged_ = true;
    return core::Error{fmt::format("its '{}' failed here, so that all data shall come anew: {}",
                                   printable_name, printable_text)};
  }
  const std::string kind = fmt::format(
      "{} {}", printable_name, excerpt(error.text.substr(0, error.text.find(' ')), kNameBytesMax));
  if (logged_.size() < kLoggedMax && logged_.insert(kind).second) {
    log_warning("A command of the leader failed: '{}': {}. Later ones of its kind are only counted",
                printable_name, printable_text);
  }
  return {};
}

void StreamApplier::record_select(const StreamSplitter::Command& command) {
  if (command.size() != 2 || !protocol::equals_ignore_case(command[0], "SELECT")) return;
  if (const auto number = core::parse_int64(command[1])) {
    database_ = static_cast<unsigned>(*number);
  }
}

}  // namespace server
