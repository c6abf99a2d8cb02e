// SPDX-License-Identifier: MIT
//
// Whole files in and out, for the configuration. Snapshots and the append log have FileSystem.
//
// Invariants: after write_file_atomically the path holds either all of the new bytes or, on any
// failure, what it held before; no temporary file is left behind by a failure.
// Thread safety: free functions without shared state; two writers of one path each write a
// temporary file of their own and the later rename wins.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.h"
#include "persistence/files/open_file.h"

namespace persistence {

// All bytes up to the end. Errors: those of open_file(), `ERR can't read …`, and one when there are
// more than `limit_bytes`. A stream has no size beforehand.
core::Result<std::string> read_whole_file(const NamedFile& file, size_t limit_bytes,
                                          FileKinds kinds = FileKinds::kRegular);

// The same from an open descriptor, which stays open; `name` is used in messages only.
core::Result<std::string> read_descriptor(int descriptor, const std::string& name,
                                          size_t limit_bytes);

// Writes to a temporary file in the same directory, syncs it, renames it over `path` and syncs
// the directory. It is its owner's alone: of an existing file's permissions only those are kept.
core::Result<> write_file_atomically(const std::string& path, std::string_view bytes);

}  // namespace persistence
