// SPDX-License-Identifier: MIT
#include "server/replication/replica/leader_handshake.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "core/number.h"
#include "persistence/journal.h"
#include "server/replication/stream/excerpt.h"
#include "server/replication/stream/ids.h"
#include "server/session/session.h"

namespace server {
namespace {

constexpr size_t kShownLineBytes = 200;
// An offset from a leader must be below this limit, which no real leader reaches.
constexpr int64_t kOffsetEnd = int64_t{1} << 62;

bool lacks_permission(std::string_view error) {
  return error.starts_with("-NOAUTH") || error.starts_with("-NOPERM");
}

}  // namespace

LeaderHandshake::LeaderHandshake(const Request& request, std::string& output)
    : request_(request), output_(output) {
  send({"PING"});
}

void LeaderHandshake::send(std::initializer_list<std::string_view> words) {
  persistence::append_command(output_, {words.begin(), words.size()});
}

LeaderHandshake::Outcome LeaderHandshake::fail(std::string reason) {
  failure_ = std::move(reason);
  return Outcome::kFailed;
}

bool LeaderHandshake::is_asked(Step step) const {
  if (step == Step::kAuth) return !request_.password.empty();
  if (step == Step::kAddress) return !request_.announced_address.empty();
  if (step == Step::kKind) return !request_.id.empty() && request_.cluster_epoch == 0;
  return step != Step::kEpoch || request_.cluster_epoch != 0;
}

// Sends all commands at once, because waiting for each reply would take a round trip.
void LeaderHandshake::send_settings() {
  if (is_asked(Step::kAuth)) {
    if (request_.user.empty()) {
      send({"AUTH", request_.password});
    } else {
      send({"AUTH", request_.user, request_.password});
    }
  }
  send({"REPLCONF", "listening-port", fmt::format("{}", request_.listening_port)});
  if (is_asked(Step::kAddress)) send({"REPLCONF", "ip-address", request_.announced_address});
  send({"REPLCONF", "capa", "eof", "capa", "psync2", "capa", kEffectsCapability});
  // Only a Bloomery knows the option. Version 1.0.0 answers that "?" is no node id.
  if (is_asked(Step::kKind)) send({"REPLCONF", "cluster-node", kAnyClusterNode});
  if (is_asked(Step::kEpoch)) {
    send({"REPLCONF", "cluster-epoch", fmt::format("{}", request_.cluster_epoch), "cluster-node",
          request_.cluster_node});
  }
}

void LeaderHandshake::ask() {
  const bool has_data = !request_.id.empty();
  const std::string id = has_data ? request_.id : "?";
  const std::string offset = fmt::format("{}", has_data ? request_.offset + 1 : -1);
  if (request_.takes_over) return send({"PSYNC", id, offset, "FAILOVER"});
  send({"PSYNC", id, offset});
}

LeaderHandshake::Outcome LeaderHandshake::take(std::string_view line) {
  // While a leader prepares a snapshot, it sends empty lines as keepalives.
  if (line.empty()) return Outcome::kNone;
  const bool is_error = line.front() == '-';
  if (step_ == Step::kPsync) return take_answer(line);
  if (step_ == Step::kPing) {
    const bool asks_for_password =
        lacks_permission(line) || line.starts_with("-ERR operation not permitted");
    if (line.front() != '+' && !asks_for_password) {
      return fail(fmt::format("the leader answers PING: {}", excerpt(line, kShownLineBytes)));
    }
    send_settings();
  } else if (step_ == Step::kAuth && is_error) {
    // The error for a rejected AUTH has the text of Redis, so that searches in logs find it.
    return fail(fmt::format("Unable to AUTH to MASTER: {} (masterauth, masteruser)",
                            excerpt(line, kShownLineBytes)));
  } else if (step_ == Step::kKind) {
    leader_is_foreign_ = is_error && line.substr(1).starts_with(kUnknownReplconf);
  } else if (step_ == Step::kEpoch && is_error) {
    return fail(fmt::format("the leader answers REPLCONF cluster-epoch: {}",
                            excerpt(line, kShownLineBytes)));
  }
  // An error reply to a REPLCONF without cluster-epoch is ignored. The leader then only lacks some
  // information about this replica.
  do {
    step_ = static_cast<Step>(static_cast<uint8_t>(step_) + 1);
  } while (!is_asked(step_));
  if (step_ == Step::kPsync) ask();
  return Outcome::kNone;
}

LeaderHandshake::Outcome LeaderHandshake::take_answer(std::string_view line) {
  constexpr std::string_view kFullResync = "+FULLRESYNC ";
  constexpr std::string_view kContinue = "+CONTINUE";
  if (line.starts_with(kFullResync)) return take_full_resync(line.substr(kFullResync.size()));
  if (line.starts_with(kContinue)) return take_continue(line.substr(kContinue.size()));
  if (line.starts_with("-NOMASTERLINK") || line.starts_with("-LOADING") || lacks_permission(line) ||
      line.front() != '-' || request_.takes_over) {
    return fail(fmt::format("the leader answers PSYNC: {}{}", excerpt(line, kShownLineBytes),
                            lacks_permission(line) ? " (masterauth, masteruser)" : ""));
  }
  // The leader does not know PSYNC, so the replica sends SYNC.
  send({"SYNC"});
  knows_psync_ = false;
  return Outcome::kFullSync;
}

LeaderHandshake::Outcome LeaderHandshake::take_full_resync(std::string_view arguments) {
  const size_t space = std::min(arguments.find(' '), arguments.size());
  const std::string_view id = arguments.substr(0, space);
  const auto offset = core::parse_int64(arguments.substr(std::min(space + 1, arguments.size())));
  if (!is_replication_id(id) || !offset || *offset < 0 || *offset >= kOffsetEnd) {
    return fail(fmt::format("the leader answers PSYNC: +FULLRESYNC {}",
                            excerpt(arguments, kShownLineBytes)));
  }
  id_ = id;
  offset_ = *offset;
  return Outcome::kFullSync;
}

LeaderHandshake::Outcome LeaderHandshake::take_continue(std::string_view arguments) {
  const bool has_id = arguments.starts_with(' ') && is_replication_id(arguments.substr(1));
  if (request_.id.empty() || (!arguments.empty() && !has_id)) {
    return fail(
        fmt::format("the leader answers PSYNC: +CONTINUE{}", excerpt(arguments, kShownLineBytes)));
  }
  id_ = has_id ? arguments.substr(1) : request_.id;
  offset_ = request_.offset;
  return Outcome::kContinue;
}

}  // namespace server
