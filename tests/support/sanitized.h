// SPDX-License-Identifier: MIT
//
// The length of random tests in sanitized builds, which are many times slower.
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
