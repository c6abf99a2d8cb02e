// SPDX-License-Identifier: MIT
//
// A memory budget that always has the same number of bytes left.
#pragma once

#include <cstdint>

#include "core/memory/memory_budget.h"

namespace support {

class Budget final : public core::MemoryBudget {
 public:
  explicit Budget(uint64_t bytes) : bytes_(bytes) {}
  uint64_t available_bytes() const override { return bytes_; }

 private:
  uint64_t bytes_;
};

}  // namespace support
