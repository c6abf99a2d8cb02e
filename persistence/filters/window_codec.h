// SPDX-License-Identifier: MIT
//
// Encodes and decodes a filter's window as a sequence of numbers, which is the same in module
// values and in chunk headers.
//
// Thread safety: pure functions; the caller holds the lock of the filter's key.
// Source: docs/formats.md, "Filters".
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/bloom/scalable_filter.h"
#include "persistence/filters/filter_builder.h"

namespace persistence {

// Returns the window as numbers. REQUIRES: the filter has a window.
std::vector<uint64_t> encode_window(const core::bloom::ScalableFilter& filter);
// Reads the numbers written by encode_window(). The builder fails if a filter with `layer_count`
// layers cannot have this window. Must be called before the first layer is added.
void decode_window(const std::function<uint64_t()>& next, uint64_t layer_count,
                   FilterBuilder& builder);

}  // namespace persistence
