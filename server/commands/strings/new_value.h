// SPDX-License-Identifier: MIT
//
// NewValue: a string on its way from a command's arguments into the keyspace.
//
// Big strings are copied before any lock is taken, so that other clients of the stripe do not wait
// for the copy. Small ones are copied straight into their entry. A big argument that was received
// into memory of its own becomes the value without a copy.
//
// Invariants: store() either changes the value or nothing at all.
// Thread safety: a value; it views the argument, which must outlive it.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/keyspace/byte_buffer.h"
#include "server/dispatch/context.h"

namespace server {

class NewValue {
 public:
  explicit NewValue(std::string_view text) : text_(text) {}
  // To be called first, best before a lock is taken. False when memory does not suffice.
  [[nodiscard]] bool prepare(const Context& ctx) {
    return text_.size() < kBigTextBytes || copy(ctx);
  }
  // As prepare(), for a caller that does not read the text once it has unlocked the key.
  [[nodiscard]] bool take_or_prepare(const Context& ctx) {
    return text_.size() < kBigTextBytes || take_argument(ctx, text_, bytes_) || copy(ctx);
  }

  // Makes this the value of `entry`, or of a new entry when `entry` is null, whatever it was
  // before. An expiry stays. Null when memory does not suffice. To be called once.
  // REQUIRES: the key's lock; `entry` is what ctx.find(key) gave.
  Entry* store(Context& ctx, const KeyRef& key, Entry* entry);

 private:
  // From here on, copying takes longer than other clients should wait for.
  static constexpr size_t kBigTextBytes = size_t{64} * 1024;

  bool copy(const Context& ctx);
  bool give_to(Entry& entry);
  Entry* replace(Context& ctx, const KeyRef& key, const Entry& old);

  std::string_view text_;
  core::keyspace::ByteBuffer bytes_;  // of a big text; otherwise empty
};

}  // namespace server
