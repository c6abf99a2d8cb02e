// SPDX-License-Identifier: MIT
//
// WindowWords: the options of filters with a window.
//
// Invariants: parsed options describe either no window, or a window that a filter can have.
// Thread safety: each object belongs to one thread.
// Source: core/bloom/window.h.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/bloom/parameters.h"
#include "core/result.h"
#include "protocol/arguments.h"

namespace server {

inline constexpr std::string_view kBadWindow =
    "ERR bad window: write seconds or items, such as WINDOW 3600 or WINDOW 1000 ITEMS";
inline constexpr std::string_view kSecondsRange =
    "ERR window must be in the range [1, 4294967295] seconds";
inline constexpr std::string_view kItemsRange =
    "ERR window must be in the range [1, 281474976710656] items";
inline constexpr std::string_view kGenerationsRange =
    "ERR generations must be in the range [1, 64]";
static_assert(core::bloom::WindowSettings::kSecondsMax == 4294967295 &&
                  core::bloom::WindowSettings::kItemsMax == 281474976710656 &&
                  core::bloom::WindowSettings::kGenerationsMax == 64,
              "the texts name them");
inline constexpr std::string_view kNeedsWindow = "ERR GENERATIONS and REFRESH need WINDOW";
inline constexpr std::string_view kWindowTooShort =
    "ERR window must have an item for each generation";

// Parses WINDOW length [ITEMS] [GENERATIONS generations] [REFRESH], in any order. A journal of
// Bloomery adds START milliseconds.
class WindowWords {
 public:
  // With kInsert, the word ITEMS after the window's length is ambiguous: in BF.INSERT this word
  // also begins the list of items. It is the unit of the length only if a second ITEMS follows,
  // with nothing but options between the two words.
  enum class Form : uint8_t { kReserve, kInsert };

  WindowWords() = default;
  WindowWords(Form form, bool is_of_own_journal)
      : form_(form), is_of_own_journal_(is_of_own_journal) {}

  // Parses one option about the window. Returns false if the next argument is not one.
  bool take(protocol::ArgumentCursor& cursor);
  bool is_asked() const { return length_.has_value(); }
  // Returns the requested window, which may be none. Errors: the options do not describe a valid
  // window.
  core::Result<core::bloom::WindowSettings> settings() const;
  // Returns the time at which the window began, if the journal states it.
  std::optional<int64_t> start_ms() const { return start_ms_; }

 private:
  void take_length(protocol::ArgumentCursor& cursor);
  bool is_unit(std::span<const std::string_view> rest) const;

  Form form_ = Form::kReserve;
  bool is_of_own_journal_ = false;
  std::optional<uint64_t> length_;
  bool counts_items_ = false;
  std::optional<uint8_t> generations_;
  bool refreshes_ = false;
  std::optional<int64_t> start_ms_;
};

}  // namespace server
