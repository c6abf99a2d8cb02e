// SPDX-License-Identifier: MIT
//
// FilterRequest: the filter that BF.RESERVE or BF.INSERT asks for. This file parses all options of
// these commands and of BF.PLAN. Settings that a command omits come from the server's bf-* options.
//
// Invariants: each parameter of a parsed request is in range. The creation of the filter can still
// fail. The parameters may not fit the layout or the window, or memory or a limit may not suffice.
// Thread safety: the functions share only the atomic values of the configuration.
// Source: https://redis.io/docs/latest/commands/bf.reserve and bf.insert; TIGHTENING, SEED and
// VALIDATESCALETO are valkey-bloom's.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "core/bloom/parameters.h"
#include "core/result.h"
#include "server/dispatch/context.h"

namespace server {

// RedisBloom's highest error rate. Higher rates are lowered to this one.
inline constexpr double kErrorRateMax = 0.25;
inline constexpr int64_t kExpansionMax = 32768;

// Error texts of BF.RESERVE and BF.PLAN.
inline constexpr std::string_view kBadErrorRate = "ERR bad error rate";
inline constexpr std::string_view kCapacityRange =
    "ERR capacity must be in the range [1, 281474976710656]";
inline constexpr std::string_view kNoExpansion = "ERR no expansion";
inline constexpr std::string_view kCannotExpand = "Nonscaling filters cannot expand";
// Error texts of BF.INSERT.
inline constexpr std::string_view kInsertErrorRate = "Bad error rate";
inline constexpr std::string_view kInsertCapacity = "Bad capacity";
inline constexpr std::string_view kInsertExpansion = "Bad expansion";
// The error text of VALIDATESCALETO.
inline constexpr std::string_view kBadCapacity =
    "ERR bad capacity: write an integer, such as 100000";

struct FilterRequest {
  core::bloom::FilterParameters parameters;
  Arguments items{};       // items of BF.INSERT; empty if the command has none
  bool no_create = false;  // true with the option NOCREATE of BF.INSERT

  // Expiry of the key that is created. By default there is none.
  int64_t expires_at_ms = core::keyspace::kNoExpiry;
  // Start of the window in milliseconds since 1970. By default it starts now; only a journal states
  // another time.
  std::optional<int64_t> window_start_ms{};
};

// Returns the settings of a filter created by adding to a missing key. Draws a random seed if the
// layout uses one and the configuration asks for it. A journal of RedisBloom names no layout, so
// its filters get RedisBloom's layout.
core::bloom::FilterParameters default_filter_parameters(const Config& config, CommandOrigin origin);

// Parses "BF.RESERVE key error_rate capacity [option ...]". Bloomery's own journal
// states every setting except a tightening ratio that was not given. For such a ratio the
// configuration is ignored, so that replay does not depend on it.
core::Result<FilterRequest> parse_reserve(const Context& ctx);
// Parses "BF.INSERT key [option ...] [ITEMS item ...]".
core::Result<FilterRequest> parse_insert(const Context& ctx);
// Parses "BF.PLAN error_rate capacity [option ...]" as a client sends it. Also used by the
// dashboard's planner.
core::Result<core::bloom::FilterParameters> parse_plan(const Config& config, Arguments arguments);

}  // namespace server
