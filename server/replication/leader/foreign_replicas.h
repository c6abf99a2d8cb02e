// SPDX-License-Identifier: MIT
//
// ForeignReplicas: applies the option `replica-foreign`. Decides whether foreign replicas, such as
// Redis or Valkey servers, can hold the data of this leader. Also records the first offset of the
// stream from which a foreign replica may continue.
//
// A foreign replica drops unknown commands of the stream, but acknowledges their bytes. Its process
// ends when it loads a filter of an unknown module. So a foreign replica that cannot hold all kinds
// of filters is not served.
//
// Thread safety: one thread at a time may use an object. Leader's mutex guards it.
// Source: docs/replication.md, "Replicas of another kind".
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/keyspace/layout_counts.h"
#include "core/result.h"

namespace server {

class Config;
struct ServerState;

// The reason that the server states when `replica-foreign no` rejects a foreign replica.
inline constexpr std::string_view kNoForeignReplicas =
    "it is another kind of server than its leader (replica-foreign no)";

class ForeignReplicas {
 public:
  ForeignReplicas(const Config& config, const ServerState& state,
                  const core::keyspace::LayoutCounts& counts);

  // Returns the reason why no foreign replica can be served now, or nullopt if foreign replicas can
  // be served. The text follows the words "the replica is refused: " in messages.
  std::optional<std::string> obstacle() const;
  // Checks whether a foreign replica that requests the stream can be served. Errors: the reply to
  // the replica.
  core::Result<> check(std::string_view address, int64_t now_us);

  // Returns whether the stream has received, since the last call, commands that foreign replicas
  // cannot execute. These are commands that only Bloomery has, and commands for filters that such
  // replicas cannot hold, even if the filters are deleted already. `stream_end` is the present end
  // of the stream. If the result is true, a foreign replica can no longer continue from
  // `stream_end` or an earlier offset: it needs a snapshot.
  bool take_own_words(uint64_t stream_end);
  // Returns whether foreign replicas can execute all of the stream from `offset` on.
  bool may_continue_from(uint64_t offset) const { return offset >= first_offset_; }

 private:
  std::optional<core::bloom::LayoutId> layout_not_held(std::string_view policy) const;
  // Returns whether a filter that a foreign replica may not support was created since the last call
  // of this function.
  bool take_unheld_filters();

  const Config& config_;
  const ServerState& state_;
  const core::keyspace::LayoutCounts& counts_;
  uint64_t own_words_seen_;
  std::array<uint64_t, core::bloom::kLayoutIdsMax> totals_seen_{};
  // For `replica-foreign auto`: the layout of the last filter that was created in the layout of
  // RedisBloom or valkey-bloom.
  std::optional<core::bloom::LayoutId> module_layout_;
  uint64_t first_offset_ = 0;
  int64_t next_log_us_ = 0;  // time at which the next rejection may be logged
};

}  // namespace server
