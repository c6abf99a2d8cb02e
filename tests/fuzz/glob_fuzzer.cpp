// SPDX-License-Identifier: MIT
//
// Reads a pattern and a text, split at the first line end. Aborts if the shortcut of core::Glob for
// prefixes gives another result than the whole match. For short inputs, also aborts if the naive
// model, which is slow, gives another result.
//
// The first byte of an input chooses whether case matters.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/glob.h"
#include "tests/support/naive_glob.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kStarsMax = 4;
  constexpr size_t kTwinBytesMax = 32;
  constexpr size_t kBytesMax = 4096;
  if (size < 2 || size > kBytesMax) return 0;
  const bool ignores_case = data[0] % 2 != 0;
  const std::string_view all(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string_view pattern = all.substr(0, all.find('\n'));
  const std::string_view text = all.substr(std::min(pattern.size() + 1, all.size()));
  const core::Glob glob(pattern,
                        ignores_case ? core::LetterCase::kIgnored : core::LetterCase::kExact);
  const bool is_match = glob.matches(text);
  const bool is_prefix = glob.is_prefix_with(text, core::Glob::head_of(text));
  if (is_prefix && glob.matches_behind_head(text) != is_match) std::abort();
  const bool is_short = std::ranges::count(pattern, '*') <= static_cast<ptrdiff_t>(kStarsMax) &&
                        text.size() <= kTwinBytesMax && pattern.size() <= kTwinBytesMax;
  // As in Redis, a pattern of stars does not match an empty text.
  if (!is_short || (text.empty() && !pattern.empty())) return 0;
  if (support::naive_matches(pattern, text, ignores_case) != is_match) std::abort();
  return 0;
}
