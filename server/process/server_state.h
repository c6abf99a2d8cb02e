// SPDX-License-Identifier: MIT
//
// ServerState: state that durability and replication set and every command reads, without a
// dependency on either.
//
// Invariants: each question on the way of every command is one load.
// Thread safety: all members may be used from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "server/process/availability.h"

namespace server {

struct ServerState {
  static constexpr size_t kCacheLine = 64;

  Availability availability;
  // Whether one server plays a whole cluster; stays as it was at the start.
  bool emulates_cluster() const { return availability.has(Availability::kOneSlotOnly); }
  // Another server leads: set under all stripes, so a command that holds one sees the role it runs
  // under.
  std::atomic<bool> is_replica{false};
  // Whether a child may still read arrays that it shares with this process. False is certain for a
  // thread that holds a stripe, for as long as it does.
  std::atomic<bool> may_have_child{false};
  // Effective changes since the start; INFO's rdb_changes_since_last_save. Every write changes it,
  // so it shares no cache line with the fields that every command reads.
  alignas(kCacheLine) std::atomic<uint64_t> changes{0};
};

}  // namespace server
