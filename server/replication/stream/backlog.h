// SPDX-License-Identifier: MIT
//
// Backlog: the latest bytes of the replication stream, for attached and returning replicas.
//
//   journal, or a replica's leader ──append()──► [first_offset, end_offset) ──read()──► replicas
//
// Invariants: offsets count the stream's bytes; byte n has the offset n + 1 in PSYNC. An active
// backlog holds at least the last `size_bytes` appended. It also holds all bytes that have not been
// sent to every attached replica. The cursor of a replica is the offset of the next byte to send to
// it. The output limit of replicas bounds these bytes: a replica that exceeds the limit loses its
// cursor.
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

  // Called after every append. Must be set before the first append.
  std::function<void()> on_append = [] {};

  bool is_active() const { return is_active_.load(std::memory_order_acquire); }
  // Activates the empty backlog and removes all cursors. The next appended byte gets `offset`.
  void begin(uint64_t offset);
  // Deactivates the backlog: frees the bytes, keeps the offset, and removes all cursors.
  void end();
  void set_size(uint64_t size_bytes);
  uint64_t size_bytes() const { return size_bytes_.load(std::memory_order_relaxed); }

  // Appends the bytes. Has no effect while the backlog is inactive.
  void append(std::string_view bytes) override;

  uint64_t end_offset() const { return end_.load(std::memory_order_acquire); }
  // Returns the memory of the blocks that are kept only for slow replicas. These are the blocks
  // beyond `size_bytes`, rounded up to whole blocks.
  uint64_t replica_bytes() const { return replica_bytes_.load(std::memory_order_relaxed); }
  // Returns the number of bytes kept; 0 while inactive.
  uint64_t kept_bytes() const {
    // A full sync may set a smaller offset between the two reads.
    const uint64_t first = first_offset();
    const uint64_t end = end_offset();
    return is_active() && end > first ? end - first : 0;
  }
  uint64_t first_offset() const { return first_.load(std::memory_order_acquire); }

  // Keeps all bytes from `offset` on until advance() or detach(). Returns nullopt if some of them
  // were freed, or `offset` is beyond the end.
  std::optional<CursorId> attach(uint64_t offset);
  void advance(CursorId cursor, uint64_t offset);
  void detach(CursorId cursor);

  // Copies as many bytes from `offset` on as exist and fit into `out`. Returns their number, which
  // is 0 at the end. Returns nullopt if `offset` is outside the backlog. The function checks and
  // copies in one call, because the end may move between two calls.
  std::optional<size_t> read(uint64_t offset, std::span<char> out) const;

 private:
  static constexpr size_t kBlockBytes = size_t{16} << 10;
  struct Block {
    uint64_t begin;  // offset of the first byte of the block
    std::unique_ptr<char[]> bytes;
  };
  // These functions require that the caller holds mutex_.
  void clear();
  void trim();

  std::atomic<bool> is_active_{false};
  std::atomic<uint64_t> size_bytes_{uint64_t{1} << 20};
  std::atomic<uint64_t> first_{0};
  std::atomic<uint64_t> end_{0};
  std::atomic<uint64_t> replica_bytes_{0};

  // This mutex guards the members below, and orders changes of the offsets.
  mutable std::mutex mutex_;
  std::deque<Block> blocks_;  // blocks of kBlockBytes, all full except the last
  std::map<CursorId, uint64_t> cursors_;
  CursorId last_cursor_ = 0;
};

// Memory of the backlog: `repl-backlog-size`, and the bytes that slow replicas keep beyond it.
struct StreamMemory {
  explicit StreamMemory(const Backlog& backlog)
      : replica_bytes(backlog.replica_bytes()), backlog_bytes(backlog.kept_bytes()) {
    backlog_bytes -= std::min(backlog_bytes, replica_bytes);
  }
  uint64_t replica_bytes;
  uint64_t backlog_bytes;
};

}  // namespace server
