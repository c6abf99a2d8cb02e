// SPDX-License-Identifier: MIT
//
// FileSink and FileSource: open descriptors as byte streams.
//
// Invariants: interrupted and short writes are continued. The descriptor stays the caller's.
// Thread safety: none; one user at a time.
#pragma once

#include <string>

#include "persistence/byte_stream.h"

namespace persistence {

class FileSink final : public ByteSink {
 public:
  // `name` is used in messages only.
  FileSink(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}
  // Errors: `ERR can't write …`.
  core::Result<> write(std::string_view bytes) override;

 private:
  int descriptor_;
  std::string name_;
};

class FileSource final : public ByteSource {
 public:
  // Reads on from where the descriptor stands. `size_bound` is asked of the system when the
  // descriptor is that of a plain file; others need the caller's word or have none.
  FileSource(int descriptor, std::string name);
  FileSource(int descriptor, std::string name, uint64_t size_bound)
      : descriptor_(descriptor), name_(std::move(name)), size_bound_(size_bound) {}
  // Errors: `ERR can't read …`.
  core::Result<size_t> read(std::span<char> out) override;
  uint64_t size_bound() const override { return size_bound_; }

 private:
  int descriptor_;
  std::string name_;
  uint64_t size_bound_;
};

}  // namespace persistence
