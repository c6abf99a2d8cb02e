// SPDX-License-Identifier: MIT
//
// RecordBlocks: reads a stream of items in blocks of whole records. A block is divided into parts
// of whole records, so that several threads can process one block concurrently.
//
// The stream has one of two formats. Either each record is a line, which ends with a line feed or
// with the stream, or a 32-bit little-endian length precedes each record. A record may be empty.
// Nothing but the line feed is stripped from a line.
//
// Invariants: the concatenated blocks equal the stream. The buffer is at
// most as big as a block. If an incomplete record is longer, the buffer is at most about
// twice as big as the part of this record that has arrived.
// Thread safety: one thread at a time may use an object. The free functions are pure.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "persistence/bytes/byte_stream.h"

namespace server {

enum class RecordFormat : uint8_t { kLines, kLength32 };

// The maximum size of a record. It equals the maximum for an argument of a command
// (proto-max-bulk-len).
inline constexpr size_t kRecordBytesMax = size_t{512} << 20;

struct RecordBlock {
  std::string bytes;
  uint64_t record_count = 0;
  // The offsets of the cuts between parts. Part i is [cuts[i], cuts[i + 1]) of the bytes.
  std::vector<size_t> cuts;

  std::string_view part(size_t i) const {
    return std::string_view(bytes).substr(cuts[i], cuts[i + 1] - cuts[i]);
  }
};

struct RecordOptions {
  RecordFormat format = RecordFormat::kLines;
  unsigned part_count = 1;
  // The size of a block, unless a longer record needs more. REQUIRES: block_bytes <=
  // record_bytes_max.
  size_t block_bytes = size_t{8} << 20;
  size_t record_bytes_max = kRecordBytesMax;
};

class RecordBlocks {
 public:
  // `source` must outlive the object.
  RecordBlocks(persistence::ByteSource& source, const RecordOptions& options)
      : source_(source), options_(options) {}

  // Returns the next block; at the end of the stream, a block without records. Errors: those of the
  // source; a record that is too long or cut off, with its offset.
  core::Result<RecordBlock> next();

 private:
  // Returns the number of bytes of whole records in the buffer; 0 if more bytes must be read first.
  core::Result<size_t> whole_bytes(RecordBlock& block);
  core::Result<size_t> whole_lines(RecordBlock& block) const;
  core::Result<size_t> whole_lengths(RecordBlock& block) const;
  core::Result<> fill(size_t size_bytes);
  void cut_lines(RecordBlock& block) const;
  void choose_cuts(RecordBlock& block, const std::vector<size_t>& candidates) const;
  core::Error fault(size_t position, std::string_view what) const;

  persistence::ByteSource& source_;
  const RecordOptions options_;
  std::string buffer_;
  uint64_t offset_ = 0;  // offset in the stream at which the buffer begins
  bool has_ended_ = false;
};

inline uint32_t load_length32(const char* bytes) {
  const auto byte = [bytes](int i) { return uint32_t{static_cast<uint8_t>(bytes[i])}; };
  return byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
}

// Calls visit(item) for each record of `part`, a part of a RecordBlock.
template <class Visitor>
void for_each_record(std::string_view part, RecordFormat format, Visitor&& visit) {
  while (!part.empty()) {
    if (format == RecordFormat::kLines) {
      const size_t size = std::min(part.find('\n'), part.size());
      visit(part.substr(0, size));
      part.remove_prefix(std::min(size + 1, part.size()));
    } else {
      const uint32_t size = load_length32(part.data());
      visit(part.substr(sizeof(uint32_t), size));
      part.remove_prefix(sizeof(uint32_t) + size);
    }
  }
}

}  // namespace server
