// SPDX-License-Identifier: MIT
//
// NewValue: a string that a command stores from its arguments into the keyspace.
//
// Big strings are copied before any lock is taken, so that other clients of the stripe do not wait
// for the copy. Small strings are copied directly into their entry. A big argument that was
// received into memory of its own becomes the value without a copy.
//
// Invariants: store() either stores the whole value or changes nothing.
// Thread safety: each object belongs to one thread. The argument must outlive the object.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/keyspace/byte_buffer.h"
#include "server/dispatch/context.h"

namespace server {

class NewValue {
 public:
  explicit NewValue(std::string_view text) : text_(text) {}
  // Copies the text if it is big. Must be called before the value is stored. The copy takes long,
  // so the caller should not hold a lock if it can avoid that. Returns false if memory is short.
  [[nodiscard]] bool prepare(const Context& ctx) {
    return text_.size() < kBigTextBytes || copy(ctx);
  }
  // Does the same as prepare(), but if possible moves a big text out of the argument instead of
  // copying it. The caller must not read the text after unlocking the key.
  [[nodiscard]] bool take_or_prepare(const Context& ctx) {
    return text_.size() < kBigTextBytes || take_argument(ctx, text_, bytes_) || copy(ctx);
  }

  // Stores the value in `entry`, or in a new entry if `entry` is null. Keeps the expiry. Returns
  // null if memory is short. Must be called once. REQUIRES: the key's lock; `entry` is the result
  // of ctx.find(key).
  Entry* store(Context& ctx, const KeyRef& key, Entry* entry);

 private:
  // A text of at least this size is copied before locking, because copying such a text takes longer
  // than other clients should wait.
  static constexpr size_t kBigTextBytes = size_t{64} * 1024;

  bool copy(const Context& ctx);
  bool give_to(Entry& entry);
  Entry* replace(Context& ctx, const KeyRef& key, const Entry& old);

  std::string_view text_;
  core::keyspace::ByteBuffer bytes_;  // copied or moved bytes of a big text, otherwise empty
};

}  // namespace server
