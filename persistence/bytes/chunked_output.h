// SPDX-License-Identifier: MIT
//
// ChunkedOutput: a buffer in front of a ByteSink. Each flush also adds the buffered bytes to the
// checksum.
//
// Invariants: the sink receives pieces of the buffer's size; only flush() sends smaller pieces.
// Appended bytes are read once, into the buffer; only the copy is checksummed and written. After
// the first error nothing more is written to the sink.
// Thread safety: one thread at a time may use an object.
// Source: docs/formats.md, "Snapshots".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "persistence/bytes/byte_stream.h"

namespace persistence {

class ChunkedOutput {
 public:
  struct Options {
    size_t buffer_bytes = size_t{256} << 10;
    bool sums = true;
    std::function<void()> on_piece;  // called after each piece has been written
  };
  // `sink` must outlive the object.
  ChunkedOutput(ByteSink& sink, Options options);

  void append(std::string_view bytes);
  // Writes the buffered bytes. Errors: the sink's first error.
  core::Result<> flush();

  bool ok() const { return !error_; }
  core::Result<> status() const { return error_ ? core::Result<>(*error_) : core::Result<>(); }
  // Returns the number of bytes that the sink has accepted.
  uint64_t sent_bytes() const { return sent_bytes_; }
  // Returns the checksum of all bytes appended so far; 0 if Options::sums is false.
  uint64_t sum() const;

 private:
  void send();

  ByteSink& sink_;
  Options options_;
  std::string buffer_;
  uint64_t sent_bytes_ = 0;
  uint64_t sum_ = 0;  // checksum of the bytes that were sent to the sink
  std::optional<core::Error> error_;
};

}  // namespace persistence
