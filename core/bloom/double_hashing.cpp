// SPDX-License-Identifier: MIT
#include "core/bloom/double_hashing.h"

#include <cmath>

namespace core::bloom {

double double_hashing_error(const Geometry& geometry, uint64_t item_count) {
  const double bits = double(geometry.bit_count);
  const double hashes = geometry.hash_count;
  const double items = double(item_count);
  const double fill = -std::expm1(items * hashes * std::log1p(-1.0 / bits));
  // A sequence of bit indices is defined by a start and a step, both modulo the bit count. So two
  // items have the same sequence, in the same or in reverse order, with probability 2 / bits^2.
  // More hashes do not reduce the false positives that such pairs of items cause.
  const double repeated = items * 2 / (bits * bits);
  return std::min(1.0, std::pow(fill, hashes) + repeated);
}

}  // namespace core::bloom
