// SPDX-License-Identifier: MIT
//
// SlotRanges: a set of slots written as ranges such as "0-5460 7000".
//
// Invariants: the ranges are ascending and disjoint, and no range touches the next one.
// Thread safety: the functions are pure; a value shared by threads needs a lock.
// Source: the form of CLUSTER NODES, https://redis.io/docs/latest/commands/cluster-nodes/.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace server::cluster {

// A range of slots that includes both ends. `last` is below 16384.
struct SlotRange {
  unsigned first = 0;
  unsigned last = 0;

  bool operator==(const SlotRange&) const = default;
  unsigned count() const { return last - first + 1; }
};

using SlotRanges = std::vector<SlotRange>;

// Parses a text of ranges "a-b" and slots "a" that are ascending, disjoint and separated by single
// spaces. Ranges that touch are joined. An empty text means no slot. Errors: a word
// is not a range, or its range does not follow the range before it. The error's text names that
// word.
core::Result<SlotRanges> parse_slot_ranges(std::string_view text);

std::string slot_ranges_text(const SlotRanges& ranges);

unsigned slot_count(const SlotRanges& ranges);

// Divides the 16384 slots into `parts` nearly equal ranges, as redis-cli --cluster create does.
// REQUIRES: `parts` is 1 to 16384.
std::vector<SlotRange> equal_slot_ranges(unsigned parts);

}  // namespace server::cluster
