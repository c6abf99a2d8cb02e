// SPDX-License-Identifier: MIT
#include "server/replication/leader/foreign_replicas.h"

#include <fmt/format.h>

#include "core/bloom/parameters.h"
#include "core/clock.h"
#include "core/printable.h"
#include "server/base/config/config.h"
#include "server/base/log/log.h"
#include "server/base/process/server_state.h"

namespace server {

using core::bloom::LayoutRow;

ForeignReplicas::ForeignReplicas(const Config& config, const ServerState& state,
                                 const core::keyspace::LayoutCounts& counts)
    : config_(config), state_(state), counts_(counts), own_words_seen_(state.own_words) {
  // take_unheld_filters() records how many filters of each layout were created so far. The result
  // is ignored, because the stream of this new leader contains no commands for filters that were
  // deleted earlier.
  (void)take_unheld_filters();
  module_layout_.reset();
  for (const LayoutRow& row : core::bloom::layout_rows()) {
    if (row.is_foreign && counts_.count(row.id) > 0) module_layout_ = row.id;
  }
}

std::optional<std::string> ForeignReplicas::obstacle() const {
  const std::string policy = config_.text(OptionId::kReplicaForeign);
  if (policy == "no") return std::string(kNoForeignReplicas);
  const auto layout = layout_not_held(policy);
  if (!layout) return std::nullopt;
  return fmt::format(
      "it cannot hold filters of the layout {}, the first of which was {} (replica-foreign {})",
      core::bloom::layout_name(*layout), core::printable(counts_.first_key(*layout)), policy);
}

core::Result<> ForeignReplicas::check(std::string_view address, int64_t now_us) {
  const auto found = obstacle();
  if (!found) return {};
  // The log line is limited to one a minute, because the replica retries every second.
  constexpr int64_t kLogEveryUs = 60 * core::kSecondUs;
  if (now_us >= next_log_us_) {
    next_log_us_ = now_us + kLogEveryUs;
    log_warning("Replica {} is refused: {}", address, *found);
  }
  // The error begins with NOMASTERLINK, so that the replica retries PSYNC later. After any error
  // other than NOMASTERLINK and LOADING, Redis sends SYNC on the same connection. A replica that
  // uses SYNC never acknowledges.
  return core::Error{fmt::format("NOMASTERLINK the replica is refused: {}", *found)};
}

std::optional<core::bloom::LayoutId> ForeignReplicas::layout_not_held(
    std::string_view policy) const {
  // RedisBloom and valkey-bloom have the same module name, so a replica can load only one of them.
  bool holds_foreign = false;
  for (const LayoutRow& row : core::bloom::layout_rows()) {
    if (counts_.count(row.id) == 0) continue;
    const bool is_held = policy == "auto" ? row.is_foreign && !holds_foreign : policy == row.name;
    if (!is_held) return row.id;
    holds_foreign = true;
  }
  return std::nullopt;
}

bool ForeignReplicas::take_unheld_filters() {
  const std::string policy = config_.text(OptionId::kReplicaForeign);
  bool any = false;
  for (const LayoutRow& row : core::bloom::layout_rows()) {
    uint64_t& seen = totals_seen_[static_cast<size_t>(row.id)];
    const uint64_t total = counts_.total(row.id);
    if (total == seen) continue;
    seen = total;
    // A replica can load only one module: RedisBloom or valkey-bloom. With `auto` this leader does
    // not know which one. So it assumes the module in whose layout it last found a new filter. A
    // new filter in any other layout counts as one that the replica cannot hold.
    const bool is_held = policy == "auto"
                             ? row.is_foreign && module_layout_.value_or(row.id) == row.id
                             : policy == row.name;
    if (row.is_foreign) module_layout_ = row.id;
    any |= !is_held;
  }
  return any;
}

// A filter is counted before the command that creates it is journalled. A foreign
// replica may be attached between these two steps. This is safe, because its snapshot waits for the
// end of the command, and so contains the filter.
bool ForeignReplicas::take_own_words(uint64_t stream_end) {
  const uint64_t count = state_.own_words.load(std::memory_order_acquire);
  const bool has_unheld = take_unheld_filters();
  if (count == own_words_seen_ && !has_unheld) return false;
  own_words_seen_ = count;
  first_offset_ = stream_end + 1;
  return true;
}

}  // namespace server
