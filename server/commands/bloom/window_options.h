// SPDX-License-Identifier: MIT
//
// WindowWords: the option words of filters that forget.
//
// Invariants: the settings of parsed words are a window that a filter can have, or none.
// Thread safety: a value.
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

// WINDOW length [ITEMS] [GENERATIONS generations] [REFRESH], in any order, and in journals of ours
// START milliseconds.
class WindowWords {
 public:
  // In BF.INSERT, ITEMS is the window's unit only where options and another ITEMS follow.
  enum class Form : uint8_t { kReserve, kInsert };

  WindowWords() = default;
  WindowWords(Form form, bool is_of_own_journal)
      : form_(form), is_of_own_journal_(is_of_own_journal) {}

  // Takes one of the options. False when the next word is none of them.
  bool take(protocol::ArgumentCursor& cursor);
  bool is_asked() const { return length_.has_value(); }
  // What was asked for, perhaps nothing. Errors: words that make no window.
  core::Result<core::bloom::WindowSettings> settings() const;
  // When the window began, where a journal says so.
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
