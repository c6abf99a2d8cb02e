// SPDX-License-Identifier: MIT
//
// SlotRanges: a set of slots as the ranges that a person reads, "0-5460 7000".
//
// Invariants: ascending, disjoint, and no range touches the next one.
// Thread safety: values and pure functions.
// Source: the form of CLUSTER NODES, https://redis.io/docs/latest/commands/cluster-nodes/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/keyspace/slot.h"
#include "core/result.h"

namespace server::cluster {

// Both ends are included; last < 16384.
struct SlotRange {
  unsigned first = 0;
  unsigned last = 0;

  bool operator==(const SlotRange&) const = default;
  unsigned count() const { return last - first + 1; }
};

using SlotRanges = std::vector<SlotRange>;

// "a-b" and "a", single spaces between, ascending and disjoint; ranges that touch are joined. ""
// is no slot.
// Errors: the word that is no range, or whose range does not follow the one before it.
core::Result<SlotRanges> parse_slot_ranges(std::string_view text);

std::string slot_ranges_text(const SlotRanges& ranges);

unsigned slot_count(const SlotRanges& ranges);

// The 16384 slots in `parts` nearly equal pieces, as redis-cli --cluster create cuts them.
// parts: 1 to 16384.
std::vector<SlotRange> equal_slot_ranges(unsigned parts);

}  // namespace server::cluster
