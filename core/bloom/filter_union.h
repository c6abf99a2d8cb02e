// SPDX-License-Identifier: MIT
//
// The union of filters: a filter that contains the items of all inputs.
//
// Filters with the same settings are united layer by layer, by OR. If the united layer has the same
// bits as the layer of one input, it gets the item count of that input's layer. Otherwise the item
// count is estimated from the set bits, within limits that follow from the inputs' counts. If the
// count of any layer is estimated, the union is marked as a filter with an estimated count.
//
// Invariants: the inputs are only read, and none of their untouched pages is touched.
// Thread safety: pure functions; the filters must not change during a call.
// Source: docs/bloom_math.md, "Unions".
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/bloom/scalable_filter.h"
#include "core/result.h"

namespace core::bloom {

// The filters to unite, at least one. The first filter decides the growth settings of the union.
using UnionInputs = std::span<const ScalableFilter* const>;

// Returns the size of the union, as counted by ScalableFilter::size_bytes(). Errors: the first
// reason why the filters cannot be united.
Result<uint64_t> union_bytes(UnionInputs inputs);

// States whether unite() accepts a layer that holds more items than its error rate allows.
enum class Overfill : uint8_t { kRefused, kAllowed };

// Returns the union. Errors: the errors of union_bytes(), a layer that would be too full, a failed
// allocation.
Result<std::unique_ptr<ScalableFilter>> unite(UnionInputs inputs, Overfill overfill);

}  // namespace core::bloom
