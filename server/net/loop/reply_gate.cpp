// SPDX-License-Identifier: MIT
#include "server/net/loop/reply_gate.h"

#include <algorithm>
#include <utility>

#include "server/cluster/cluster_state.h"
#include "server/cluster/permit_clock.h"

namespace server::net {

ReplyGate::ReplyGate(ReplyLog& log, std::function<void(bool)> on_waiting)
    : log_(log), on_waiting_(std::move(on_waiting)) {}

void ReplyGate::add(ReplySink& sink) {
  if (fresh().empty()) return;
  const bool has_written = !writes_.empty() && writes_.back().begin >= fresh_begin_;
  const uint64_t stream_offset = has_written && acks_ != nullptr ? acks_->offset_of_writes() : 0;
  parts_.push_back(
      {&sink, replies_.size(), {log_.offset_of_replies(has_written), stream_offset, has_written}});
  fresh_begin_ = replies_.size();
  if (fresh_begin_ >= kGatheredMax) flush();
}

void ReplyGate::flush() {
  if (parts_.empty()) return;
  uint64_t log_offset = 0;
  for (const Part& part : parts_) log_offset = std::max(log_offset, part.needs.log_offset);
  if (!log_.is_safe(log_offset)) log_.write();
  size_t begin = 0;
  const bool may_acknowledge_now = permit_ == nullptr || may_acknowledge();
  for (const Part& part : parts_) {
    if (part.needs.has_written && !may_acknowledge_now) [[unlikely]] {
      part.sink->close();
    } else {
      pass_on(part, begin);
    }
    begin = part.end;
  }
  parts_.clear();
  truncate(0);
  replies_.shrink(kReplyBytesKept);
}

void ReplyGate::pass_on(const Part& part, size_t begin) {
  std::string_view replies = replies_.view().substr(begin, part.end - begin);
  protocol::OutputBuffer* whole = nullptr;
  // Replies of at least kHandedOverMin bytes to one client are always the last in the buffer,
  // because add() calls flush() after them.
  if (replies.size() >= kHandedOverMin && &part == &parts_.back()) [[unlikely]] {
    replies_.consume(begin);
    replies = replies_.view();
    whole = &replies_;
  }
  if (is_safe(part.needs)) {
    part.sink->send(replies, whole);
  } else {
    hold(part, replies, begin, whole);
  }
}

void ReplyGate::truncate(size_t mark) {
  replies_.truncate(mark);
  fresh_begin_ = std::min(fresh_begin_, mark);
  const auto first = std::ranges::lower_bound(writes_, mark, {}, &ReplySpan::begin);
  writes_.erase(first, writes_.end());
}

bool ReplyGate::is_safe(const Needs& needs) const {
  if (!log_.is_safe(needs.log_offset)) return false;
  return needs.stream_offset == 0 || acks_->has_all(needs.stream_offset);
}

bool ReplyGate::may_acknowledge() const {
  return permit_->permits_replies(cluster::permit_clock_us());
}

void ReplyGate::hold(const Part& part, std::string_view replies, size_t begin,
                     protocol::OutputBuffer* whole) {
  std::vector<ReplySpan> writes;
  const auto first = std::ranges::lower_bound(writes_, begin, {}, &ReplySpan::begin);
  for (auto write = first; write != writes_.end() && write->end <= part.end; ++write) {
    writes.push_back({write->begin - begin, write->end - begin});
  }
  part.sink->hold(replies, writes, whole);
  held_.push_back({part.sink->shared_from_this(), part.needs});
  awaits_acks_ |= part.needs.stream_offset != 0;
  ++new_held_;
  commit_is_due_ = true;
}

void ReplyGate::end_round() {
  flush();
  while (std::exchange(commit_is_due_, false)) {
    // Notifications are requested before the commit. Otherwise the end of a sync that is already
    // running would cause no notification.
    on_waiting_(true);
    log_.commit(std::exchange(new_held_, 0));
    if (std::exchange(awaits_acks_, false)) acks_->request();
    release_held();
    flush();
  }
}

void ReplyGate::release_safe() {
  release_held();
  if (!held_.empty()) commit_is_due_ = true;
}

void ReplyGate::release_held() {
  // The log's notifications are requested before the first check of a reply. Otherwise progress of
  // the log between the check and the request would cause no notification.
  on_waiting_(true);
  looked_at_.swap(held_);
  for (Held& held : looked_at_) {
    const bool may_leave = !held.needs.has_written || permit_ == nullptr || may_acknowledge();
    if (!may_leave) [[unlikely]] {
      held.sink->close();
    } else if (is_safe(held.needs)) {
      held.sink->release({});
    } else if (!log_.is_safe(held.needs.log_offset) && log_.fails()) {
      held.sink->release(log_.failure_text());
    } else {
      held_.push_back(std::move(held));
    }
  }
  looked_at_.clear();
  if (held_.empty()) on_waiting_(false);
}

}  // namespace server::net
