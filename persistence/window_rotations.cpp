// SPDX-License-Identifier: MIT
#include "persistence/window_rotations.h"

#include <array>

#include "core/bloom/window.h"
#include "core/number.h"
#include "persistence/journal.h"

namespace persistence {

bool has_rotations(const core::bloom::ScalableFilter& filter) {
  const core::bloom::Window* const window = filter.window();
  if (window == nullptr || window->settings().counts_items()) return false;
  return window->generations().size() > 1 || filter.item_count() > 0;
}

bool rotate_by_clock(Journal& journal, const KeyPlace& key, core::bloom::ScalableFilter& filter,
                     int64_t now_ms, const core::MemoryBudget& budget) {
  if (filter.window()->settings().counts_items()) return true;
  const auto rotation = filter.window()->rotation_due(now_ms);
  if (!rotation) return true;
  if (!filter.rotate(*rotation, budget)) return false;
  const core::Decimal ordinal(static_cast<int64_t>(rotation->ordinal));
  const core::Decimal start(rotation->start);
  journal.append(key.database, std::array<std::string_view, 4>{kRotationCommand, key.name,
                                                               ordinal.text(), start.text()});
  return true;
}

}  // namespace persistence
