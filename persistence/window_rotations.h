// SPDX-License-Identifier: MIT
//
// Applies rotations of windows to filters and records them in the journal. A leader rotates a
// time-based window when its clock reaches the end of a generation. A replica, and a server that
// loads its append log, rotate when the journal contains the command.
//
// Thread safety: the caller holds the exclusive lock of the filter's key.
// Source: core/bloom/window.h; docs/formats.md, "Append log".
#pragma once

#include <cstdint>
#include <string_view>

#include "core/bloom/scalable_filter.h"
#include "core/memory/memory_budget.h"

namespace persistence {

class Journal;

// The command of the journal for a rotation: BF.TURN key ordinal start-ms.
inline constexpr std::string_view kRotationCommand = "BF.TURN";

// The database and name of a key.
struct KeyPlace {
  unsigned database = 0;
  std::string_view name;
};

// Returns whether rotations by the clock can change the results of lookups. They can if the length
// of the window is a time and the filter may hold items.
bool has_rotations(const core::bloom::ScalableFilter& filter);

// Carries out and journals the rotation that is due, if any. Returns false if the memory for the
// new generation is missing. REQUIRES: the filter has a window, and this server is a leader.
bool rotate_by_clock(Journal& journal, const KeyPlace& key, core::bloom::ScalableFilter& filter,
                     int64_t now_ms, const core::MemoryBudget& budget);

}  // namespace persistence
