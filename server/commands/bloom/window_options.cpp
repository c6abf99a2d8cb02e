// SPDX-License-Identifier: MIT
#include "server/commands/bloom/window_options.h"

#include <algorithm>

namespace server {
namespace {

using core::bloom::WindowSettings;
using core::bloom::WindowUnit;
using protocol::ArgumentCursor;

// An option of BF.INSERT, and the number of its values.
struct OptionWord {
  std::string_view word;
  size_t values;
};
constexpr OptionWord kInsertOptions[] = {
    {"CAPACITY", 1},    {"ERROR", 1},      {"EXPANSION", 1}, {"NOCREATE", 0},
    {"NONSCALING", 0},  {"TIGHTENING", 1}, {"SEED", 1},      {"VALIDATESCALETO", 1},
    {"LAYOUT", 1},      {"DELETABLE", 0},  {"REGIONS", 1},   {"EX", 1},
    {"PX", 1},          {"EXAT", 1},       {"PXAT", 1},      {"WINDOW", 1},
    {"GENERATIONS", 1}, {"REFRESH", 0},    {"START", 1},
};

}  // namespace

bool WindowWords::take(ArgumentCursor& cursor) {
  if (cursor.eat_keyword("WINDOW")) {
    take_length(cursor);
  } else if (cursor.eat_keyword("GENERATIONS")) {
    const int64_t count =
        cursor.take_int64_between(1, WindowSettings::kGenerationsMax, kGenerationsRange);
    generations_ = static_cast<uint8_t>(count);
  } else if (cursor.eat_keyword("REFRESH")) {
    refreshes_ = true;
  } else if (is_of_own_journal_ && cursor.eat_keyword("START")) {
    start_ms_ = cursor.take_int64();
  } else {
    return false;
  }
  return true;
}

void WindowWords::take_length(ArgumentCursor& cursor) {
  const int64_t length = cursor.take_int64(kBadWindow);
  if (!cursor.ok()) return;
  counts_items_ = is_unit(cursor.rest()) && cursor.eat_keyword("ITEMS");
  const uint64_t max = counts_items_ ? WindowSettings::kItemsMax : WindowSettings::kSecondsMax;
  if (length < 1 || static_cast<uint64_t>(length) > max) {
    return cursor.fail(counts_items_ ? kItemsRange : kSecondsRange);
  }
  length_ = static_cast<uint64_t>(length);
}

// Returns whether ITEMS is the unit of the window. `rest` has the arguments after the length.
bool WindowWords::is_unit(std::span<const std::string_view> rest) const {
  if (form_ == Form::kReserve) return true;
  for (size_t i = 1; i < rest.size();) {
    if (protocol::equals_ignore_case(rest[i], "ITEMS")) return true;
    const auto* const option = std::ranges::find_if(kInsertOptions, [&](const OptionWord& each) {
      return protocol::equals_ignore_case(each.word, rest[i]);
    });
    if (option == std::end(kInsertOptions)) return false;
    i += 1 + option->values;
  }
  return false;
}

core::Result<WindowSettings> WindowWords::settings() const {
  WindowSettings window;
  if (!length_) {
    if (!generations_ && !refreshes_ && !start_ms_) return window;
    return core::Error{std::string(kNeedsWindow)};
  }
  constexpr uint64_t kSecondMs = 1000;
  window.unit = counts_items_ ? WindowUnit::kItems : WindowUnit::kMilliseconds;
  window.length = counts_items_ ? *length_ : *length_ * kSecondMs;
  window.generations = generations_.value_or(WindowSettings::kUsualGenerations);
  window.refreshes = refreshes_;
  if (window.is_valid()) return window;
  return core::Error{std::string(kWindowTooShort)};
}

}  // namespace server
