// SPDX-License-Identifier: MIT
#include "server/net/client_output.h"

#include <utility>

#include "core/memory/release_storage.h"

namespace server::net {

bool ClientOutput::send(std::string_view bytes, protocol::OutputBuffer* whole) {
  record_size(bytes.size());
  keep_rest(bytes, unsent_.empty() ? send_now(bytes) : 0, whole);
  return !is_broken_;
}

void ClientOutput::keep_rest(std::string_view bytes, size_t sent, protocol::OutputBuffer* whole) {
  // If few bytes remain unsent, they are copied, because taking over the whole buffer would retain
  // the memory of the sent bytes.
  const bool takes_whole = whole != nullptr && unsent_.empty() && bytes.size() - sent > sent;
  if (!takes_whole) return unsent_.append(bytes.substr(sent));
  whole->consume(sent);
  unsent_.swap(*whole);
}

void ClientOutput::keep(std::string_view bytes) {
  unsent_.append(bytes);
  record_size();
}

bool ClientOutput::flush(bool is_ready) {
  if (is_ready) is_full_ = false;
  // While EPOLLOUT is armed, flush() does not write to the socket before the event arrives.
  if (!wants_to_send() || is_full_) return !is_broken_;
  unsent_.consume(send_now(is_held_ ? std::string_view() : unsent_.view()));
  if (unsent_.empty()) {
    unsent_.shrink(0);
    limit_ = OutputLimit{};
  }
  return !is_broken_;
}

size_t ClientOutput::send_now(std::string_view bytes) {
  if (bytes.empty() && !stream_holds_bytes_) return 0;
  const Stream::Outcome outcome = stream_.send(bytes);
  is_full_ = outcome.bytes < bytes.size() || outcome.holds_bytes;
  if (std::exchange(stream_holds_bytes_, outcome.holds_bytes) && !outcome.holds_bytes) {
    has_moved_ = true;
  }
  is_broken_ = outcome.status == Stream::Status::kBroken;
  if (outcome.bytes == 0) return 0;
  has_moved_ = true;
  sent_bytes_ += outcome.bytes;
  counters_.output_bytes.add(outcome.bytes);
  counters_.writes_processed.add();
  return outcome.bytes;
}

void ClientOutput::hold(std::string_view bytes, std::span<const ReplySpan> writes,
                        protocol::OutputBuffer* whole) {
  for (const ReplySpan& write : writes) {
    held_writes_.push_back({write.begin + unsent_.size(), write.end + unsent_.size()});
  }
  keep_rest(bytes, 0, whole);
  record_size();
  is_held_ = true;
}

size_t ClientOutput::release(std::string_view error, protocol::RespVersion resp) {
  size_t replaced = 0;
  if (!error.empty()) {
    protocol::OutputBuffer answered;
    size_t at = 0;
    for (const ReplySpan& write : held_writes_) {
      const std::string_view reply = unsent_.view().substr(write.begin, write.end - write.begin);
      // `error` replaces each reply to a write, with two exceptions. An empty reply remains,
      // because CLIENT REPLY silences the command. An error remains, because the command has
      // changed no data.
      if (reply.empty() || reply.front() == '-') continue;
      answered.append(unsent_.view().substr(at, write.begin - at));
      protocol::ReplyWriter(answered, resp).error(error);
      ++replaced;
      at = write.end;
    }
    answered.append(unsent_.view().substr(at));
    unsent_.swap(answered);
  }
  held_writes_.clear();
  // A long pipeline may have left held_writes_ with much capacity. This memory is freed, because
  // clear() retains it.
  if (held_writes_.capacity() > kHeldWritesKept) core::release_storage(held_writes_);
  is_held_ = false;
  return replaced;
}

}  // namespace server::net
