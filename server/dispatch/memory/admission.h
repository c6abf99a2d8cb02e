// SPDX-License-Identifier: MIT
//
// Admission: the limits that apply to a command, by its origin. The one place in commands/ that
// reads the configured limits and free memory.
//
// A client's command is subject to both. A command from a journal, a leader or a snapshot was
// allowed once, perhaps under other limits: refusing it would lose data, so it is executed. Only a
// failed allocation is an error for every origin.
//
// Invariants: for any origin but kClient every question is answered with yes.
// Thread safety: a value; usable from any thread.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "core/memory_budget.h"
#include "server/config/config.h"
#include "server/session/session.h"

namespace server {

class MemoryMonitor;

// What is answered beyond the limits.
inline constexpr std::string_view kOutOfMemory =
    "OOM command not allowed when used memory > 'maxmemory'.";
inline constexpr std::string_view kStringTooLong =
    "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

// Whether the policy of eviction, an lfu one, goes by how often keys are used.
inline bool counts_uses(const Config& config) {
  return (static_cast<uint64_t>(config.integer(OptionId::kMaxMemoryPolicy)) & 3) == 1;
}

class Admission {
 public:
  // `config` and `memory` must outlive this.
  Admission(const Config& config, const MemoryMonitor& memory, CommandOrigin origin)
      : config_(config), memory_(memory), is_judged_(origin == CommandOrigin::kClient) {}

  // The longest string that may be made or sent; proto-max-bulk-len.
  uint64_t string_bytes_max() const {
    return is_judged_ ? static_cast<uint64_t>(config_.max_bulk_bytes()) : kNoLimit;
  }
  bool allows_string(uint64_t size_bytes) const { return size_bytes <= string_bytes_max(); }

  // The biggest filter, as BF.INFO counts its size; bf.bloom-memory-usage-limit.
  uint64_t filter_bytes_max() const {
    const int64_t limit_bytes = is_judged_ ? config_.bloom_memory_limit_bytes() : 0;
    return limit_bytes > 0 ? static_cast<uint64_t>(limit_bytes) : kNoLimit;
  }

  // The most layers that a filter may grow to; bf.bloom_max_filters.
  uint64_t filter_layers_max() const {
    const int64_t limit = config_.integer(OptionId::kBloomMaxFilters);
    return is_judged_ ? static_cast<uint64_t>(limit) : kNoLimit;
  }

  // Whether `bytes` more may be allocated. Small amounts are not worth the question.
  bool memory_suffices(uint64_t bytes) const {
    return bytes < kAskedBytesMin || memory().fits(bytes);
  }
  // For callers with questions of their own. It lives as long as the server.
  const core::MemoryBudget& memory() const;
  // Memory that one request may get right now; costs as much as asking the system does.
  uint64_t obtainable_memory_bytes() const;
  // A client's command whose memory is asked for.
  struct Asked {
    const Session& session;
    std::span<const std::string_view> words;
    bool may_need_memory;
  };
  // Whether used memory, with big words that the command may store, exceeds maxmemory.
  bool is_over_memory_limit(const Asked& command) const;
  // If it does, evicts keys until they fit. False: the limit is exceeded without them, and no key
  // may go. REQUIRES: no stripe is held.
  bool make_room(const Asked& command) const;
  // Evicts keys for bytes that a client is about to send. REQUIRES: no stripe is held.
  void make_room_for_input(uint64_t awaited_bytes) const;

 private:
  // Bytes of the command's words, if they are many.
  static uint64_t arriving_bytes(const Asked& command);
  static constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
  // Below this, asking for the free memory costs more than the answer is worth.
  static constexpr uint64_t kAskedBytesMin = uint64_t{1} << 20;

  const Config& config_;
  const MemoryMonitor& memory_;
  const bool is_judged_;
};

}  // namespace server
