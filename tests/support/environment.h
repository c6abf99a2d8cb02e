// SPDX-License-Identifier: MIT
//
// Reads environment variables that repeat a random test (BLOOMERY_SEED) or make it longer.
//
// Thread safety: may be called from any thread; the environment must not change during a call.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace support {

inline uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace support
