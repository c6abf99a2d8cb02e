// SPDX-License-Identifier: MIT
//
// Helpers of the bitmap commands. They return string values as bytes, return the limit
// of bit offsets, and provide space to write bits.
//
// Thread safety: the thread that runs the command calls the functions. Functions with a key as
// argument require the key's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>

#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"

namespace server {

inline std::span<const uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}
inline std::span<uint8_t> as_bytes(core::keyspace::ByteBuffer& buffer) {
  return {reinterpret_cast<uint8_t*>(buffer.data()), buffer.size()};
}

// Returns the bytes of `entry`. Returns no bytes for a null entry, because a missing bitmap is all
// zeros.
inline std::span<const uint8_t> bits_of(const Entry* entry, core::keyspace::IntegerText& scratch) {
  return entry == nullptr ? std::span<const uint8_t>() : as_bytes(entry->text(scratch));
}

// Returns the limit on bit offsets, which follows from the longest string that is allowed.
inline uint64_t offset_limit_bits(const Context& ctx) {
  constexpr uint64_t kBytesMax = std::numeric_limits<uint64_t>::max() / 8;
  return std::min(ctx.admission().string_bytes_max(), kBytesMax) * 8;
}

struct WritableBits {
  std::span<uint8_t> bytes;
  bool grew = false;  // true if the key is new or its value was extended
};

// Returns the value of `key`, created or extended with zeros to at least `size_bytes`. If the key
// holds another type or memory is short, replies with the error and returns nullopt. REQUIRES: the
// key's exclusive lock.
std::optional<WritableBits> writable_bits(Context& ctx, const KeyRef& key, uint64_t size_bytes);

// Returns `size_bytes` zeros. If memory is short, replies with the error and returns nullopt.
std::optional<core::keyspace::ByteBuffer> zeroed_buffer(Context& ctx, uint64_t size_bytes);

}  // namespace server
