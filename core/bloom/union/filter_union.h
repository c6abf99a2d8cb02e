// SPDX-License-Identifier: MIT
//
// The union of filters: a filter that answers 1 for what any of them answers 1 for.
//
// Filters whose items fall on the same bits are united layer by layer, by OR. The items of a layer
// that is made of several are as many as its bits tell, within what the counts of its parts allow;
// the filter is then marked as one whose count is estimated.
//
// Invariants: the filters united are only read, and none of their untouched pages is touched.
// Thread safety: pure functions; the filters must not change meanwhile.
// Source: docs/bloom_math.md, "Unions".
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/bloom/scalable_filter.h"
#include "core/result.h"

namespace core::bloom {

// At least one, of which the first decides what the union may grow like.
using UnionInputs = std::span<const ScalableFilter* const>;

// What the union takes, as ScalableFilter::size_bytes() counts it. Errors: the first reason for
// which the filters have none.
Result<uint64_t> union_bytes(UnionInputs inputs);

// Whether a layer may come to hold more items than its error rate allows.
enum class Overfill : uint8_t { kRefused, kAllowed };

// Errors: as union_bytes(); a layer that would be too full; memory that cannot be had.
Result<std::unique_ptr<ScalableFilter>> unite(UnionInputs inputs, Overfill overfill);

}  // namespace core::bloom
