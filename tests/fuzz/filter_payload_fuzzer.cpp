// SPDX-License-Identifier: MIT
//
// Aborts if bytes decode to a filter that changes when it is written and read in any form. Also
// aborts if a chunk that does not fit at its position is accepted.
//
// The first byte of an input chooses the form: a module value, a chunk header, a BF.LOAD payload,
// or a chunk. The position of a chunk is in the next three bytes.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/bloom/layouts.h"
#include "persistence/filters/filter_chunks.h"
#include "persistence/filters/filter_codec.h"
#include "persistence/filters/valkeybloom_codec.h"
#include "tests/support/load_payload.h"

namespace {

using FilterPtr = std::unique_ptr<core::bloom::ScalableFilter>;

class SmallBudget final : public core::MemoryBudget {
 public:
  // The budget allows arrays that are large enough to be stored as runs of non-zero bytes.
  uint64_t available_bytes() const override { return uint64_t{4} << 20; }
};
const SmallBudget kBudget;

void require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

core::Result<FilterPtr> decode_value(std::string_view bytes) {
  persistence::StreamReader reader(bytes);
  return persistence::decode_filter(reader, kBudget);
}

core::Result<FilterPtr> decode_as(uint8_t form, std::string_view bytes) {
  if (form == 1) return persistence::decode_chunk_header(bytes, kBudget);
  if (form == 2) return persistence::decode_load_payload(bytes, kBudget);
  return decode_value(bytes);
}

FilterPtr small_filter(core::bloom::LayoutId layout) {
  core::bloom::FilterParameters parameters;
  parameters.layout = layout;
  parameters.error_rate = 0.01;
  parameters.capacity = 100;
  parameters.expansion = 2;
  auto filter = core::bloom::ScalableFilter::create(parameters, kBudget);
  require(bool(filter), "a small filter cannot be made");
  for (int i = 0; i < 500; ++i) (*filter)->add(std::to_string(i), kBudget);
  return std::move(*filter);
}

// An accepted chunk must fit into its layer. No chunk, accepted or rejected, may change the header
// of the filter.
void load_chunk(std::string_view bytes) {
  constexpr size_t kPositionBytes = 3;
  if (bytes.size() < kPositionBytes) return;
  uint64_t position = 0;
  for (size_t i = 0; i < kPositionBytes; ++i) {
    position = position << 8 | static_cast<uint8_t>(bytes[i]);
  }
  bytes.remove_prefix(kPositionBytes);
  for (const core::bloom::LayoutRow& layout : core::bloom::kLayoutRows) {
    const FilterPtr filter = small_filter(layout.id);
    const std::string header = persistence::encode_chunk_header(*filter);
    const auto outcome = persistence::load_chunk(*filter, position, bytes);
    require(persistence::encode_chunk_header(*filter) == header, "a chunk changed the header");
    std::string padded;
    const std::string_view now = persistence::chunk_at(*filter, position, padded);
    if (outcome == persistence::ChunkOutcome::kLoaded) {
      require(now.size() >= bytes.size(), "a chunk went past its layer");
    }
    filter->may_contain("item");
  }
}

std::string encoded(const core::bloom::ScalableFilter& filter) {
  std::string bytes;
  persistence::ByteWriter writer(bytes);
  persistence::encode_filter(writer, filter, persistence::Packing::kNever);
  return bytes;
}

// Encodes the filter in each form. Checks that the decoder accepts it and returns an equal filter.
void check_every_form(const core::bloom::ScalableFilter& filter) {
  const std::string first = encoded(filter);
  const std::string header = persistence::encode_chunk_header(filter);
  const auto again = decode_value(first);
  require(bool(again), "a filter that was written cannot be read");
  require(encoded(**again) == first, "a filter changed on its way");
  require(persistence::encode_chunk_header(**again) == header, "a filter came back otherwise");
  const auto headed = persistence::decode_chunk_header(header, kBudget);
  require(bool(headed), "a filter's header cannot be read");
  require(persistence::encode_chunk_header(**headed) == header, "a header changed on its way");
  if (filter.layout() != core::bloom::ValkeyBloomLayout::kId) return;
  const auto loaded =
      persistence::decode_load_payload(persistence::encode_load_payload(filter), kBudget);
  require(bool(loaded), "a payload of BF.LOAD cannot be read");
  require(encoded(**loaded) == first, "a payload of BF.LOAD changed the filter");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  constexpr uint8_t kForms = 4;
  if (data[0] % kForms == kForms - 1) {
    load_chunk(bytes);
    return 0;
  }
  const auto filter = decode_as(data[0] % kForms, bytes);
  if (!filter) return 0;
  check_every_form(**filter);
  (*filter)->add("item", kBudget);
  (*filter)->may_contain("another");
  if (layout_row((*filter)->layout()).clears_bits) {
    const core::bloom::ItemHasher hash = (*filter)->hasher();
    for (const char* item : {"item", "another", "0"}) (*filter)->remove(hash(item));
    check_every_form(**filter);
  }
  return 0;
}
