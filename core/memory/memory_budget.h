// SPDX-License-Identifier: MIT
//
// MemoryBudget: limits large allocations. Callers check the budget before they allocate, so that a
// request that does not fit is rejected instead of killing the process.
//
// Thread safety: all members may be called from any thread.
#pragma once

#include <cstdint>
#include <limits>

namespace core {

class MemoryBudget {
 public:
  virtual ~MemoryBudget() = default;
  // Bytes that may still be allocated: the minimum of what `maxmemory` leaves and what the machine
  // has available. The value changes constantly and is not a reservation.
  virtual uint64_t available_bytes() const = 0;
  virtual bool fits(uint64_t bytes) const { return bytes <= available_bytes(); }
  // Returns the budget of the whole server. If this is the budget of one value, it is a part of it.
  virtual const MemoryBudget& whole() const { return *this; }
};

class UnlimitedMemory final : public MemoryBudget {
 public:
  uint64_t available_bytes() const override { return std::numeric_limits<uint64_t>::max(); }
};

}  // namespace core
