// SPDX-License-Identifier: MIT
//
// write_command_base_file() writes the whole keyspace as commands. This is the base of an append
// log if `aof-use-rdb-preamble` is no. It is bigger than a snapshot and loads more slowly, but
// people can read it.
//
//   SELECT 0                            SET key value [PXAT ms], APPEND key value …
//   BF.LOADCHUNK key 1 header, BF.LOADCHUNK key iterator chunk …, PEXPIREAT key ms
//
// Invariants: a command holds at most one piece of a value. Only BF.LOAD holds a whole filter,
// which is written in pieces. So a long value needs no second copy. Bits are copied once, and only
// the copy is checksummed and written (see rdb_writer.h). The header and the ends of batches are as
// aof_format.h specifies.
// Thread safety: reads the keyspace without locks. The caller holds all stripes, at least shared,
// or is a forked child.
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
  // The size of the pieces in which a value is written.
  size_t piece_bytes = size_t{1} << 20;
  RdbProgressCallback on_progress;
  // Called after each key has been written, if set.
  std::function<void()> after_key{};
};

// Writes the commands to a separate file and syncs it. An existing file at `path` is overwritten.
// Errors: those of `files`; the file is then removed.
core::Result<RdbProgress> write_command_base_file(FileSystem& files, const std::string& path,
                                                  const core::keyspace::Keyspace& keyspace,
                                                  const CommandBaseOptions& options);

}  // namespace persistence
