// SPDX-License-Identifier: MIT
//
// A memory budget whose number of bytes left changes only by set().
#pragma once

#include <cstdint>

#include "core/memory/memory_budget.h"

namespace support {

class Budget final : public core::MemoryBudget {
 public:
  explicit Budget(uint64_t bytes) : bytes_(bytes) {}
  uint64_t available_bytes() const override { return bytes_; }
  void set(uint64_t bytes) { bytes_ = bytes; }

 private:
  uint64_t bytes_;
};

}  // namespace support
