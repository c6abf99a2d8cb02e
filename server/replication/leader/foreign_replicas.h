// SPDX-License-Identifier: MIT
//
// ForeignReplicas: decides by `replica-foreign` whether replicas that are no Bloomery can hold the
// data. It also knows the offset from which they may continue.
//
// A foreign replica drops commands of the stream that it does not know, and acknowledges them. Its
// process ends when it loads a filter of an unknown module. So a foreign replica that cannot hold
// all kinds of filters is not served.
//
// Thread safety: none; Leader guards it.
// Source: docs/replication.md, "Replicas of another kind".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/keyspace/filters/filter_kinds.h"
#include "core/result.h"

namespace server {

class Config;
struct ServerState;

class ForeignReplicas {
 public:
  ForeignReplicas(const Config& config, const ServerState& state,
                  const core::keyspace::FilterKinds& kinds);

  // Why no foreign replica can be served now, behind "the replica is refused: "; nothing when they
  // can.
  std::optional<std::string> obstacle() const;
  // The same for one that has just asked for the stream. Errors: the reply.
  core::Result<> check(std::string_view address, int64_t now_us);

  // True when the stream holds commands, since the last call, that foreign replicas do not know.
  // These are commands in words of ours, and commands for filters that such replicas cannot hold,
  // even if these filters are gone already. `stream_end` is the stream's end now: foreign replicas
  // that are not behind it need a snapshot.
  bool take_own_words(uint64_t stream_end);
  // Whether the stream from `offset` on holds only what foreign replicas know.
  bool may_continue_from(uint64_t offset) const { return offset >= first_offset_; }

 private:
  std::optional<core::bloom::LayoutId> layout_not_held(std::string_view policy) const;
  // Whether filters were made, since the last call, that foreign replicas may be unable to hold.
  bool take_unheld_filters();

  const Config& config_;
  const ServerState& state_;
  const core::keyspace::FilterKinds& kinds_;
  uint64_t own_words_seen_;
  std::array<uint64_t, core::bloom::kLayoutIdsMax> totals_seen_{};
  // The last module's layout of which a filter was made, for `auto`.
  std::optional<core::bloom::LayoutId> module_layout_;
  uint64_t first_offset_ = 0;
  int64_t next_log_us_ = 0;  // of a refusal
};

}  // namespace server
