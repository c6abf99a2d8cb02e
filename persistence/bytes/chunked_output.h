// SPDX-License-Identifier: MIT
//
// ChunkedOutput: a buffer in front of a ByteSink, with the checksum taken as it empties.
//
// Invariants: the sink gets pieces of the buffer's size, but for the last. What is appended is read
// once, into the buffer; only the copy is summed and written. After the first error the sink is
// not written to again.
// Thread safety: none; one user at a time.
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
    std::function<void()> on_piece;  // called after each piece
  };
  // The sink must outlive it.
  ChunkedOutput(ByteSink& sink, Options options);

  void append(std::string_view bytes);
  // Sends what is left. Errors: the sink's first one.
  core::Result<> flush();

  bool ok() const { return !error_; }
  core::Result<> status() const { return error_ ? core::Result<>(*error_) : core::Result<>(); }
  // Bytes that the sink took.
  uint64_t sent_bytes() const { return sent_bytes_; }
  // Of all that was appended; 0 without `sums`.
  uint64_t sum() const;

 private:
  void send();

  ByteSink& sink_;
  Options options_;
  std::string buffer_;
  uint64_t sent_bytes_ = 0;
  uint64_t sum_ = 0;  // of what was sent
  std::optional<core::Error> error_;
};

}  // namespace persistence
