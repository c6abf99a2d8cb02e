// SPDX-License-Identifier: MIT
#include "server/dispatch/memory/admission.h"

#include "server/process/memory_monitor.h"

namespace server {

const core::MemoryBudget& Admission::memory() const {
  static const core::UnlimitedMemory kUnlimited;
  if (is_judged_) return memory_;
  return kUnlimited;
}

uint64_t Admission::obtainable_memory_bytes() const {
  return is_judged_ ? memory_.obtainable_bytes() : kNoLimit;
}

bool Admission::is_over_memory_limit() const {
  return is_judged_ && memory_.over_limit();
}

bool Admission::make_room() const {
  return memory_.make_room();
}

void Admission::note_kept(uint64_t bytes) const {
  if (bytes >= kKeptBytesMin) memory_.refresh();
}

}  // namespace server
