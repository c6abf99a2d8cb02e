// SPDX-License-Identifier: MIT
#include "server/commands/strings/bitmap_access.h"
#include "server/dispatch/admission.h"

namespace server {

using core::keyspace::ByteBuffer;

std::optional<ByteBuffer> zeroed_buffer(Context& ctx, uint64_t size_bytes) {
  ByteBuffer buffer;
  if (!ctx.admission().memory_suffices(size_bytes) || !buffer.resize_zeroed(size_bytes)) {
    ctx.reply.error(ctx.admission().memory_refusal());
    return std::nullopt;
  }
  return buffer;
}

std::optional<WritableBits> writable_bits(Context& ctx, const KeyRef& key, uint64_t size_bytes) {
  const auto found = ctx.find_string(key);
  if (!found) return std::nullopt;
  Entry* entry = *found;
  if (entry == nullptr) {
    auto buffer = zeroed_buffer(ctx, size_bytes);
    if (!buffer) return std::nullopt;
    entry = &ctx.insert(key);
    entry->set_raw(std::move(*buffer));
    return WritableBits{as_bytes(entry->make_raw()), true};
  }
  ByteBuffer& buffer = entry->make_raw();
  if (size_bytes <= buffer.size()) return WritableBits{as_bytes(buffer), false};
  const uint64_t growth_bytes = ByteBuffer::growth_bytes(buffer.size(), size_bytes);
  if (!ctx.admission().memory_suffices(growth_bytes) || !buffer.resize_zeroed(size_bytes)) {
    ctx.reply.error(ctx.admission().memory_refusal());
    return std::nullopt;
  }
  return WritableBits{as_bytes(buffer), true};
}

}  // namespace server
