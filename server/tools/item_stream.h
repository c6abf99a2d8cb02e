// SPDX-License-Identifier: MIT
//
// ItemStream: a source of the bytes of items, such as standard input. Some sources can be read
// twice.
//
// Invariants: after rewind() the same bytes are read again.
// Thread safety: one thread at a time may use an object.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "core/result.h"
#include "persistence/bytes/byte_stream.h"

namespace server {

class ItemStream : public persistence::ByteSource {
 public:
  virtual bool can_rewind() const = 0;
  // Returns to the beginning. REQUIRES: can_rewind().
  virtual core::Result<> rewind() = 0;
};

// DescriptorStream reads an open descriptor from its current position, and leaves it open. Regular
// files can be rewound.
class DescriptorStream final : public ItemStream {
 public:
  // `name` is used in error messages only.
  DescriptorStream(int descriptor, std::string name);
  core::Result<size_t> read(std::span<char> out) override;
  uint64_t size_bound() const override { return size_bound_; }
  bool can_rewind() const override { return start_ >= 0; }
  core::Result<> rewind() override;

 private:
  const int descriptor_;
  const std::string name_;
  off_t start_ = -1;
  uint64_t size_bound_ = kUnknownSize;
};

}  // namespace server
