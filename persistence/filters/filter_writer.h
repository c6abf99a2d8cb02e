// SPDX-License-Identifier: MIT
//
// FilterWriter: writes the fields of a filter's module value. It does not compress an array that
// forked processes share.
//
// Invariants: if the ByteWriter has a ChunkedOutput, each byte of an array that forked processes
// share is read once, in order.
// Thread safety: one thread at a time may use an object. That thread must hold the lock of the
// filter's key.
// Source: docs/formats.md, "Filters".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/bloom/scalable_filter.h"
#include "persistence/bytes/module_value.h"
#include "persistence/filters/filter_builder.h"

namespace persistence {

// Returns the fields of a layer in its stored form. REQUIRES: index < layer_count().
LayerClaim claim_of(const core::bloom::ScalableFilter& filter, size_t index);
// Returns the array in its stored form. If the stored form is longer than the filter's array,
// `padded` receives the bytes, and the result is a view of it.
std::string_view stored_array(const core::bloom::ScalableFilter& filter, size_t index,
                              std::string& padded);

class FilterWriter : public ModuleWriter {
 public:
  FilterWriter(ByteWriter& writer, uint64_t id, Packing packing)
      : ModuleWriter(writer, id), packing_(packing) {}

  void array(const core::bloom::ScalableFilter& filter, size_t index) {
    array_behind({}, filter, index);
  }
  // Writes a single string, which consists of `head` and the array.
  void array_behind(std::string_view head, const core::bloom::ScalableFilter& filter, size_t index);
  // Writes the array without its zeros, as write_runs() does.
  void runs(const core::bloom::ScalableFilter& filter, size_t index);

 private:
  void plain_string_head(std::string_view head, uint64_t array_bytes);
  Packing packing_of(const core::bloom::BitArray& bits) const;

  Packing packing_;
  std::string padded_;
};

}  // namespace persistence
