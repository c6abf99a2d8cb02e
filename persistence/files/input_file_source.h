// SPDX-License-Identifier: MIT
//
// InputFileSource: reads a snapshot's byte stream from an InputFile.
//
// Thread safety: one thread at a time may use an object.
#pragma once

#include "persistence/bytes/byte_stream.h"
#include "persistence/files/file_system.h"

namespace persistence {

class InputFileSource final : public ByteSource {
 public:
  // `file` must be at its start and outlive the source.
  explicit InputFileSource(InputFile& file) : file_(file) {}
  core::Result<size_t> read(std::span<char> out) override { return file_.read(out); }
  uint64_t size_bound() const override { return file_.size_bytes(); }

 private:
  InputFile& file_;
};

}  // namespace persistence
