// SPDX-License-Identifier: MIT
//
// How a planned filter's error rate grows with its items, for the planner's drawing.
//
// Thread safety: a pure function.
// Source: docs/bloom_math.md.
#pragma once

#include <utility>
#include <vector>

#include "core/bloom/parameters.h"

namespace server::admin {

// Items and the error rate with so many, up to twice the capacity: what BF.STATS would predict. A
// filter that scales grows behind its capacity, and so does a generation behind its share.
// Of a window: with all its generations alive. Empty if there can be no such filter.
std::vector<std::pair<double, double>> plan_curve(const core::bloom::FilterParameters& parameters);

}  // namespace server::admin
