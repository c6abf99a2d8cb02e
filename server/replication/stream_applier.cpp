// SPDX-License-Identifier: MIT
#include "server/replication/stream_applier.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "core/number.h"
#include "protocol/arguments.h"
#include "protocol/reply_parser.h"
#include "server/log.h"
#include "server/replication/shown.h"

namespace server {
namespace {

constexpr std::string_view kUnknownCommand = "ERR unknown command";
// What a leader tells its replicas besides changes of keys: nothing is lost without it.
constexpr std::array<std::string_view, 4> kDispensable = {"PUBLISH", "SPUBLISH", "SCRIPT",
                                                          "FUNCTION"};
// Names come from the leader: no more are remembered.
constexpr size_t kToldMax = 1000;
constexpr size_t kNameBytesMax = 64;

bool is_dispensable(std::string_view name) {
  return std::any_of(kDispensable.begin(), kDispensable.end(), [&](std::string_view known) {
    return protocol::equals_ignore_case(name, known);
  });
}

}  // namespace

StreamApplier::StreamApplier(std::unique_ptr<Replayer> replayer, unsigned database,
                             Figures& figures)
    : replayer_(std::move(replayer)), database_(database), figures_(figures) {
  if (database != 0) {
    const std::string number = fmt::format("{}", database);
    (void)execute({"SELECT", number});
  }
}

core::Result<> StreamApplier::apply(Commands commands, Unserved unserved) {
  return commands.size() == 1 ? apply_one(commands.front(), unserved)
                              : apply_group(commands, unserved);
}

core::Result<> StreamApplier::apply_one(const StreamSplitter::Command& command, Unserved unserved) {
  const std::string error = execute(command);
  if (error.empty()) {
    note_select(command);
    return {};
  }
  if (error.starts_with(kUnknownCommand)) return refuse_or_skip(command, unserved);
  note_error(command.front(), error);
  return {};
}

core::Result<> StreamApplier::apply_group(Commands commands, Unserved unserved) {
  std::vector<StreamSplitter::Command> served;
  served.push_back(commands.front());
  bool is_whole = true;
  (void)execute(commands.front());
  for (const StreamSplitter::Command& command : commands.subspan(1, commands.size() - 2)) {
    const std::string error = execute(command);
    if (error.empty()) {
      served.push_back(command);
      continue;
    }
    is_whole = false;
    if (!error.starts_with(kUnknownCommand)) {
      note_error(command.front(), error);
    } else if (auto skipped = refuse_or_skip(command, unserved); !skipped) {
      (void)execute({"DISCARD"});
      return skipped;
    }
  }
  if (!is_whole) {
    // A queue that has refused something runs nothing: once more, with what it takes.
    (void)execute({"DISCARD"});
    for (const StreamSplitter::Command& command : served) (void)execute(command);
  }
  const std::string_view reply = replayer_->execute(commands.back());
  protocol::ReplyParser parser;
  if (parser.parse(reply) != protocol::ReplyParser::Status::kReply) {
    note_error(commands.back().front(), "ERR a reply that cannot be read");
    return {};
  }
  if (parser.reply().is_error()) {
    note_error(commands.back().front(), parser.reply().text);
    return {};
  }
  const auto& replies = parser.reply().elements;
  for (size_t i = 0; i < replies.size() && i + 1 < served.size(); ++i) {
    if (replies[i].is_error()) {
      note_error(served[i + 1].front(), replies[i].text);
    } else {
      note_select(served[i + 1]);
    }
  }
  return {};
}

std::string StreamApplier::execute(const StreamSplitter::Command& command) {
  const std::string_view reply = replayer_->execute(command);
  if (!reply.starts_with('-')) return {};
  return std::string(reply.substr(1, reply.find('\r') - 1));
}

core::Result<> StreamApplier::refuse_or_skip(const StreamSplitter::Command& command,
                                             Unserved unserved) {
  const std::string name = shown(command.front(), kNameBytesMax);
  if (unserved == Unserved::kRefuse && !is_dispensable(name)) {
    return core::Error{fmt::format(
        "it sends '{}', which this server does not have (rdb-foreign-types skip leaves it out)",
        name)};
  }
  ++figures_.skipped_commands;
  if (told_.size() < kToldMax && told_.insert(name).second) {
    log_notice("The leader sends '{}', which is left out: this server does not have it", name);
  }
  return {};
}

void StreamApplier::note_error(std::string_view name, std::string_view error) {
  ++figures_.failed_commands;
  const std::string kind = fmt::format("{} {}", shown(name, kNameBytesMax),
                                       shown(error.substr(0, error.find(' ')), kNameBytesMax));
  if (told_.size() >= kToldMax || !told_.insert(kind).second) return;
  log_warning("A command of the leader failed: '{}': {}. Later ones of its kind are only counted",
              shown(name, kNameBytesMax), error);
}

void StreamApplier::note_select(const StreamSplitter::Command& command) {
  if (command.size() != 2 || !protocol::equals_ignore_case(command[0], "SELECT")) return;
  if (const auto number = core::parse_int64(command[1])) {
    database_ = static_cast<unsigned>(*number);
  }
}

}  // namespace server
