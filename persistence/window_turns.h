// SPDX-License-Identifier: MIT
//
// How the turns of windows reach filters and the journal: on the leader, by its clock; everywhere
// else, by what the journal says.
//
// Thread safety: as the filter: REQUIRES its key's exclusive lock.
// Source: core/bloom/window.h; docs/formats.md, "Append log".
#pragma once

#include <cstdint>
#include <string_view>

#include "core/bloom/scalable_filter.h"

namespace persistence {

class Journal;

// What the journal calls a turn: BF.TURN key ordinal start-ms.
inline constexpr std::string_view kTurnCommand = "BF.TURN";

// A key in its database.
struct KeyPlace {
  unsigned database = 0;
  std::string_view name;
};

// Whether turns change answers: by a clock, and there is something to forget.
bool has_turns(const core::bloom::ScalableFilter& filter);

// Carries out the turn that is due, if one is, and journals it. False when the memory for the new
// generation cannot be had. REQUIRES: a filter with a window, on a leader.
bool turn_by_clock(Journal& journal, const KeyPlace& key, core::bloom::ScalableFilter& filter,
                   int64_t now_ms);

}  // namespace persistence
