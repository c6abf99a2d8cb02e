// SPDX-License-Identifier: MIT
#include "server/net/connection.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "core/clock.h"
#include "core/release_storage.h"
#include "server/config/config.h"
#include "server/durability/durability.h"
#include "server/process/log.h"
#include "server/process/statistics.h"
#include "server/session/clients.h"

namespace server::net {
namespace {

constexpr size_t kHeldWritesKept = 32;

bool is_temporary(int error) {
  return error == EAGAIN || error == EWOULDBLOCK || error == EINTR;
}

}  // namespace

Connection::Connection(IoThread& thread, Services& services, std::shared_ptr<Session> session)
    : thread_(thread),
      services_(services),
      session_(std::move(session)),
      counters_(services.statistics.thread(thread.index)),
      dispatcher_(services, counters_, *session_),
      timer_(thread.context) {
  apply_parser_limits();
  parser_.set_authenticated(session_->authenticated);
}

Connection::~Connection() {
  dispatcher_.end_session();
  services_.clients.remove(session_->id);
}

void Connection::start() {
  if (!thread_.readiness.add(session_->descriptor, *this, interest_)) {
    log_warning("Cannot wait for client {}", session_->address);
    return close();
  }
  wake();  // CLIENT KILL may have come before the connection had started
}

void Connection::close() {
  if (!open_) return;
  open_ = false;
  thread_.awaiting_acks.erase(session_->id);
  thread_.readiness.remove(session_->descriptor, *this);
  ::close(session_->descriptor);
  timer_.cancel();
  // Not erased here: the caller may be a member function of this object.
  thread_.closed.push_back(session_->id);
}

void Connection::wake() {
  if (session_->kill_requested.load(std::memory_order_acquire)) {
    close();
  } else if (wait_ == Wait::kAcks) {
    check_acks();
  } else if (wait_ == Wait::kEndOfPause) {
    timer_.cancel();
    on_timer();
  }
}

void Connection::close_if_idle(int64_t now_ms, int64_t timeout_ms) {
  const int64_t last_ms = session_->last_interaction_ms.load(std::memory_order_relaxed);
  if (timeout_ms > 0 && now_ms - last_ms > timeout_ms && wait_ == Wait::kNothing &&
      session_->peer == Peer::kClient && !session_->subscriptions.any()) {
    log_verbose("Closing idle client {}", session_->address);
    close();
  }
}

void Connection::restart_output_peak() {
  output_peak_bytes_ = unsent_.size();
  publish_buffer_sizes();
}

void Connection::on_ready(uint32_t events) {
  if ((events & EPOLLOUT) != 0 && wait_ != Wait::kLog) send_unsent();
  if (!open_ || (events & ~uint32_t{EPOLLOUT}) == 0) return;
  if (wait_ != Wait::kNothing) {
    // Only a broken connection is told while input is not asked for.
    const uint32_t ends = EPOLLHUP | EPOLLERR | (wait_ == Wait::kAcks ? EPOLLRDHUP : 0U);
    if ((events & ends) != 0) return close();
    // A wait for the log is short: that input waits too is told to the kernel only if some comes.
    return update_interest();
  }
  proceed(read_available());
}

void Connection::apply_parser_limits() {
  const int64_t bulk_bytes_max = services_.config.max_bulk_bytes();
  if (bulk_bytes_max == bulk_bytes_max_) return;
  bulk_bytes_max_ = bulk_bytes_max;
  protocol::Limits limits;
  limits.bulk_size_max_bytes = static_cast<size_t>(bulk_bytes_max);
  parser_.set_limits(limits);
}

std::string_view Connection::read_available() {
  auto& buffer = thread_.read_buffer;
  const ssize_t size = ::recv(session_->descriptor, buffer.data(), input_room(), 0);
  if (size > 0) {
    counters_.input_bytes.add(static_cast<uint64_t>(size));
    counters_.reads_processed.add();
    return {buffer.data(), static_cast<size_t>(size)};
  }
  if (size == 0) {
    end_of_input_ = true;
  } else if (!is_temporary(errno)) {
    close();
  }
  return {};
}

void Connection::proceed(std::string_view fresh) {
  bool goes_on = true;
  while (open_ && goes_on) {
    reply_mark_ = session_->replies_begin = thread_.replies.size();
    stop_ = execute(fresh);
    fresh = std::string_view{};
    if (!open_) return thread_.truncate_replies(reply_mark_);
    const AppendLog& log = services_.durability.append_log();
    const uint64_t log_offset = log.is_open() ? log.offset_of_replies(has_written()) : 0;
    if (owes_replies(log_offset) || holds_replies(log_offset)) return;
    goes_on = settle();
  }
}

bool Connection::owes_replies(uint64_t log_offset) {
  if (stop_ != Stop::kNeedInput || end_of_input_ || !unsent_.empty()) return false;
  output_peak_bytes_ = std::max(output_peak_bytes_, fresh_replies().size());
  if (!fresh_replies().empty()) thread_.owe(*this, log_offset);
  publish_buffer_sizes();
  return true;
}

void Connection::send_owed(std::string_view replies, uint64_t log_offset) {
  if (!open_) return;
  if (services_.durability.append_log().is_safe(log_offset)) return send_or_keep(replies);
  wait_for_log(replies, log_offset);
}

bool Connection::settle() {
  send_replies();
  if (!open_) return false;
  // A client that has closed its writing side still gets the replies it waits for.
  if (stop_ == Stop::kClose || (end_of_input_ && stop_ == Stop::kNeedInput)) {
    core::release_storage(input_);
    wait_for(Wait::kLastReplies);
  } else if (stop_ == Stop::kHeldBack) {
    wait_for(Wait::kEndOfPause);
  } else if (stop_ == Stop::kBlocked) {
    wait_for_acks();
  } else if (unsent_.size() > kUnsentBytesMax) {
    wait_for(Wait::kReader);
  } else if (stop_ == Stop::kNeedInput) {
    publish_buffer_sizes();
  } else {
    return true;
  }
  return false;
}

bool Connection::holds_replies(uint64_t log_offset) {
  if (fresh_replies().empty()) return false;
  if (services_.durability.append_log().is_safe(log_offset)) return false;
  wait_for_log(fresh_replies(), log_offset);
  thread_.truncate_replies(reply_mark_);
  return true;
}

void Connection::wait_for_log(std::string_view replies, uint64_t log_offset) {
  // Into `unsent_` from positions in the thread's buffer.
  const auto begin = static_cast<size_t>(replies.data() - thread_.replies.data());
  const size_t shift = unsent_.size() - begin;  // modulo 2^64
  const auto& writes = thread_.write_replies;
  const auto from = std::ranges::lower_bound(writes, begin, {}, &IoThread::Span::begin);
  for (auto write = from; write != writes.end() && write->end <= begin + replies.size(); ++write) {
    held_writes_.push_back({write->begin + shift, write->end + shift});
  }
  unsent_.append(replies);
  held_until_ = log_offset;
  wait_ = Wait::kLog;
  thread_.await_log(shared_from_this());
}

bool Connection::release() {
  if (!open_ || wait_ != Wait::kLog) return true;
  const AppendLog& log = services_.durability.append_log();
  if (!log.is_safe(held_until_)) {
    if (!log.fails()) return false;
    answer_held_writes(log.failure_text());
  }
  held_writes_.clear();
  // One long pipeline must not hold its memory for ever.
  if (held_writes_.capacity() > kHeldWritesKept) std::vector<IoThread::Span>().swap(held_writes_);
  wait_ = Wait::kNothing;
  reply_mark_ = thread_.replies.size();
  send_unsent();
  if (!open_) return true;
  update_interest();
  if (settle()) proceed({});
  return true;
}

void Connection::answer_held_writes(std::string_view error) {
  protocol::OutputBuffer answered;
  size_t at = 0;
  for (const IoThread::Span& write : held_writes_) {
    const std::string_view reply = unsent_.view().substr(write.begin, write.end - write.begin);
    // A silenced command stays silent, and one that was refused has written nothing.
    if (reply.empty() || reply.front() == '-') continue;
    answered.append(unsent_.view().substr(at, write.begin - at));
    protocol::ReplyWriter(answered, session_->resp).error(error);
    services_.statistics.count_error(error.substr(0, error.find(' ')));
    at = write.end;
  }
  answered.append(unsent_.view().substr(at));
  unsent_.swap(answered);
}

bool Connection::has_written() const {
  return !thread_.write_replies.empty() && thread_.write_replies.back().begin >= reply_mark_;
}

Connection::Stop Connection::execute(std::string_view fresh) {
  if (unsent_.empty()) unknown_reply_bytes_ = 0;
  size_t consumed = 0;
  if (input_.empty()) {
    // The usual case: whole commands, executed where they were read to.
    publish_input_sizes(fresh.size(), IoThread::kReadBufferBytes - fresh.size());
    const Stop stop = execute_complete(fresh, consumed);
    keep_input(fresh.substr(consumed));
    limit_memory();
    return stop;
  }
  input_.append(fresh);
  publish_input_sizes(input_.size(), input_.capacity() - input_.size());
  const Stop stop = execute_complete(input_, consumed);
  input_.erase(0, consumed);
  give_back_input();
  check_input();
  limit_memory();
  return stop;
}

Connection::Stop Connection::execute_complete(std::string_view data, size_t& consumed) {
  using Status = protocol::RequestParser::Status;
  if (data.empty()) return Stop::kNeedInput;
  const int64_t now_ms = services_.clock.wall_ms();
  session_->last_interaction_ms.store(now_ms, std::memory_order_relaxed);
  while (true) {
    const Gathered gathered = gather(data.substr(consumed));
    size_t executed = 0;
    const Stop stop = execute_batch(now_ms, executed);
    thread_.batch.release_large();
    if (stop != Stop::kNeedInput) {
      // What was parsed ahead is parsed again when its time has come.
      parser_.reset();
      consumed += executed;
      return stop;
    }
    consumed += gathered.size_bytes;
    if (gathered.last == Status::kNeedMore) return Stop::kNeedInput;
    if (gathered.last == Status::kError) {
      // Into a stream no error may come.
      if (session_->peer == Peer::kReplica) return Stop::kClose;
      protocol::ReplyWriter(thread_.replies, session_->resp).error(parser_.error());
      services_.statistics.count_error("ERR");
      return Stop::kClose;
    }
  }
}

Connection::Gathered Connection::gather(std::string_view data) {
  RequestBatch& batch = thread_.batch;
  batch.words.clear();
  batch.requests.clear();
  apply_parser_limits();
  Gathered gathered{protocol::RequestParser::Status::kRequest, 0};
  // A login decides what the next request may be, so until then there is no looking ahead.
  const size_t requests_max = session_->authenticated ? Dispatcher::kLookAheadMax : 1;
  // The words of some inline requests live in the parser, until it is asked again.
  const auto is_stable = [data](std::string_view word) {
    return word.data() >= data.data() && word.data() <= data.data() + data.size();
  };
  bool stable = true;
  while (stable && batch.requests.size() < requests_max) {
    gathered.last = parser_.parse(data.substr(gathered.size_bytes));
    gathered.size_bytes += parser_.consumed();
    if (gathered.last != protocol::RequestParser::Status::kRequest) break;
    const auto arguments = parser_.arguments();
    batch.requests.push_back({batch.words.size(), arguments.size(), gathered.size_bytes});
    batch.words.insert(batch.words.end(), arguments.begin(), arguments.end());
    stable = std::all_of(arguments.begin(), arguments.end(), is_stable);
  }
  return gathered;
}

Connection::Stop Connection::execute_batch(int64_t now_ms, size_t& consumed) {
  RequestBatch& batch = thread_.batch;
  batch.arguments.clear();
  for (const auto& request : batch.requests) {
    batch.arguments.push_back(std::span(batch.words).subspan(request.first, request.count));
  }
  if (batch.requests.size() > 1) dispatcher_.look_ahead(batch.arguments, now_ms);
  for (size_t i = 0; i < batch.requests.size(); ++i) {
    const size_t reply_begin = thread_.replies.size();
    const Outcome outcome = dispatcher_.execute(batch.arguments[i], now_ms, thread_.replies);
    if (std::exchange(session_->has_written, false)) {
      thread_.write_replies.push_back({reply_begin, thread_.replies.size()});
    }
    if (outcome == Outcome::kHeldBack) return Stop::kHeldBack;
    consumed = batch.requests[i].end;
    if (outcome == Outcome::kClose || owes_too_much(reply_begin)) return Stop::kClose;
    if (outcome == Outcome::kBlocked) return Stop::kBlocked;
    if (session_->kill_requested.load(std::memory_order_relaxed)) return Stop::kClose;
    if (fresh_replies().size() >= kReplyBatchBytes) return Stop::kOutputFull;
  }
  parser_.set_authenticated(session_->authenticated);
  return Stop::kNeedInput;
}

void Connection::send_replies() {
  protocol::OutputBuffer& replies = thread_.replies;
  if (fresh_replies().empty()) return;
  output_peak_bytes_ = std::max(output_peak_bytes_, unsent_.size() + fresh_replies().size());
  if (open_) send_or_keep(fresh_replies());
  thread_.truncate_replies(reply_mark_);
  replies.shrink(2 * kReplyBatchBytes);
}

void Connection::send_or_keep(std::string_view bytes) {
  const size_t sent = unsent_.empty() ? send_now(bytes) : 0;
  if (!open_ || sent == bytes.size()) return;
  unsent_.append(bytes.substr(sent));
  close_if_over_output_limit();
  if (open_) update_interest();
}

size_t Connection::send_now(std::string_view bytes) {
  const ssize_t size = ::send(session_->descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (size >= 0) {
    took_bytes_ = true;
    counters_.output_bytes.add(static_cast<uint64_t>(size));
    counters_.writes_processed.add();
    return static_cast<size_t>(size);
  }
  if (!is_temporary(errno)) close();
  return 0;
}

void Connection::send_unsent() {
  if (unsent_.empty()) return;
  unsent_.consume(send_now(unsent_.view()));
  close_if_over_output_limit();
  if (!open_) return;
  if (unsent_.empty()) {
    unsent_.shrink(0);
    if (wait_ == Wait::kLastReplies) return close();
  }
  if (wait_ == Wait::kReader && unsent_.size() <= kUnsentBytesMax / 2) {
    wait_ = Wait::kNothing;
    timer_.cancel();
    proceed({});
  }
  if (open_) update_interest();
}

void Connection::close_if_over_output_limit() {
  if (!open_) return;
  const ClientClass client_class =
      session_->subscriptions.any() ? ClientClass::kPubSub : ClientClass::kNormal;
  const BufferLimit limit = services_.config.output_buffer_limit(client_class);
  if (!output_limit_.is_broken(unsent_.size(), limit, services_.clock.monotonic_us())) return;
  log_warning("Closing client {} that reached its output buffer limit", session_->address);
  counters_.output_buffer_disconnections.add();
  close();
}

void Connection::update_interest() {
  uint32_t interest = 0;
  if (wait_ == Wait::kNothing) interest |= EPOLLIN;
  // It may be long, and who waits for nobody shall not be kept.
  if (wait_ == Wait::kAcks) interest |= EPOLLRDHUP;
  if (!unsent_.empty() && wait_ != Wait::kLog) interest |= EPOLLOUT;
  if (interest == interest_) return;
  interest_ = interest;
  thread_.readiness.change(session_->descriptor, *this, interest);
}

void Connection::publish_buffer_sizes() {
  publish_input_sizes(input_.size(), input_.capacity() - input_.size());
  session_->output_buffer_bytes.store(unsent_.size(), std::memory_order_relaxed);
  session_->output_buffer_capacity_bytes.store(unsent_.capacity(), std::memory_order_relaxed);
  session_->output_buffer_peak_bytes.store(output_peak_bytes_, std::memory_order_relaxed);
}

}  // namespace server::net
