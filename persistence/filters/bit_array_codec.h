// SPDX-License-Identifier: MIT
//
// Writes and reads bit arrays, either as plain bytes or as runs. A run is a sequence of non-zero
// bytes with short gaps of zeros; the zeros between runs are not stored.
//
// Invariants: an untouched page of an array uses no memory. Writing an array leaves such a page
// untouched, and so does reading an array if the page would contain only zeros. Each byte is copied
// once before any decision depends on it, so bits may be set concurrently. The boundaries of runs
// depend on the bits alone, so equal arrays are stored as equal bytes.
// Thread safety: pure functions; the caller holds the lock of the filter's key.
// Source: docs/formats.md, "Filters".
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "core/bloom/arrays/bit_array.h"
#include "persistence/bytes/module_value.h"

namespace persistence {

struct RunLimits {
  uint64_t gap_bytes_max = 0;  // a sequence of more zero bytes than this ends a run
  uint64_t run_bytes_max = uint64_t{64} << 10;
};
// Passes the runs of the array to `visit`, in order. A run consists of 64-byte lines that have a
// bit set, and of the gaps between them that are not longer than gap_bytes_max. Bits that other
// threads or processes set at the same time may be missing. `bytes` is a copy that is valid until
// `visit` returns.
using RunVisitor = std::function<void(uint64_t offset, std::string_view bytes)>;
void for_each_run(const core::bloom::BitArray& bits, RunLimits limits, const RunVisitor& visit);

// Writes bytes [from, to) of the array.
void write_plain(ByteWriter& writer, const core::bloom::BitArray& bits, uint64_t from, uint64_t to);
// Reads `size` bytes of the string into the array, from byte `offset` on. REQUIRES: the string has
// at least `size` bytes left, and so has the array after `offset`.
bool read_plain(StringReader& in, core::bloom::BitArray& bits, uint64_t offset, uint64_t size);

// Writes the array as pairs. A pair is the length of a sequence of zero bytes, and a string with
// the bytes that follow the sequence.
void write_runs(ByteWriter& writer, ModuleWriter& fields, const core::bloom::BitArray& bits);
// Reads runs. Returns false if the runs and zeros do not exactly fill an array of this size.
// REQUIRES: all bits of the array are 0.
bool read_runs(ModuleReader& in, core::bloom::BitArray& bits);

}  // namespace persistence
