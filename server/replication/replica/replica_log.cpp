// SPDX-License-Identifier: MIT
#include "server/replication/replica/replica_log.h"

#include "server/durability/durability.h"
#include "server/durability/log/append_log.h"

namespace server {
namespace {

// Limit on the number of marks, which pair stream offsets with log offsets. With `appendfsync
// everysec`, fewer marks are needed.
constexpr size_t kMarksMax = 4096;

}  // namespace

void ReplicaLog::begin(int64_t offset) {
  synced_offset_ = 0;
  unsynced_.assign(1, {offset, durability_.log_end()});
}

void ReplicaLog::record_applied(int64_t offset) {
  if (!durability_.log_is_on()) return;
  durability_.append_log.commit(1);
  const Mark mark{offset, durability_.log_end()};
  if (!unsynced_.empty() && unsynced_.back().offset == mark.offset) return;
  if (unsynced_.size() >= kMarksMax) {
    unsynced_.back() = mark;
  } else {
    unsynced_.push_back(mark);
  }
}

int64_t ReplicaLog::synced_offset() {
  const auto synced = durability_.log_synced_offset();
  if (!synced) return -1;
  while (!unsynced_.empty() && unsynced_.front().log_end <= *synced) {
    synced_offset_ = unsynced_.front().offset;
    unsynced_.pop_front();
  }
  return synced_offset_;
}

}  // namespace server
