// SPDX-License-Identifier: MIT
#include "core/memory/allocation_size.h"

#include <bit>

namespace core {

size_t allocation_size(size_t bytes) {
  // Sizes above this are not rounded up: the rounding could overflow, and such a request always
  // fails.
  constexpr size_t kRoundedMax = size_t{1} << 62;
  if (bytes <= 8) return 8;
  if (bytes > kRoundedMax) return bytes;
  const size_t doubling = std::bit_width(bytes - 1) - 1;
  const size_t spacing = bytes <= 128 ? 16 : size_t{1} << (doubling - 2);
  return (bytes + spacing - 1) & ~(spacing - 1);
}

}  // namespace core
