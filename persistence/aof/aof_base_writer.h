// SPDX-License-Identifier: MIT
//
// write_command_base: the whole keyspace as commands, the base of an append log whose
// `aof-use-rdb-preamble` is no. Bigger and slower to load than a snapshot, but it can be read.
//
//   SELECT 0                            SET key value [PXAT ms], APPEND key value …
//   BF.LOADCHUNK key 1 header, BF.LOADCHUNK key iterator chunk …, PEXPIREAT key ms
//
// Invariants: no command holds more than a piece of a value, so a long one needs no second copy of
// itself. Bits are copied once and only the copy is summed and written (see rdb_writer.h). The file
// opens and ends its batches as aof_format.h says.
// Thread safety: as write_rdb.
// Source: docs/formats.md, "Append log"; RedisBloom rewrites its filters in the same way.
#pragma once

#include <cstddef>
#include <string>

#include "core/result.h"
#include "persistence/files/file_system.h"
#include "persistence/rdb/rdb_writer.h"

namespace core::keyspace {
class Keyspace;
}  // namespace core::keyspace

namespace persistence {

struct CommandBaseOptions {
  // A value is written in pieces of this size.
  size_t piece_bytes = size_t{1} << 20;
  RdbProgressCallback on_progress;
  // Called behind each key, unless it is empty.
  std::function<void()> after_key{};
};

// Writes a file of its own and syncs it; what was at `path` is overwritten. Errors: those of
// `files`; the file is then removed.
core::Result<RdbProgress> write_command_base_file(FileSystem& files, const std::string& path,
                                                  const core::keyspace::Keyspace& keyspace,
                                                  const CommandBaseOptions& options);

}  // namespace persistence
