// SPDX-License-Identifier: MIT
//
// use_rules: returns the configured rules for counting the uses of keys.
//
// Thread-safe: the function only reads the configuration.
#pragma once

#include "core/keyspace/key_use.h"
#include "server/base/config/config.h"

namespace server {

inline core::keyspace::UseRules use_rules(const Config& config) {
  return {static_cast<uint32_t>(config.integer(OptionId::kLfuLogFactor)),
          static_cast<uint32_t>(config.integer(OptionId::kLfuDecayTime))};
}

}  // namespace server
