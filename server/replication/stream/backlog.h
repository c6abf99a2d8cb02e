// SPDX-License-Identifier: MIT
//
// Backlog: the latest bytes of the replication stream, for attached and for returning replicas.
//
//   journal, or a replica's leader ──append()──► [first_offset, end_offset) ──read()──► replicas
//
// Invariants: offsets count the stream's bytes; byte n is the one that PSYNC calls n + 1. While it
// is active it holds at least the last `size_bytes` of what was appended, and whatever a cursor has
// not passed. What bounds the latter is the output limit of replicas, whose cursor is taken away.
// Thread safety: all members may be called from any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>

#include "persistence/journal.h"

namespace server {

class Backlog final : public persistence::StreamSink {
 public:
  using CursorId = uint64_t;

  // Called after every append. Set before the first one.
  std::function<void()> on_append = [] {};

  bool is_active() const { return is_active_.load(std::memory_order_acquire); }
  // Empties it; the next byte has this offset. Cursors are gone.
  void begin(uint64_t offset);
  // Frees the bytes and keeps the offset. Cursors are gone.
  void end();
  void set_size(uint64_t size_bytes);
  uint64_t size_bytes() const { return size_bytes_.load(std::memory_order_relaxed); }

  // Nothing happens while it is inactive.
  void append(std::string_view bytes) override;

  uint64_t end_offset() const { return end_.load(std::memory_order_acquire); }
  // Memory that only slow replicas keep: what was appended before the last `size_bytes`.
  uint64_t replica_bytes() const { return replica_bytes_.load(std::memory_order_relaxed); }
  // The bytes that are kept; 0 while it is not active.
  uint64_t kept_bytes() const {
    const uint64_t first = first_offset();  // before the end, which only grows
    return is_active() ? end_offset() - first : 0;
  }
  uint64_t first_offset() const { return first_.load(std::memory_order_acquire); }

  // Keeps all bytes from `offset` on until advance() or detach(). Nothing when some are gone
  // already, or have not come yet.
  std::optional<CursorId> attach(uint64_t offset);
  void advance(CursorId cursor, uint64_t offset);
  void detach(CursorId cursor);

  // The bytes from `offset` on, as many as are there and fit; their number, 0 at the end. Nothing
  // when `offset` is not in the backlog, which only one look can tell from its end: it moves.
  std::optional<size_t> read(uint64_t offset, std::span<char> out) const;

 private:
  static constexpr size_t kBlockBytes = size_t{16} << 10;
  struct Block {
    uint64_t begin;  // the offset of its first byte
    std::unique_ptr<char[]> bytes;
  };
  // REQUIRES: mutex_.
  void clear();
  void trim();

  std::atomic<bool> is_active_{false};
  std::atomic<uint64_t> size_bytes_{uint64_t{1} << 20};
  std::atomic<uint64_t> first_{0};
  std::atomic<uint64_t> end_{0};
  std::atomic<uint64_t> replica_bytes_{0};

  mutable std::mutex mutex_;  // guards the members below, and orders changes of the offsets
  std::deque<Block> blocks_;  // each full but the last
  std::map<CursorId, uint64_t> cursors_;
  CursorId last_cursor_ = 0;
};

// The backlog's memory: what `repl-backlog-size` asks for, and what slow replicas keep beyond it.
struct StreamMemory {
  explicit StreamMemory(const Backlog& backlog)
      : replica_bytes(backlog.replica_bytes()),
        backlog_bytes(backlog.kept_bytes() - std::min(backlog.kept_bytes(), replica_bytes)) {}
  uint64_t replica_bytes;
  uint64_t backlog_bytes;
};

}  // namespace server
