// SPDX-License-Identifier: MIT
//
// Looks at the end of an append log file that no checksum line has covered, to tell a tail that a
// crash tore from a file that was damaged in its middle.
//
// Invariants: reads the file in chunks of a fixed size.
// Thread safety: pure functions.
// Source: docs/formats.md, "Append log".
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/result.h"
#include "persistence/files/file_system.h"

namespace persistence {

struct AofTail {
  // Where the tail begins: the end of the last checksum line that was verified.
  uint64_t begin = 0;
  uint64_t end = 0;
  // First place in it where something looks like a checksum line.
  std::optional<uint64_t> checksum_line;
  // The zero bytes around the wrong byte that was asked about; equal when it is not zero.
  uint64_t zeros_begin = 0;
  uint64_t zeros_end = 0;

  // The zeros are a block that was not written before the power went.
  bool has_hole() const;
  bool zeros_reach_end() const { return zeros_begin < zeros_end && zeros_end == end; }
  bool has_checksum_line_before_zeros() const {
    return checksum_line && *checksum_line < zeros_begin;
  }
};

// `wrong_offset`: a byte that could not be understood, if there is one.
core::Result<AofTail> look_at_tail(FileSystem& files, const std::string& path, uint64_t begin,
                                   std::optional<uint64_t> wrong_offset);

}  // namespace persistence
