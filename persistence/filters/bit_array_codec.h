// SPDX-License-Identifier: MIT
//
// Bit arrays on their way out and in: as plain bytes, or as runs that leave the zeros out.
//
// Invariants: pages that were never touched stay so on the way out, and pages of zeros are not
// touched on the way in. Every byte is copied once before anything is decided by it, so that bits
// may be set meanwhile. Where runs begin and end depends on the bits alone: equal arrays have equal
// forms.
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
  uint64_t gap_bytes_max = 0;  // shorter rows of zeros do not end a run
  uint64_t run_bytes_max = uint64_t{64} << 10;
};
// Gives what is not zero, in order; bits set meanwhile may or may not be among it. `bytes` is a
// copy that lives as long as the call. Rows of zeros are looked at in whole lines of 64 bytes.
using RunVisitor = std::function<void(uint64_t offset, std::string_view bytes)>;
void for_each_run(const core::bloom::BitArray& bits, RunLimits limits, const RunVisitor& visit);

// Bytes [from, to) of the array.
void write_plain(ByteWriter& writer, const core::bloom::BitArray& bits, uint64_t from, uint64_t to);
// Reads so many bytes to bytes()[offset]. REQUIRES: the string and the array have them.
bool read_plain(StringReader& in, core::bloom::BitArray& bits, uint64_t offset, uint64_t size);

// Pairs of a number of zeros and a string of what follows them, until the array is full.
void write_runs(ByteWriter& writer, ModuleWriter& fields, const core::bloom::BitArray& bits);
// False when it is not what write_runs() wrote of an array of this size. REQUIRES: all bits are 0.
bool read_runs(ModuleReader& in, core::bloom::BitArray& bits);

}  // namespace persistence
