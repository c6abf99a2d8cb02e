// SPDX-License-Identifier: MIT
//
// Examines the last part of an append log file, which no checksum line covers. The result
// distinguishes a tail that a crash tore from damage in the middle of the file.
//
// Invariants: the file is read in chunks of a fixed size, so a large file needs no more memory.
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
  // The start of the tail, which is the end of the last verified checksum line.
  uint64_t begin = 0;
  uint64_t end = 0;
  // The offset of the first bytes in the tail that look like a checksum line.
  std::optional<uint64_t> checksum_line;
  // The run of zero bytes around `wrong_offset`; empty if that byte is not zero.
  uint64_t zeros_begin = 0;
  uint64_t zeros_end = 0;

  // Returns whether a power cut explains the zeros: their block was not written before the power
  // failed.
  bool has_hole() const;
  bool zeros_reach_end() const { return zeros_begin < zeros_end && zeros_end == end; }
  bool has_checksum_line_before_zeros() const {
    return checksum_line && *checksum_line < zeros_begin;
  }
};

// Examines the bytes from `begin` on. `wrong_offset` is the offset of a byte that could not be
// parsed, if any.
core::Result<AofTail> look_at_tail(FileSystem& files, const std::string& path, uint64_t begin,
                                   std::optional<uint64_t> wrong_offset);

}  // namespace persistence
