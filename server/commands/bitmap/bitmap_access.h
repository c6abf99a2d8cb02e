// SPDX-License-Identifier: MIT
//
// What the bitmap commands share: string values as bytes, bit offsets, and room to write bits.
//
// Thread safety: as Context; functions that take a key need its lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "server/dispatch/context.h"
#include "server/dispatch/memory/admission.h"

namespace server {

inline std::span<const uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline std::span<uint8_t> as_bytes(core::keyspace::ByteBuffer& buffer) {
  return {reinterpret_cast<uint8_t*>(buffer.data()), buffer.size()};
}

// The value of `entry`, or no bytes for null, in which a bitmap is all zeros.
inline std::span<const uint8_t> bits_of(const Entry* entry, core::keyspace::IntegerText& scratch) {
  return entry == nullptr ? std::span<const uint8_t>() : as_bytes(entry->text(scratch));
}

// Offsets end here: at the longest string that is allowed.
inline uint64_t offset_limit_bits(const Context& ctx) {
  constexpr uint64_t kBytesMax = std::numeric_limits<uint64_t>::max() / 8;
  return std::min(ctx.admission().string_bytes_max(), kBytesMax) * 8;
}

struct WritableBits {
  std::span<uint8_t> bytes;
  bool grew = false;  // the key is new or longer than before
};

// The value under `key`, created or lengthened with zeros to at least `size_bytes`. Nothing when
// that cannot be: wrong type or no memory, which is answered. REQUIRES: the key's exclusive lock.
std::optional<WritableBits> writable_bits(Context& ctx, const KeyRef& key, uint64_t size_bytes);

// `size_bytes` zeros; nothing when there is no memory for them, which is answered.
std::optional<core::keyspace::ByteBuffer> zeroed_buffer(Context& ctx, uint64_t size_bytes);

}  // namespace server
