// SPDX-License-Identifier: MIT
#include "server/replication/stream/window_rotator.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "core/bloom/scalable_filter.h"
#include "core/bloom/window.h"
#include "persistence/window_rotations.h"

namespace server {
namespace {

using core::bloom::ScalableFilter;
using core::keyspace::Entry;
using core::keyspace::EntryPtr;

// WindowSchedule::record() is called before the key is stored. A key that is still missing kGraceMs
// later will not be stored.
constexpr int64_t kGraceMs = 5000;
// Time until a rotation that failed for lack of memory is tried again.
constexpr int64_t kRetryMs = 1000;
// Time for which a replica waits for its leader to rotate a window, before it checks the key again.
constexpr int64_t kLeaderDelayMs = 5000;

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

}  // namespace

void WindowRotator::tick() {
  const bool is_leader = !parts_.state.is_replica;
  // A replica postpones its checks of windows, because its leader rotates them. When the replica
  // becomes a leader, it must check all windows immediately.
  if (is_leader && !was_leader_) schedule_.bring_all();
  was_leader_ = is_leader;
  if (schedule_.empty()) return;
  if (parts_.state.availability.has(Availability::kLoading)) return;
  constexpr int64_t kDurationUsMax = 5000;
  const int64_t start_us = parts_.clock.monotonic_us();
  do {
    const int64_t now_ms = parts_.clock.wall_ms();
    if (parts_.pause.holds_back(kWrite, now_ms)) return;
    auto name = schedule_.take_due(now_ms);
    if (!name) return;
    look_at(std::move(*name));
  } while (parts_.clock.monotonic_us() - start_us < kDurationUsMax);
}

void WindowRotator::look_at(core::keyspace::WindowSchedule::Name name) {
  std::vector<EntryPtr> dropped;
  int64_t next_ms = kNever;
  bool is_missing = true;
  {
    const auto key = parts_.keyspace.ref(name.key);
    const auto lock = parts_.keyspace.lock_exclusive(key);
    // The role cannot change here, because a role change locks all stripes. A replica rotates
    // windows and deletes expired keys only as its leader's stream requires.
    const bool is_leader = !parts_.state.is_replica;
    const int64_t now_ms = parts_.clock.wall_ms();
    const int64_t expiry_now_ms = is_leader ? now_ms : core::keyspace::kIgnoreExpiry;
    for (unsigned database = 0; database < parts_.keyspace.database_count(); ++database) {
      Entry* const entry = parts_.keyspace.find(database, key, expiry_now_ms);
      if (entry == nullptr || !entry->is_filter()) continue;
      ScalableFilter& filter = entry->filter();
      if (filter.window() == nullptr) continue;
      is_missing = false;
      if (!persistence::has_rotations(filter)) continue;
      if (!is_leader) {
        const int64_t due_ms = std::max(filter.window()->next_start(), now_ms);
        next_ms = std::min(next_ms, due_ms + kLeaderDelayMs);
        continue;
      }
      const uint64_t newest = filter.window()->newest().ordinal;
      const bool is_rotated = persistence::rotate_by_clock(parts_.journal, {database, name.key},
                                                           filter, now_ms, parts_.memory);
      if (filter.window()->newest().ordinal != newest) {
        parts_.keyspace.notify_modified(database, key);
        if (parts_.on_rotation) parts_.on_rotation(database, name.key);
      }
      if (auto gone = filter.take_dropped()) {
        dropped.push_back(Entry::create({}));
        dropped.back()->set_filter(std::move(gone));
      }
      if (!persistence::has_rotations(filter)) continue;
      const int64_t due_ms = filter.window()->next_start();
      next_ms = std::min(next_ms, is_rotated ? due_ms : now_ms + kRetryMs);
    }
    if (is_missing && !name.was_missing) next_ms = now_ms + kGraceMs;
  }
  for (EntryPtr& entry : dropped) parts_.reclaimer.drop(std::move(entry));
  name.was_missing = is_missing;
  if (next_ms != kNever) schedule_.put_back(std::move(name), next_ms);
}

}  // namespace server
