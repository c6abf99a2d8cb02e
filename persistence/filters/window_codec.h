// SPDX-License-Identifier: MIT
//
// A filter's window in its stored forms: a row of numbers, the same in module values and in the
// headers of chunks.
//
// Thread safety: pure functions; the filter needs its key's lock.
// Source: docs/formats.md, "Filters".
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/bloom/scalable_filter.h"
#include "persistence/filters/filter_builder.h"

namespace persistence {

// REQUIRES: a filter with a window.
std::vector<uint64_t> encode_window(const core::bloom::ScalableFilter& filter);
// Takes as many numbers as encode_window() gave; the builder fails when no filter of so many layers
// has this window. To be called before the first layer.
void decode_window(const std::function<uint64_t()>& next, uint64_t layer_count,
                   FilterBuilder& builder);

}  // namespace persistence
