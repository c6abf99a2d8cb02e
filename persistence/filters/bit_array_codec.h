// SPDX-License-Identifier: MIT
//
// Writes and reads bit arrays, either as plain bytes or as runs without the zeros between them.
//
// Invariants: writing does not touch untouched pages, and reading does not touch pages of zeros.
// Each byte is copied once before any decision depends on it, so bits may be set concurrently. The
// boundaries of runs depend on the bits alone, so equal arrays have equal forms.
// Thread safety: pure functions; the arrays need their key's lock.
// Source: docs/formats.md, "Filters".
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/bloom/arrays/bit_array.h"
#include "persistence/bytes/module_value.h"

namespace persistence {

struct RunLimits {
  uint64_t gap_bytes_max = 0;  // a run includes sequences of zeros that are not longer than this
  uint64_t run_bytes_max = uint64_t{64} << 10;
};
// Passes the non-zero bytes to `visit`, in order. Bits that are set concurrently may be missing.
// `bytes` is a copy that is valid during the call. Zeros are detected in whole lines of 64 bytes.
using RunVisitor = std::function<void(uint64_t offset, std::string_view bytes)>;
void for_each_run(const core::bloom::BitArray& bits, RunLimits limits, const RunVisitor& visit);

// Writes bytes [from, to) of the array.
void write_plain(ByteWriter& writer, const core::bloom::BitArray& bits, uint64_t from, uint64_t to);
// Reads `size` bytes to bytes()[offset]. REQUIRES: the rest of the string and the rest of the array
// have at least that size.
bool read_plain(StringReader& in, core::bloom::BitArray& bits, uint64_t offset, uint64_t size);

// Writes pairs of a number of zeros and a string of the bytes after them, until the array is
// complete.
void write_runs(ByteWriter& writer, ModuleWriter& fields, const core::bloom::BitArray& bits);
// Reads runs. Returns false if the input is not what write_runs() writes for an array of this size.
// REQUIRES: all bits of the array are 0.
bool read_runs(ModuleReader& in, core::bloom::BitArray& bits);

}  // namespace persistence
