// SPDX-License-Identifier: MIT
#include "server/net/request_runner.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <utility>

#include "core/clock.h"
#include "core/printable.h"
#include "protocol/arguments.h"
#include "protocol/reply_writer.h"
#include "server/base/config/config.h"
#include "server/base/log/log.h"
#include "server/base/metrics/statistics.h"
#include "server/base/process/tick_clock.h"
#include "server/dispatch/environment.h"
#include "server/session/big_argument.h"
#include "server/session/session.h"

namespace server::net {
namespace {

// Limit on the bytes of replies of one batch. Above it the batch stops, so that the replies are
// sent first.
constexpr size_t kReplyBatchBytes = size_t{256} << 10;
// Limit on unsent replies to a client that is not authenticated.
constexpr size_t kUnknownReplyBytesMax = size_t{4} << 10;
constexpr size_t kLoggedNameBytesMax = 64;
// The wall clock is read again if more ticks have passed since it was read. A tick is at most a
// nanosecond, so the time that a command uses is at most a millisecond old.
constexpr uint64_t kStaleTicks = 1'000'000;

// Returns whether a replica may send the command after its PSYNC. As in Redis, a replica is
// disconnected if it sends a command that uses keys or has a reply.
bool may_come_from_replica(std::string_view command) {
  constexpr std::array<std::string_view, 3> kNames = {"replconf", "psync", "sync"};
  return std::ranges::any_of(
      kNames, [&](std::string_view name) { return protocol::equals_ignore_case(name, command); });
}

}  // namespace

RequestRunner::RequestRunner(Environment& environment, ThreadStatistics& counters, Session& session)
    : environment_(environment),
      counters_(counters),
      session_(session),
      client_(*session.client),
      dispatcher_(environment, counters, session) {
  apply_limits();
  parser_.set_authenticated(session.authenticated);
}

void RequestRunner::apply_limits() {
  const int64_t bulk_bytes_max = environment_.config.max_bulk_bytes();
  if (bulk_bytes_max == bulk_bytes_max_) return;
  bulk_bytes_max_ = bulk_bytes_max;
  protocol::Limits limits;
  limits.bulk_size_max_bytes = static_cast<size_t>(bulk_bytes_max);
  parser_.set_limits(limits);
}

RequestRunner::Progress RequestRunner::run(std::string_view data, RequestBatch& batch,
                                           ReplyGate& gate, size_t reply_bytes_limit,
                                           BigArgument* big) {
  if (data.empty()) return {End::kNeedsInput, 0};
  if (big != nullptr) [[unlikely]]
    parser_.set_apart(big->offset(), big->text());
  reply_bytes_limit_ = reply_bytes_limit;
  // The buffer of the ReplyGate already holds replies to other clients. Their size is added to the
  // limit, because the limit is only for the replies to this client.
  const size_t others = std::min(gate.fresh_begin(), kNoLimit - reply_bytes_limit);
  gate.replies().set_limit(others + reply_bytes_limit);
  Progress progress = run_all(data, batch, gate, big);
  gate.replies().set_limit(kNoLimit);
  return progress;
}

RequestRunner::Now RequestRunner::read_clock() const {
  return {environment_.clock.wall_ms(), TickClock::now()};
}

RequestRunner::Progress RequestRunner::run_all(std::string_view data, RequestBatch& batch,
                                               ReplyGate& gate, BigArgument* big) {
  using Status = protocol::RequestParser::Status;
  Now now = read_clock();
  size_t consumed = 0;
  while (true) {
    const Gathered gathered = gather(data.substr(consumed), batch);
    Progress executed = execute(batch, now, gate, big);
    // A request with a big argument is alone in its batch, so the argument is no longer needed
    // after the batch.
    big = nullptr;
    batch.release_large();
    if (executed.end != End::kNeedsInput) {
      // Requests that were parsed but did not run are parsed again later.
      parser_.reset();
      executed.consumed_bytes += consumed;
      return executed;
    }
    consumed += gathered.size_bytes;
    if (gathered.last == Status::kNeedMore) return {End::kNeedsInput, consumed};
    if (gathered.last == Status::kError) {
      // An error reply is not sent to a replica, because it would corrupt the replication stream,
      // nor to a client that gets no replies.
      const bool is_silent =
          session_.reply_mode == ReplyMode::kOff || session_.reply_mode == ReplyMode::kSkipThis;
      if (client_.peer != Peer::kReplica) {
        if (!is_silent) {
          protocol::ReplyWriter(gate.replies(), client_.resp).error(parser_.error());
        }
        environment_.statistics.count_error("ERR");
      }
      return {End::kClosesClient, consumed};
    }
  }
}

RequestRunner::Gathered RequestRunner::gather(std::string_view data, RequestBatch& batch) {
  batch.words.clear();
  batch.count = 0;
  apply_limits();
  Gathered gathered{protocol::RequestParser::Status::kRequest, 0};
  const size_t requests_max = session_.authenticated ? kLookAheadMax : 1;
  do {
    const size_t words_begin = batch.words.size();
    gathered.last = parser_.parse(data.substr(gathered.size_bytes), batch.words);
    gathered.size_bytes += parser_.consumed();
    if (gathered.last != protocol::RequestParser::Status::kRequest) break;
    batch.bounds[batch.count++] = {words_begin, batch.words.size(), gathered.size_bytes};
  } while (batch.count < requests_max && parser_.words_are_in_buffer());
  return gathered;
}

RequestRunner::Progress RequestRunner::execute(RequestBatch& batch, Now& now, ReplyGate& gate,
                                               BigArgument* big) {
  const auto requests = std::span(batch.requests).first(batch.count);
  const size_t replies_begin = gate.fresh_begin();
  for (size_t i = 0; i < requests.size(); ++i) {
    const auto& [words_begin, words_end, end] = batch.bounds[i];
    requests[i] = {.args = {batch.words.data() + words_begin, words_end - words_begin},
                   .big_argument = big,
                   .replies_begin = replies_begin};
  }
  // A killed client runs no further command.
  if (client_.kill_requested.load(std::memory_order_relaxed)) return {End::kClosesClient, 0};
  dispatcher_.look_ahead(requests, now.ms);
  size_t consumed = 0;
  for (size_t i = 0; i < requests.size(); ++i) {
    if (client_.peer == Peer::kReplica && !may_come_from_replica(requests[i].args[0])) {
      log_warning("Closing replica {}: it sent the command '{}'", client_.address,
                  core::printable(requests[i].args[0].substr(0, kLoggedNameBytesMax)));
      return {End::kClosesClient, consumed};
    }
    const protocol::OutputBuffer& replies = gate.replies();
    const size_t reply_begin = replies.size();
    if (dispatcher_.begin_ticks() - now.ticks > kStaleTicks) [[unlikely]]
      now = read_clock();
    CommandResult result = dispatcher_.execute(requests[i], now.ms, gate.replies());
    if (result.may_have_written) gate.record_write(reply_begin + result.pushed_bytes);
    if (result.outcome == Outcome::kHeldBack) return {End::kHeldBack, consumed};
    consumed = batch.bounds[i].end;
    const size_t reply_bytes = gate.fresh().size();
    if (reply_bytes >= reply_bytes_limit_ || replies.has_overflowed()) [[unlikely]]
      return {End::kOverOutputLimit, consumed};
    if (result.outcome == Outcome::kClose) return {End::kClosesClient, consumed};
    if (!session_.authenticated && owes_too_much(replies.size() - reply_begin)) {
      return {End::kClosesClient, consumed};
    }
    if (result.outcome == Outcome::kBlocked) {
      return {End::kBlocked, consumed, std::move(result.pending)};
    }
    if (client_.kill_requested.load(std::memory_order_relaxed)) {
      return {End::kClosesClient, consumed};
    }
    if (reply_bytes >= kReplyBatchBytes) return {End::kManyReplies, consumed};
  }
  parser_.set_authenticated(session_.authenticated);
  return {End::kNeedsInput, consumed};
}

bool RequestRunner::owes_too_much(size_t reply_bytes) {
  unknown_reply_bytes_ += reply_bytes;
  if (unknown_reply_bytes_ <= kUnknownReplyBytesMax) return false;
  // The message has only level verbose, because any peer that can connect can cause it.
  log_verbose("Closing client {} that sends many commands before AUTH", client_.address);
  counters_.output_buffer_disconnections.add();
  return true;
}

}  // namespace server::net
