// SPDX-License-Identifier: MIT
//
// ReplicationIds: the id of the replication stream's history, and of the history before this server
// took over.
//
// Invariants: an id is 40 hexadecimal digits. Bytes up to second_offset - 1 are the same under both
// ids; without an earlier history id2 is zeros and second_offset is -1.
// Thread safety: a value shared by threads needs a lock.
// Source: Redis 7.0.15's master_replid and master_replid2, docs/replication.md.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

#include "server/base/process/ordered_mutex.h"

namespace server {

inline constexpr size_t kReplicationIdSize = 40;

// Returns 40 random hexadecimal digits.
std::string random_id();
bool is_replication_id(std::string_view text);

struct ReplicationIds {
  std::string id = random_id();
  std::string id2 = std::string(kReplicationIdSize, '0');
  int64_t second_offset = -1;

  // Starts a new history, which no replica knows.
  void renew_ids() { *this = {}; }
  // Ends the present history at `offset`, and starts a new one. A replica that has followed the old
  // history up to `offset` can continue with the new history.
  void shift(uint64_t offset) { shift_to(random_id(), offset); }
  // Does the same as shift(), but the new history gets the given id.
  void shift_to(std::string_view new_id, uint64_t offset);
  // Returns whether a replica can continue with this server's stream. The replica has the history
  // `asked_id` up to `asked_offset`, the offset of the first byte that it lacks. This part of the
  // history must also belong to this server's history.
  bool are_continued_from(std::string_view asked_id, int64_t asked_offset) const;
};

// The replication ids of this server. Thread-safe.
class StreamIds {
 public:
  ReplicationIds get() const {
    const std::scoped_lock lock(mutex_);
    return ids_;
  }
  // Calls `change` with the ids while no other thread can use them.
  template <class Change>
  void change(Change&& change) {
    const std::scoped_lock lock(mutex_);
    change(ids_);
  }

 private:
  mutable OrderedMutex mutex_{LockRank::kStreamIds};  // this mutex guards ids_
  ReplicationIds ids_;
};

}  // namespace server
