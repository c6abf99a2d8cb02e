// SPDX-License-Identifier: MIT
#include "server/cluster/slot_ranges.h"

#include <fmt/format.h>

#include <cassert>
#include <cmath>
#include <iterator>
#include <optional>

#include "core/keyspace/slot.h"
#include "core/number.h"
#include "core/printable.h"

namespace server::cluster {
namespace {

using core::keyspace::kSlotCount;

std::optional<unsigned> parse_slot(std::string_view text) {
  const auto slot = core::parse_int64(text);
  if (!slot || *slot < 0 || *slot >= kSlotCount) return std::nullopt;
  return static_cast<unsigned>(*slot);
}

std::optional<SlotRange> parse_range(std::string_view word) {
  const size_t dash = word.find('-');
  const auto first = parse_slot(word.substr(0, dash));
  const auto last = dash == std::string_view::npos ? first : parse_slot(word.substr(dash + 1));
  if (!first || !last || *last < *first) return std::nullopt;
  return SlotRange{*first, *last};
}

core::Error range_error(std::string_view word, std::string_view fault) {
  return {fmt::format("ERR slot range '{}' {}", core::printable(word), fault)};
}

}  // namespace

core::Result<SlotRanges> parse_slot_ranges(std::string_view text) {
  SlotRanges ranges;
  if (text.empty()) return ranges;
  while (true) {
    const size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    const auto range = parse_range(word);
    if (!range) return range_error(word, "is not FIRST-LAST with slots from 0 to 16383");
    if (!ranges.empty() && range->first <= ranges.back().last) {
      return range_error(word, "does not stand behind the one before it");
    }
    if (!ranges.empty() && range->first == ranges.back().last + 1) {
      ranges.back().last = range->last;
    } else {
      ranges.push_back(*range);
    }
    if (space == std::string_view::npos) return ranges;
    text.remove_prefix(space + 1);
  }
}

std::string slot_ranges_text(const SlotRanges& ranges) {
  std::string text;
  for (const SlotRange& range : ranges) {
    if (!text.empty()) text += ' ';
    fmt::format_to(std::back_inserter(text), "{}", range.first);
    if (range.last != range.first) fmt::format_to(std::back_inserter(text), "-{}", range.last);
  }
  return text;
}

unsigned slot_count(const SlotRanges& ranges) {
  unsigned count = 0;
  for (const SlotRange& range : ranges) count += range.count();
  return count;
}

std::vector<SlotRange> equal_slot_ranges(unsigned parts) {
  assert(parts >= 1 && parts <= kSlotCount);
  std::vector<SlotRange> ranges;
  const double share = static_cast<double>(kSlotCount) / parts;
  unsigned first = 0;
  for (unsigned part = 1; part <= parts; ++part) {
    // The bounds are rounded, so that three ranges end at the slots 5460, 10922 and 16383, as with
    // redis-cli.
    const auto end = part == parts ? kSlotCount : static_cast<unsigned>(std::lround(share * part));
    ranges.push_back({first, end - 1});
    first = end;
  }
  return ranges;
}

}  // namespace server::cluster
