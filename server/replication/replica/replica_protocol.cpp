// SPDX-License-Identifier: MIT
#include "server/replication/replica/replica_protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>

#include "core/memory/release_storage.h"
#include "core/number.h"
#include "persistence/journal.h"
#include "protocol/arguments.h"
#include "server/replication/leader/replica_state.h"
#include "server/replication/stream/excerpt.h"

namespace server {
namespace {

// Limit on the length of a line. Real leaders send shorter ones.
constexpr size_t kLineBytesMax = 4096;
constexpr size_t kShownBytesMax = 200;
constexpr int64_t kAckEveryUs = 1'000'000;

}  // namespace

ReplicaProtocol::ReplicaProtocol(Request request, int64_t now_us)
    : request_(std::move(request)),
      handshake_(request_, output_),
      splitter_(request_.unit_bytes_max),
      last_received_us_(now_us) {}

ReplicaProtocol::Event ReplicaProtocol::fail(std::string_view reason) {
  if (phase_ != Phase::kFailed) failure_ = reason;
  phase_ = Phase::kFailed;
  if (std::exchange(is_failure_reported_, true)) return Event::kNone;
  return Event::kFailed;
}

void ReplicaProtocol::receive(std::string_view bytes, int64_t now_us) {
  if (phase_ == Phase::kFailed) return;
  last_received_us_ = now_us;
  if (phase_ == Phase::kStream) return splitter_.append(bytes);
  input_.erase(0, used_);
  used_ = 0;
  input_.append(bytes);
}

ReplicaProtocol::Event ReplicaProtocol::next() {
  offset_ += static_cast<int64_t>(std::exchange(unit_bytes_, 0));
  switch (phase_) {
    case Phase::kHandshake:
      return read_handshake();
    case Phase::kAwaitsSnapshot:
      return read_announcement();
    case Phase::kSnapshot:
      return read_snapshot();
    case Phase::kLoading:
      return Event::kNone;
    case Phase::kStream:
      return read_stream();
    case Phase::kFailed:
      return fail(failure_);
  }
  return Event::kNone;
}

void ReplicaProtocol::tick(int64_t now_us) {
  if (phase_ == Phase::kFailed || phase_ == Phase::kLoading) return;
  if (now_us - last_received_us_ > request_.timeout_us) {
    failure_ = "the leader has been silent for too long (repl-timeout)";
    phase_ = Phase::kFailed;
    return;
  }
  if (phase_ != Phase::kStream || now_us < next_ack_us_) return;
  next_ack_us_ = now_us + kAckEveryUs;
  send_ack();
}

void ReplicaProtocol::loaded(int64_t now_us) {
  if (phase_ != Phase::kLoading) return;
  last_received_us_ = now_us;
  begin_stream();
  // A leader that sends an end mark starts the stream only after this acknowledgement.
  next_ack_us_ = now_us + kAckEveryUs;
  send_ack();
}

void ReplicaProtocol::begin_stream() {
  phase_ = Phase::kStream;
  splitter_.append(input());
  core::release_storage(input_);
  used_ = 0;
}

void ReplicaProtocol::keep_alive(int64_t now_us) {
  last_received_us_ = now_us;
  output_ += '\n';
}

void ReplicaProtocol::set_log(ReportedLog log) {
  if (std::exchange(log_, log).fails != log.fails) next_ack_us_ = 0;
}

void ReplicaProtocol::send_ack() {
  if (!handshake_.knows_psync()) return;
  const core::Decimal offset(offset_);
  const core::Decimal synced(std::min(log_.synced_offset, offset_));
  std::array<std::string_view, 7> words = {"REPLCONF", "ACK", offset.text()};
  size_t count = 3;
  const auto add = [&](std::string_view option, std::string_view value) {
    words[count++] = option;
    words[count++] = value;
  };
  if (log_.synced_offset >= 0) add("FACK", synced.text());
  // A leader of an older version, or of Redis, ignores all words after those that it knows.
  if (log_.fails && !request_.cluster_node.empty()) add(kAckLogOption, kAckLogFails);
  persistence::append_command(output_, std::span(words).first(count));
}

int64_t ReplicaProtocol::received_offset() const {
  return offset_ + static_cast<int64_t>(unit_bytes_ + splitter_.pending_bytes());
}

bool ReplicaProtocol::take_line(std::string_view& line) {
  const std::string_view rest = input();
  const size_t end = rest.find('\n');
  if (end == std::string_view::npos) return false;
  line = rest.substr(0, end);
  if (line.ends_with('\r')) line.remove_suffix(1);
  used_ += end + 1;
  return true;
}

ReplicaProtocol::Event ReplicaProtocol::wait_for_line() {
  if (input().size() > kLineBytesMax) return fail("the leader's line does not end");
  return Event::kNone;
}

ReplicaProtocol::Event ReplicaProtocol::read_handshake() {
  using Outcome = LeaderHandshake::Outcome;
  Outcome outcome = Outcome::kNone;
  for (std::string_view line; outcome == Outcome::kNone; outcome = handshake_.take(line)) {
    if (!take_line(line)) return wait_for_line();
  }
  if (outcome == Outcome::kFailed) return fail(handshake_.failure());
  id_ = handshake_.id();
  offset_ = handshake_.offset();
  if (outcome == Outcome::kContinue) {
    begin_stream();
    return Event::kContinue;
  }
  phase_ = Phase::kAwaitsSnapshot;
  return Event::kFullSync;
}

ReplicaProtocol::Event ReplicaProtocol::read_announcement() {
  std::string_view line;
  while (line.empty()) {
    if (!take_line(line)) return wait_for_line();
  }
  if (!snapshot_.announce(line)) {
    const std::string_view what = line.front() == '$' ? "the leader announces a snapshot of"
                                                      : "instead of a snapshot the leader sends:";
    return fail(fmt::format("{} {}", what, excerpt(line, kShownBytesMax)));
  }
  phase_ = Phase::kSnapshot;
  return read_snapshot();
}

ReplicaProtocol::Event ReplicaProtocol::read_snapshot() {
  const SnapshotReceiver::Piece piece = snapshot_.next(input());
  snapshot_bytes_ = input().substr(0, piece.snapshot_bytes);
  used_ += piece.snapshot_bytes + piece.mark_bytes;
  if (piece.is_end) {
    phase_ = Phase::kLoading;
    return Event::kSnapshotEnd;
  }
  return snapshot_bytes_.empty() ? Event::kNone : Event::kSnapshotBytes;
}

ReplicaProtocol::Event ReplicaProtocol::read_stream() {
  const auto status = splitter_.next();
  if (status == StreamSplitter::Status::kNeedMore) return Event::kNone;
  if (status == StreamSplitter::Status::kError) {
    return fail(fmt::format("the leader's stream: {}", excerpt(splitter_.error(), kShownBytesMax)));
  }
  unit_bytes_ = splitter_.bytes().size();
  const StreamSplitter::Command& command = splitter_.commands().front();
  const bool is_replconf = protocol::equals_ignore_case(command[0], "REPLCONF");
  is_unit_of_link_ =
      !splitter_.is_group() && (is_replconf || protocol::equals_ignore_case(command[0], "PING"));
  // As in Redis, the acknowledged offset does not include the GETACK command itself.
  if (is_unit_of_link_ && is_replconf && command.size() > 1 &&
      protocol::equals_ignore_case(command[1], "GETACK")) {
    send_ack();
    // The leader may wait until this replica acknowledges the GETACK command as well. So the next
    // tick() sends another acknowledgement, whose offset includes this command.
    next_ack_us_ = 0;
  }
  return Event::kUnit;
}

}  // namespace server
