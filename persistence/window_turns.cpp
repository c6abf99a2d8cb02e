// SPDX-License-Identifier: MIT
#include "persistence/window_turns.h"

#include <array>

#include "core/bloom/window.h"
#include "core/number.h"
#include "persistence/journal.h"

namespace persistence {

bool has_turns(const core::bloom::ScalableFilter& filter) {
  const core::bloom::Window* const window = filter.window();
  if (window == nullptr || window->settings().counts_items()) return false;
  return window->generations().size() > 1 || filter.item_count() > 0;
}

bool turn_by_clock(Journal& journal, const KeyPlace& key, core::bloom::ScalableFilter& filter,
                   int64_t now_ms) {
  if (filter.window()->settings().counts_items()) return true;
  const auto turn = filter.window()->turn_due(now_ms);
  if (!turn) return true;
  if (!filter.turn(*turn)) return false;
  const core::Decimal ordinal(static_cast<int64_t>(turn->ordinal));
  const core::Decimal start(turn->start);
  journal.append(key.database, std::array<std::string_view, 4>{kTurnCommand, key.name,
                                                               ordinal.text(), start.text()});
  return true;
}

}  // namespace persistence
