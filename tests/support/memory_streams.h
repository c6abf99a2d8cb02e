// SPDX-License-Identifier: MIT
//
// StringSink and MemorySource: a ByteSink and a ByteSource in memory.
//
// Thread safety: one thread at a time may use an object.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "persistence/bytes/byte_stream.h"

namespace persistence {

class StringSink final : public ByteSink {
 public:
  // Creates a sink that appends to `out`.
  explicit StringSink(std::string& out) : out_(out) {}
  core::Result<> write(std::string_view bytes) override {
    out_.append(bytes);
    return {};
  }

 private:
  std::string& out_;
};

class MemorySource final : public ByteSource {
 public:
  // `bytes` must outlive the source.
  explicit MemorySource(std::string_view bytes) : rest_(bytes), size_(bytes.size()) {}
  core::Result<size_t> read(std::span<char> out) override {
    const size_t count = std::min(out.size(), rest_.size());
    std::copy_n(rest_.begin(), count, out.begin());
    rest_.remove_prefix(count);
    return count;
  }
  uint64_t size_bound() const override { return size_; }

 private:
  std::string_view rest_;
  uint64_t size_;
};

}  // namespace persistence
