// SPDX-License-Identifier: MIT
//
// Aborts when bytes decode to a filter that cannot be written and read again unchanged.
//
// The first byte of an input chooses the form: a module value, a chunk header or a BF.LOAD payload.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "persistence/filter_chunks.h"
#include "persistence/filter_codec.h"
#include "persistence/valkeybloom_blob.h"

namespace {

using FilterPtr = std::unique_ptr<core::bloom::ScalableFilter>;

class SmallBudget final : public core::MemoryBudget {
 public:
  uint64_t available_bytes() const override { return uint64_t{1} << 20; }
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
  if (form % 3 == 1) return persistence::decode_chunk_header(bytes, kBudget);
  if (form % 3 == 2) return persistence::decode_load_payload(bytes, kBudget);
  return decode_value(bytes);
}

std::string encoded(const core::bloom::ScalableFilter& filter) {
  std::string bytes;
  persistence::ByteWriter writer(bytes);
  persistence::encode_filter(writer, filter, persistence::Packing::kNever);
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto filter = decode_as(data[0], bytes);
  if (!filter) return 0;
  const std::string first = encoded(**filter);
  const auto again = decode_value(first);
  require(bool(again), "a filter that was written cannot be read");
  require(encoded(**again) == first, "a filter changed on its way");
  (*filter)->add("item", kBudget);
  (*filter)->may_contain("another");
  return 0;
}
