// SPDX-License-Identifier: MIT
//
// FilterRequest: the filter that BF.RESERVE, BF.INSERT or BF.PLAN asks for. Their options are
// parsed here alone; what a command leaves out comes from the bf-* options of the server.
//
// Invariants: the parameters of a parsed request are in range; only memory can still refuse them.
// Thread safety: values; the functions read the configuration's atomics.
// Source: https://redis.io/docs/latest/commands/bf.reserve and bf.insert; TIGHTENING, SEED and
// VALIDATESCALETO are valkey-bloom's.
#pragma once

#include <cstdint>
#include <optional>

#include "core/bloom/parameters.h"
#include "core/result.h"
#include "server/dispatch/context.h"

namespace server {

// RedisBloom builds no filter that errs more often; asking for more is answered with this.
inline constexpr double kErrorRateMax = 0.25;
inline constexpr int64_t kExpansionMax = 32768;

struct FilterRequest {
  core::bloom::FilterParameters parameters;
  Arguments items{};       // BF.INSERT: may be empty
  bool no_create = false;  // BF.INSERT
  // Of the key that is made; none by default.
  int64_t expires_at_ms = core::keyspace::kNoExpiry;
  // Of a journal that says when a window began.
  std::optional<int64_t> window_start_ms{};
};

// What a filter gets that is made by adding to a missing key. Draws a random seed where the layout
// uses one and the configuration wants it.
// A foreign journal names no layout: it is that of the server that wrote it.
core::bloom::FilterParameters default_filter_parameters(const Config& config, CommandOrigin origin);

// BF.RESERVE key error_rate capacity [option ...].
// A journal of ours spells out whatever matters, so what it leaves out is not the configuration's.
core::Result<FilterRequest> parse_reserve(const Context& ctx);
// BF.INSERT key [option ...] [ITEMS item ...].
core::Result<FilterRequest> parse_insert(const Context& ctx);
// BF.PLAN error_rate capacity [option ...], as a client sends it; for the dashboard's planner, too.
core::Result<core::bloom::FilterParameters> parse_plan(const Config& config, Arguments words);

}  // namespace server
