// SPDX-License-Identifier: MIT
//
// Numbers by which a run of random tests is replayed (BLOOMERY_SEED) or made longer.
//
// Thread safety: a function; nobody changes the environment meanwhile.
#pragma once

#include <cstdint>
#include <cstdlib>

namespace support {

inline uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

}  // namespace support
