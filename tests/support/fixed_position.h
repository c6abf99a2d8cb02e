// SPDX-License-Identifier: MIT
//
// FixedPosition: simulates a replication stream that stays at offset 17. It is used to test code
// that saves the offset in a snapshot.
//
// Thread safety: any thread may call the members, but no thread may change the data members during
// a call.
#pragma once

#include <optional>
#include <string>

#include "server/durability/data/stream_position.h"

namespace server {

class FixedPosition final : public StreamPosition {
 public:
  OrderedMutex& apply_mutex() override { return mutex_; }
  std::optional<persistence::RdbReplicationInfo> position() const override {
    if (!is_active) return std::nullopt;
    return persistence::RdbReplicationInfo{0, std::string(40, 'a'), 17};
  }
  bool has_diverged() const override { return is_diverged; }

  bool is_active = true;
  bool is_diverged = false;

 private:
  OrderedMutex mutex_{LockRank::kStream};
};

}  // namespace server
