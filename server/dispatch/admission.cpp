// SPDX-License-Identifier: MIT
#include "server/dispatch/admission.h"

#include "server/base/process/memory_monitor.h"

namespace server {

const core::MemoryBudget& Admission::memory() const {
  static const core::UnlimitedMemory kUnlimited;
  if (is_judged_) return memory_;
  return kUnlimited;
}

uint64_t Admission::obtainable_memory_bytes() const {
  return is_judged_ ? memory_.obtainable_bytes() : kNoLimit;
}

std::string_view Admission::memory_refusal() const {
  const bool has_limit = is_judged_ && memory_.limit_bytes() != 0;
  return has_limit ? kOutOfMemory : kMachineOutOfMemory;
}

uint64_t Admission::arriving_bytes(const Asked& command) {
  constexpr uint64_t kBigBytes = uint64_t{64} << 10;
  const uint64_t received = command.session.client->query_buffer_bytes;
  if (received <= kBigBytes || !command.may_need_memory) return 0;
  uint64_t sum = 0;
  for (const std::string_view argument : command.arguments) sum += argument.size();
  return sum > kBigBytes ? sum : 0;
}

bool Admission::is_over_memory_limit(const Asked& command) const {
  return memory_.limit_bytes() != 0 && is_judged_ && memory_.over_limit(arriving_bytes(command));
}

void Admission::make_room_for_input(uint64_t awaited_bytes) const {
  if (memory_.limit_bytes() == 0 || !is_judged_) return;
  if (memory_.over_limit(awaited_bytes)) memory_.make_room(awaited_bytes);
}

bool Admission::make_room(const Asked& command) const {
  return !is_over_memory_limit(command) || memory_.make_room(arriving_bytes(command)) ||
         !memory_.over_limit();
}

}  // namespace server
