// SPDX-License-Identifier: MIT
//
// How a planned filter's error rate and memory grow with its items, for the planner's drawing.
//
// Thread safety: a pure function.
// Source: docs/bloom_math.md.
#pragma once

#include <cstdint>
#include <vector>

#include "core/bloom/parameters.h"

namespace server::admin {

struct PlanPoint {
  double items = 0;
  double error_rate = 0;
  uint64_t bytes = 0;
};

// Error rate and memory for growing numbers of items, up to twice the capacity: what BF.STATS would
// predict. A filter that scales grows behind its capacity, and so does a generation behind its
// share. The curve of a window has all its generations alive. Empty if there can be no such filter.
std::vector<PlanPoint> plan_curve(const core::bloom::FilterParameters& parameters);

}  // namespace server::admin
