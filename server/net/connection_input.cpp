// SPDX-License-Identifier: MIT
//
// The part of Connection that bounds what a client's input costs.
#include <algorithm>

#include "core/release_storage.h"
#include "server/config/config.h"
#include "server/net/connection.h"
#include "server/process/log.h"
#include "server/session/clients.h"

namespace server::net {

size_t Connection::input_room() const {
  if (session_->authenticated) return IoThread::kReadBufferBytes;
  // check_input() has closed when nothing is left of it.
  return kUnknownInputBytesMax - std::min(kUnknownInputBytesMax, input_.size());
}

void Connection::keep_input(std::string_view rest) {
  if (rest.empty()) return;
  // Exactly: a string that grows doubles.
  if (!session_->authenticated) input_.reserve(kUnknownInputBytesMax);
  input_.assign(rest);
  check_input();
}

void Connection::give_back_input() {
  // The rest of a pipeline usually grows again, to about as much.
  constexpr size_t kKeptForMore = 4 * IoThread::kReadBufferBytes;
  const size_t kept = input_.empty() ? IoThread::kReadBufferBytes : kKeptForMore;
  if (input_.capacity() <= std::max(kept, 2 * input_.size())) return;
  std::string(input_).swap(input_);
}

void Connection::check_input() {
  if (!open_) return;
  if (!session_->authenticated) {
    if (input_.size() < kUnknownInputBytesMax) return;
    log_verbose("Closing client {} that sends too much before AUTH", session_->address);
  } else if (input_.size() > static_cast<uint64_t>(services_.config.query_buffer_limit_bytes())) {
    log_warning("Closing client {} that reached the query buffer limit", session_->address);
  } else {
    return;
  }
  counters_.query_buffer_disconnections.add();
  close();
}

bool Connection::owes_too_much(size_t reply_begin) {
  if (session_->authenticated) [[likely]]
    return false;
  unknown_reply_bytes_ += thread_.replies.size() - reply_begin;
  if (unknown_reply_bytes_ <= kUnknownReplyBytesMax) return false;
  // Quietly: whoever can connect can cause it.
  log_verbose("Closing client {} that sends many commands before AUTH", session_->address);
  counters_.output_buffer_disconnections.add();
  return true;
}

void Connection::publish_input_sizes(size_t size_bytes, size_t free_bytes) {
  session_->query_buffer_bytes.store(size_bytes, std::memory_order_relaxed);
  session_->query_buffer_free_bytes.store(free_bytes, std::memory_order_relaxed);
}

void Connection::limit_memory() {
  const uint64_t limit_bytes = services_.config.client_memory_limit_bytes();
  if (limit_bytes == 0 || !open_) [[likely]]
    return;
  // The periodic look finds what many clients have grown by a little.
  constexpr uint64_t kGrowthMin = uint64_t{1} << 20;
  constexpr uint64_t kLooksPerLimit = 16;
  const uint64_t growth = std::max(kGrowthMin, limit_bytes / kLooksPerLimit);
  const uint64_t bytes = session_->memory_bytes();
  judged_memory_bytes_ = std::min(judged_memory_bytes_, bytes);
  if (bytes - judged_memory_bytes_ < growth) return;
  judged_memory_bytes_ = bytes;
  services_.clients.evict_over(limit_bytes);
}

}  // namespace server::net
