// SPDX-License-Identifier: MIT
//
// plan_curve: returns a planned filter's error rate and memory by its number of items, for the
// planner's chart.
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

// Returns error rate and memory for growing numbers of items, up to twice the capacity, as BF.STATS
// would predict them. A scaling filter grows when it exceeds its capacity. Each generation of a
// window gets an equal part of the capacity, and grows when it exceeds this part. The curve of a
// window assumes that all generations are alive. Returns no points if no such filter can exist.
std::vector<PlanPoint> plan_curve(const core::bloom::FilterParameters& parameters);

}  // namespace server::admin
