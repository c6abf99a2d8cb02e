// SPDX-License-Identifier: MIT
#include "server/replication/stream/backlog.h"

#include <cstring>

namespace server {

void Backlog::begin(uint64_t offset) {
  const std::scoped_lock lock(mutex_);
  clear();
  first_ = end_ = offset;
  is_active_ = true;
}

void Backlog::end() {
  const std::scoped_lock lock(mutex_);
  is_active_ = false;
  clear();
  first_ = end_.load();
}

void Backlog::clear() {
  blocks_.clear();
  cursors_.clear();
  replica_bytes_ = 0;
}

void Backlog::set_size(uint64_t size_bytes) {
  const std::scoped_lock lock(mutex_);
  size_bytes_ = size_bytes;
  trim();
}

void Backlog::append(std::string_view bytes) {
  {
    const std::scoped_lock lock(mutex_);
    if (!is_active_) return;
    uint64_t end = end_;
    while (!bytes.empty()) {
      if (blocks_.empty() || end - blocks_.back().begin == kBlockBytes) {
        blocks_.push_back({end, std::make_unique_for_overwrite<char[]>(kBlockBytes)});
      }
      const size_t used = end - blocks_.back().begin;
      const size_t count = std::min(bytes.size(), kBlockBytes - used);
      std::memcpy(blocks_.back().bytes.get() + used, bytes.data(), count);
      bytes.remove_prefix(count);
      end += count;
    }
    end_.store(end, std::memory_order_release);
    trim();
  }
  on_append();
}

void Backlog::trim() {
  if (blocks_.empty()) return;
  uint64_t needed = end_ - std::min<uint64_t>(end_, size_bytes_);
  for (const auto& [id, offset] : cursors_) needed = std::min(needed, offset);
  // The last block is kept, because it receives the next bytes.
  while (blocks_.size() > 1 && blocks_[1].begin <= needed) blocks_.pop_front();
  first_ = blocks_.front().begin;
  // The configured size of the backlog is rounded up to whole blocks. Only the blocks beyond that
  // size count as memory for slow replicas.
  const uint64_t own_blocks = (size_bytes_ + kBlockBytes - 1) / kBlockBytes;
  const uint64_t more_blocks = blocks_.size() - std::min<uint64_t>(blocks_.size(), own_blocks);
  replica_bytes_ = cursors_.empty() ? 0 : more_blocks * (kBlockBytes + sizeof(Block));
}

std::optional<Backlog::CursorId> Backlog::attach(uint64_t offset) {
  const std::scoped_lock lock(mutex_);
  if (!is_active_ || offset < first_ || offset > end_) return std::nullopt;
  cursors_.emplace(++last_cursor_, offset);
  return last_cursor_;
}

void Backlog::advance(CursorId cursor, uint64_t offset) {
  const std::scoped_lock lock(mutex_);
  if (const auto found = cursors_.find(cursor); found != cursors_.end()) found->second = offset;
  trim();
}

void Backlog::detach(CursorId cursor) {
  const std::scoped_lock lock(mutex_);
  cursors_.erase(cursor);
  trim();
}

std::optional<size_t> Backlog::read(uint64_t offset, std::span<char> out) const {
  const std::scoped_lock lock(mutex_);
  if (offset < first_ || offset > end_) return std::nullopt;
  const size_t wanted = std::min<uint64_t>(out.size(), end_ - offset);
  size_t done = 0;
  while (done < wanted) {
    const uint64_t at = offset + done - blocks_.front().begin;
    const size_t inside = at % kBlockBytes;
    const size_t count = std::min(wanted - done, kBlockBytes - inside);
    std::memcpy(out.data() + done, blocks_[at / kBlockBytes].bytes.get() + inside, count);
    done += count;
  }
  return done;
}

}  // namespace server
