// SPDX-License-Identifier: MIT
//
// SubscriptionFigures: the numbers of a session's subscriptions, their memory and the state of its
// CLIENT TRACKING.
//
// Thread safety: the session's thread writes, any thread reads. Any thread may add to
// `names_bytes`.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "core/published.h"

namespace server {

enum class SubscriptionKind : uint8_t { kChannel, kPattern, kShardChannel };
inline constexpr std::array kSubscriptionKinds{
    SubscriptionKind::kChannel, SubscriptionKind::kPattern, SubscriptionKind::kShardChannel};
inline constexpr size_t kSubscriptionKindCount = kSubscriptionKinds.size();

struct SubscriptionFigures {
  // The memory of the subscriptions, including that in PubSub's tables.
  std::atomic<uint64_t> names_bytes{0};
  core::Published<uint64_t> prefixes_bytes{0};  // memory of the prefixes of CLIENT TRACKING
  core::Published<bool> tracks{false};
  core::Published<bool> redirect_is_broken{false};
  core::Published<bool> is_broadcast{false};
  core::Published<uint64_t> redirect{0};  // id of the client that invalidations are redirected to

  size_t count(SubscriptionKind kind) const { return counts_[static_cast<size_t>(kind)]; }
  void set_count(SubscriptionKind kind, size_t count) {
    counts_[static_cast<size_t>(kind)] = count;
  }
  bool any() const { return counts_[0] + counts_[1] + counts_[2] != 0; }
  uint64_t bytes() const { return names_bytes.load(std::memory_order_relaxed) + prefixes_bytes; }

 private:
  std::array<core::Published<size_t>, kSubscriptionKindCount> counts_{
      core::Published<size_t>(0), core::Published<size_t>(0), core::Published<size_t>(0)};
};

}  // namespace server
