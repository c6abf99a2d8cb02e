// SPDX-License-Identifier: MIT
//
// ByteSink and ByteSource: the destination and the origin of a snapshot: a file, a socket or
// memory.
//
// Invariants: a write accepts all bytes or fails; a read that returns nothing means the end.
// Thread safety: one thread at a time may use an object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "core/result.h"

namespace persistence {

class ByteSink {
 public:
  virtual ~ByteSink() = default;
  virtual core::Result<> write(std::string_view bytes) = 0;
};

class ByteSource {
 public:
  static constexpr uint64_t kUnknownSize = std::numeric_limits<uint64_t>::max();

  virtual ~ByteSource() = default;
  // Reads at least one byte, unless the source has ended or `out` is empty. Returns the number of
  // bytes read.
  virtual core::Result<size_t> read(std::span<char> out) = 0;
  // Returns an upper bound of the source's total size, including the bytes that were already read.
  // A stored length that exceeds this bound is rejected before anything is allocated.
  virtual uint64_t size_bound() const { return kUnknownSize; }
};

}  // namespace persistence
