// SPDX-License-Identifier: MIT
//
// Admission: the memory limits that apply to a command, by its origin. Commands read the configured
// limits and the free memory only through an Admission.
//
// Both the limits and the free memory restrict a client's command. A command from a journal, a
// leader or a snapshot was accepted earlier, perhaps under other limits. Rejecting it would lose
// data, so it is executed. Only a failed allocation is an error for every origin.
//
// Invariants: limits apply only to commands with the origin kClient.
// Thread safety: any thread may copy and use an Admission.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>

#include "core/keyspace/eviction_policy.h"
#include "core/memory/memory_budget.h"
#include "core/result.h"
#include "protocol/error_texts.h"
#include "server/base/config/config.h"
#include "server/session/session.h"

namespace server {

class MemoryMonitor;

// The error reply to a command that exceeds maxmemory.
inline constexpr std::string_view kOutOfMemory =
    "OOM command not allowed when used memory > 'maxmemory'.";
// The error reply if the machine has too little free memory and maxmemory is not set.
inline constexpr std::string_view kMachineOutOfMemory =
    "OOM the machine has too little free memory for this command (maxmemory is not set)";
// find_error() recognizes a lack of memory by this code when a command is replayed.
static_assert(protocol::error_code(kOutOfMemory) == protocol::kOutOfMemoryCode);
static_assert(protocol::error_code(kMachineOutOfMemory) == protocol::kOutOfMemoryCode);
inline core::Error out_of_memory() {
  return {std::string(kOutOfMemory), core::ErrorCode::kOutOfMemory};
}
inline constexpr std::string_view kStringTooLong =
    "ERR string exceeds maximum allowed size (proto-max-bulk-len)";

inline core::keyspace::EvictionPolicy eviction_policy(const Config& config) {
  return core::keyspace::EvictionPolicy{
      static_cast<uint8_t>(config.integer(OptionId::kMaxMemoryPolicy))};
}
// Returns whether the eviction policy is LFU, which counts uses of keys.
inline bool counts_uses(const Config& config) {
  return is_lfu(eviction_policy(config));
}

class Admission {
 public:
  // `config` and `memory` must outlive the Admission.
  Admission(const Config& config, const MemoryMonitor& memory, CommandOrigin origin)
      : config_(config), memory_(memory), is_judged_(origin == CommandOrigin::kClient) {}

  // Returns whether the limits apply: whether the command is a client's.
  bool has_limits() const { return is_judged_; }
  // Returns the size limit of strings that are created or sent: proto-max-bulk-len.
  uint64_t string_bytes_max() const {
    return is_judged_ ? static_cast<uint64_t>(config_.max_bulk_bytes()) : kNoLimit;
  }
  bool allows_string(uint64_t size_bytes) const { return size_bytes <= string_bytes_max(); }

  // Returns the size limit of a filter, bf.bloom-memory-usage-limit, which applies to the size that
  // BF.INFO reports.
  uint64_t filter_bytes_max() const {
    const int64_t limit_bytes = is_judged_ ? config_.bloom_memory_limit_bytes() : 0;
    return limit_bytes > 0 ? static_cast<uint64_t>(limit_bytes) : kNoLimit;
  }

  // Returns the limit on a filter's layers: bf.bloom_max_filters.
  uint64_t filter_layers_max() const {
    const int64_t limit = config_.integer(OptionId::kBloomMaxFilters);
    return is_judged_ ? static_cast<uint64_t>(limit) : kNoLimit;
  }

  // Returns whether `bytes` more may be allocated. Fewer than kAskedBytesMin bytes are always
  // allowed, without a query of the memory budget.
  bool memory_suffices(uint64_t bytes) const {
    return bytes < kAskedBytesMin || memory().fits(bytes);
  }
  // Returns the error text for a command whose memory does not suffice or cannot be allocated.
  std::string_view memory_refusal() const;
  core::Error out_of_memory() const {
    return {std::string(memory_refusal()), core::ErrorCode::kOutOfMemory};
  }
  // Returns the server's memory budget, for callers that need more than the check of
  // memory_suffices(). The budget lives as long as the server.
  const core::MemoryBudget& memory() const;
  // Returns the memory that one request may allocate now. The call is slow, because it queries the
  // system.
  uint64_t obtainable_memory_bytes() const;
  // The properties of a client's command that is_over_memory_limit() and make_room() read.
  struct Asked {
    const Session& session;
    std::span<const std::string_view> arguments;
    bool may_need_memory;
  };
  // Returns whether used memory exceeds maxmemory. Used memory includes big arguments that the
  // command may store.
  bool is_over_memory_limit(const Asked& command) const;
  // If used memory exceeds maxmemory, evicts keys for as long as maxmemory-eviction-tenacity
  // allows. Returns false if no key can be evicted and used memory exceeds maxmemory even without
  // the command's arguments. REQUIRES: no stripe lock is held.
  bool make_room(const Asked& command) const;
  // Evicts keys to make room for bytes that a client is about to send. REQUIRES: no stripe lock is
  // held.
  void make_room_for_input(uint64_t awaited_bytes) const;

 private:
  // Returns the bytes of the command's arguments. Returns 0 if the arguments are small or the
  // command needs no memory.
  static uint64_t arriving_bytes(const Asked& command);
  static constexpr uint64_t kNoLimit = std::numeric_limits<uint64_t>::max();
  // Smaller allocations are not checked against the free memory, because the query takes too long.
  static constexpr uint64_t kAskedBytesMin = uint64_t{1} << 20;

  const Config& config_;
  const MemoryMonitor& memory_;
  const bool is_judged_;
};

}  // namespace server
