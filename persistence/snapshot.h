// SPDX-License-Identifier: MIT
//
// Snapshots as files of a FileSystem.
//
// Invariants: save_snapshot leaves at `path` all of the new snapshot, synced, or what was there.
// Thread safety: as write_rdb and read_rdb.
// Source: docs/formats.md, "Snapshots".
#pragma once

#include <string>

#include "persistence/file_system.h"
#include "persistence/rdb_reader.h"
#include "persistence/rdb_writer.h"

namespace persistence {

// Writes to `temporary`, in the same directory, syncs as it goes, and renames it to `path`.
// Errors: the file system's; the temporary file is then removed.
core::Result<RdbProgress> save_snapshot(FileSystem& files, const std::string& path,
                                        const std::string& temporary,
                                        const core::keyspace::Keyspace& keyspace,
                                        const RdbWriteOptions& options);

// Errors: those of read_rdb, with the path before them.
core::Result<RdbReadResult> load_snapshot(FileSystem& files, const std::string& path,
                                          RdbVisitor& visitor, const core::MemoryBudget& budget,
                                          const RdbReadOptions& options);

}  // namespace persistence
