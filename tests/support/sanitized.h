// SPDX-License-Identifier: MIT
//
// Shortens random tests in builds with a sanitizer, in which code runs many times slower.
#pragma once

namespace support {

#if defined(BLOOMERY_ASAN) || defined(BLOOMERY_TSAN)
inline constexpr bool kIsSanitized = true;
#else
inline constexpr bool kIsSanitized = false;
#endif

template <class Count>
constexpr Count rounds(Count plain, Count sanitized) {
  return kIsSanitized ? sanitized : plain;
}

}  // namespace support
