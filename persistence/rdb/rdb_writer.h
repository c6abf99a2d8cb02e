// SPDX-License-Identifier: MIT
//
// write_rdb: writes the whole keyspace as a snapshot that Redis 7 and Valkey can load.
//
// Invariants: bytes are written in pieces of at most `buffer_bytes`. Every byte of a value is
// copied to the buffer once, and only the copy is checksummed and written. So bit arrays may gain
// bits during the write. This happens to arrays that a forked child process shares with its parent.
// Expired keys are written, too. The server that loads the snapshot decides whether to drop them.
// Thread safety: reads the keyspace without locks. The caller holds the locks of all stripes, at
// least shared, or is a forked child process.
// Source: docs/formats.md, "Snapshots".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "persistence/rdb/rdb_replication_info.h"

namespace core::keyspace {
class Keyspace;
}  // namespace core::keyspace

namespace persistence {

class ByteSink;
class FileSystem;

// The progress of writing or reading a snapshot.
struct RdbProgress {
  uint64_t bytes = 0;
  uint64_t keys = 0;
};
using RdbProgressCallback = std::function<void(const RdbProgress&)>;

// The access statistics that are written with a key. As in Redis, the eviction policy determines
// whether the idle time, the frequency or neither is written.
enum class WrittenUse : uint8_t { kNone, kIdleTime, kFrequency };

struct RdbWriteOptions {
  bool compresses = true;  // value of the option `rdbcompression`
  bool has_sum = true;     // value of the option `rdbchecksum`; if false, the checksum is 0

  // The next four members are written to AUX fields.
  std::string server_version = "7.4.0";  // version of Redis that this server reports
  int64_t created_at_s = 0;
  uint64_t used_memory_bytes = 0;
  bool is_aof_base = false;
  WrittenUse use = WrittenUse::kNone;
  uint32_t access_clock_s = 0;     // current time by the clock that records the use of keys
  uint32_t use_decay_minutes = 1;  // value of the option `lfu-decay-time`
  bool has_keys = true;            // if false, only the AUX fields are written
  std::optional<RdbReplicationInfo> replication;
  // True for a file that another server will load: it has a version that Redis 5 also reads, and no
  // fields of Bloomery.
  bool is_for_others = false;
  size_t buffer_bytes = size_t{256} << 10;
  // Called after each piece has been written. The argument has the number of bytes that the sink
  // has received so far, and the number of keys.
  RdbProgressCallback on_progress;
  // Called after each key has been written, if set.
  std::function<void()> after_key;
};

struct RdbPlace {
  std::string path;
  std::string temporary;
};

// Writes the snapshot. Returns the numbers of bytes and keys written. Errors: those of the sink,
// and a lack of memory. After the first error no more bytes are written.
core::Result<RdbProgress> write_rdb(ByteSink& sink, const core::keyspace::Keyspace& keyspace,
                                    const RdbWriteOptions& options);

// Writes the snapshot to a separate file and syncs it. An existing file at `path` is overwritten.
// The append log uses this function for its base file, which the manifest activates later. Errors:
// those of `files` and of write_rdb(). After an error the file is removed.
core::Result<RdbProgress> write_rdb_file(FileSystem& files, const std::string& path,
                                         const core::keyspace::Keyspace& keyspace,
                                         const RdbWriteOptions& options);

// Returns the name of the temporary file into which the process writes its own snapshot.
std::string temporary_snapshot_name(int64_t process_id);
// Returns the name of the temporary file for the snapshot that the process receives from a leader.
std::string received_snapshot_name(int64_t process_id);
// Returns whether one of the two functions above made the name, in any process.
bool is_temporary_snapshot_name(std::string_view name);
// Removes temporary snapshots that a crash has left in the directory, except `kept`. Returns the
// paths of the removed files.
core::Result<std::vector<std::string>> remove_temporary_snapshots(FileSystem& files,
                                                                  const std::string& directory,
                                                                  const std::string& kept);

// Replaces the snapshot at `path`. After any failure or power cut the old or the new snapshot
// exists completely. `temporary` must be in the same directory. Errors: those of write_rdb_file(),
// of the rename, and of the sync of the directory.
core::Result<RdbProgress> save_rdb(FileSystem& files, const RdbPlace& place,
                                   const core::keyspace::Keyspace& keyspace,
                                   const RdbWriteOptions& options);

}  // namespace persistence
