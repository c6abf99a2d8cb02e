// SPDX-License-Identifier: MIT
#include "server/replication/follower/follower_protocol.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/release_storage.h"
#include "persistence/journal.h"
#include "protocol/arguments.h"
#include "server/replication/stream/shown.h"
#include "server/session/session.h"

namespace server {
namespace {

constexpr size_t kIdDigits = 40;
constexpr size_t kMarkBytes = 40;
// Longer lines no leader sends.
constexpr size_t kLineBytesMax = 4096;
constexpr size_t kShownBytesMax = 200;
constexpr int64_t kAckEveryUs = 1'000'000;
// Offsets count on from where they stand: no leader stands near the end.
constexpr int64_t kOffsetMax = int64_t{1} << 62;
constexpr std::string_view kMarkPrefix = "EOF:";

bool is_id(std::string_view text) {
  return text.size() == kIdDigits && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
         });
}

bool lacks_permission(std::string_view error) {
  return error.starts_with("-NOAUTH") || error.starts_with("-NOPERM");
}

// A count of bytes; -1 when the text is something else.
int64_t parse_count(std::string_view text) {
  int64_t value = -1;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  const bool is_sound = parsed.ec == std::errc() && parsed.ptr == end && value >= 0 &&
                        value < kOffsetMax && text.front() != '-';
  return is_sound ? value : -1;
}

}  // namespace

FollowerProtocol::FollowerProtocol(Request request, int64_t now_us)
    : request_(std::move(request)), splitter_(request_.unit_bytes_max), last_received_us_(now_us) {
  send({"PING"});
}

void FollowerProtocol::send(std::initializer_list<std::string_view> words) {
  persistence::append_command(output_, {words.begin(), words.size()});
}

std::string FollowerProtocol::take_output() {
  return std::exchange(output_, {});
}

FollowerProtocol::Event FollowerProtocol::fail(std::string_view reason) {
  if (phase_ != Phase::kFailed) failure_ = reason;
  phase_ = Phase::kFailed;
  if (std::exchange(is_failure_told_, true)) return Event::kNone;
  return Event::kFailed;
}

void FollowerProtocol::end() {
  if (phase_ == Phase::kFailed) return;
  failure_ = "the leader closed the connection";
  phase_ = Phase::kFailed;
}

void FollowerProtocol::receive(std::string_view bytes, int64_t now_us) {
  if (phase_ == Phase::kFailed) return;
  last_received_us_ = now_us;
  if (phase_ == Phase::kStream) return splitter_.append(bytes);
  input_.erase(0, used_);
  used_ = 0;
  input_.append(bytes);
}

FollowerProtocol::Event FollowerProtocol::next() {
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

void FollowerProtocol::tick(int64_t now_us) {
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

void FollowerProtocol::loaded(int64_t now_us) {
  if (phase_ != Phase::kLoading) return;
  phase_ = Phase::kStream;
  last_received_us_ = now_us;
  splitter_.append(input());
  core::release_storage(input_);
  used_ = 0;
  // A leader that marked the end sends no stream before it hears this.
  next_ack_us_ = now_us + kAckEveryUs;
  send_ack();
}

void FollowerProtocol::keep_alive(int64_t now_us) {
  last_received_us_ = now_us;
  output_ += '\n';
}

void FollowerProtocol::send_ack() {
  // Who knows no PSYNC knows no offsets.
  if (!knows_psync_) return;
  const std::string offset = fmt::format("{}", offset_);
  if (synced_offset_ < 0) return send({"REPLCONF", "ACK", offset});
  const std::string synced = fmt::format("{}", std::min(synced_offset_, offset_));
  send({"REPLCONF", "ACK", offset, "FACK", synced});
}

int64_t FollowerProtocol::received_offset() const {
  return offset_ + static_cast<int64_t>(unit_bytes_ + splitter_.pending_bytes());
}

bool FollowerProtocol::take_line(std::string& line) {
  const std::string_view rest = input();
  const size_t end = rest.find('\n');
  if (end == std::string_view::npos) return false;
  line = rest.substr(0, end);
  if (line.ends_with('\r')) line.pop_back();
  used_ += end + 1;
  return true;
}

bool FollowerProtocol::is_asked(Step step) const {
  switch (step) {
    case Step::kAuth:
      return !request_.password.empty();
    case Step::kAddress:
      return !request_.announced_address.empty();
    default:
      return true;
  }
}

// All at once: each answer is waited for, but not before the next is asked.
void FollowerProtocol::send_settings() {
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
}

void FollowerProtocol::ask() {
  const bool has_data = !request_.id.empty();
  const std::string id = has_data ? request_.id : "?";
  const std::string offset = fmt::format("{}", has_data ? request_.offset + 1 : -1);
  if (request_.takes_over) return send({"PSYNC", id, offset, "FAILOVER"});
  send({"PSYNC", id, offset});
}

FollowerProtocol::Event FollowerProtocol::read_handshake() {
  std::string line;
  while (phase_ == Phase::kHandshake) {
    if (!take_line(line)) {
      if (input().size() > kLineBytesMax) return fail("the leader's line does not end");
      return Event::kNone;
    }
    // A leader that prepares a snapshot tells so that it lives.
    if (line.empty()) continue;
    const Event event = read_step(line);
    if (event != Event::kNone) return event;
  }
  return next();
}

FollowerProtocol::Event FollowerProtocol::read_step(const std::string& line) {
  const bool is_error = line.front() == '-';
  if (step_ == Step::kPsync) return read_psync(line);
  if (step_ == Step::kPing) {
    const bool asks_for_password =
        lacks_permission(line) || line.starts_with("-ERR operation not permitted");
    if (line.front() != '+' && !asks_for_password) {
      return fail(fmt::format("the leader answers PING: {}", shown(line, kShownBytesMax)));
    }
    send_settings();
  } else if (step_ == Step::kAuth && is_error) {
    // Redis' words, for those who search logs for them.
    return fail(fmt::format("Unable to AUTH to MASTER: {} (masterauth, masteruser)",
                            shown(line, kShownBytesMax)));
  }
  // Other refusals do no harm: the leader knows less of us then.
  do {
    step_ = static_cast<Step>(static_cast<uint8_t>(step_) + 1);
  } while (!is_asked(step_));
  if (step_ == Step::kPsync) ask();
  return Event::kNone;
}

FollowerProtocol::Event FollowerProtocol::read_psync(const std::string& line) {
  constexpr std::string_view kFullResync = "+FULLRESYNC ";
  constexpr std::string_view kContinue = "+CONTINUE";
  const std::string_view text(line);
  if (text.starts_with(kFullResync)) return read_full_resync(text.substr(kFullResync.size()));
  if (text.starts_with(kContinue)) return read_continue(text.substr(kContinue.size()));
  if (text.starts_with("-NOMASTERLINK") || text.starts_with("-LOADING") || lacks_permission(text) ||
      text.front() != '-' || request_.takes_over) {
    return fail(fmt::format("the leader answers PSYNC: {}{}", shown(text, kShownBytesMax),
                            lacks_permission(text) ? " (masterauth, masteruser)" : ""));
  }
  // It does not know PSYNC.
  send({"SYNC"});
  knows_psync_ = false;
  id_.clear();
  offset_ = 0;
  phase_ = Phase::kAwaitsSnapshot;
  return Event::kFullSync;
}

FollowerProtocol::Event FollowerProtocol::read_full_resync(std::string_view arguments) {
  const size_t space = std::min(arguments.find(' '), arguments.size());
  const std::string_view id = arguments.substr(0, space);
  const std::string_view offset = arguments.substr(std::min(space + 1, arguments.size()));
  const int64_t count = offset.empty() ? -1 : parse_count(offset);
  if (!is_id(id) || count < 0) {
    return fail(
        fmt::format("the leader answers PSYNC: +FULLRESYNC {}", shown(arguments, kShownBytesMax)));
  }
  id_ = id;
  offset_ = count;
  phase_ = Phase::kAwaitsSnapshot;
  return Event::kFullSync;
}

FollowerProtocol::Event FollowerProtocol::read_continue(std::string_view arguments) {
  const bool has_id = arguments.starts_with(' ') && is_id(arguments.substr(1));
  if (request_.id.empty() || (!arguments.empty() && !has_id)) {
    return fail(
        fmt::format("the leader answers PSYNC: +CONTINUE{}", shown(arguments, kShownBytesMax)));
  }
  id_ = has_id ? arguments.substr(1) : request_.id;
  offset_ = request_.offset;
  phase_ = Phase::kStream;
  splitter_.append(input());
  core::release_storage(input_);
  used_ = 0;
  return Event::kContinue;
}

FollowerProtocol::Event FollowerProtocol::read_announcement() {
  std::string line;
  do {
    if (!take_line(line)) {
      if (input().size() > kLineBytesMax) return fail("the leader's line does not end");
      return Event::kNone;
    }
  } while (line.empty());
  if (line.front() != '$') {
    return fail(
        fmt::format("instead of a snapshot the leader sends: {}", shown(line, kShownBytesMax)));
  }
  const std::string_view announced = std::string_view(line).substr(1);
  if (announced.starts_with(kMarkPrefix) && announced.size() == kMarkPrefix.size() + kMarkBytes) {
    mark_ = announced.substr(kMarkPrefix.size());
  } else {
    snapshot_size_ = announced.empty() ? -1 : parse_count(announced);
    if (snapshot_size_ < 0) {
      return fail(
          fmt::format("the leader announces a snapshot of {}", shown(line, kShownBytesMax)));
    }
  }
  phase_ = Phase::kSnapshot;
  return read_snapshot();
}

FollowerProtocol::Event FollowerProtocol::read_snapshot() {
  if (!mark_.empty()) return read_snapshot_until_mark();
  const uint64_t left = static_cast<uint64_t>(snapshot_size_) - snapshot_received_;
  if (left == 0) return end_snapshot();
  snapshot_bytes_ = input().substr(0, left);
  if (snapshot_bytes_.empty()) return Event::kNone;
  snapshot_received_ += snapshot_bytes_.size();
  used_ += snapshot_bytes_.size();
  return Event::kSnapshotBytes;
}

// The mark may come in pieces: as many bytes as could be its beginning wait for what follows.
FollowerProtocol::Event FollowerProtocol::read_snapshot_until_mark() {
  const std::string_view rest = input();
  const size_t found = rest.find(mark_);
  if (found == 0) {
    used_ += mark_.size();
    return end_snapshot();
  }
  const size_t kept = mark_.size() - 1;
  const size_t count = found != std::string_view::npos ? found
                       : rest.size() > kept            ? rest.size() - kept
                                                       : 0;
  if (count == 0) return Event::kNone;
  snapshot_bytes_ = rest.substr(0, count);
  snapshot_received_ += count;
  used_ += count;
  return Event::kSnapshotBytes;
}

FollowerProtocol::Event FollowerProtocol::end_snapshot() {
  phase_ = Phase::kLoading;
  return Event::kSnapshotEnd;
}

FollowerProtocol::Event FollowerProtocol::read_stream() {
  switch (splitter_.next()) {
    case StreamSplitter::Status::kNeedMore:
      return Event::kNone;
    case StreamSplitter::Status::kError:
      return fail(fmt::format("the leader's stream: {}", shown(splitter_.error(), kShownBytesMax)));
    case StreamSplitter::Status::kUnit:
      break;
  }
  unit_bytes_ = splitter_.bytes().size();
  const StreamSplitter::Command& command = splitter_.commands().front();
  const bool is_replconf = protocol::equals_ignore_case(command[0], "REPLCONF");
  is_unit_of_link_ =
      !splitter_.is_group() && (is_replconf || protocol::equals_ignore_case(command[0], "PING"));
  // Redis counts the question itself only after the answer.
  if (is_unit_of_link_ && is_replconf && command.size() > 1 &&
      protocol::equals_ignore_case(command[1], "GETACK")) {
    send_ack();
    // Who waits for all of the stream hears soon that this was the end of it.
    next_ack_us_ = 0;
  }
  return Event::kUnit;
}

}  // namespace server
