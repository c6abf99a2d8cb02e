// SPDX-License-Identifier: MIT
//
// write_rdb: the whole keyspace as a snapshot that Redis 7 and Valkey can load.
//
// Invariants: the bytes leave in pieces of at most `buffer_bytes`. Every byte of a value is copied
// to the buffer once, and only the copy is summed and written, so that bit arrays may gain bits
// meanwhile, as those that a forked child shares with its parent do. Keys that have expired are
// written: who loads the file decides.
// Thread safety: reads the keyspace without locks; the caller holds all stripes, at least shared,
// or is a forked child.
// Source: docs/formats.md, "Snapshots".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "persistence/rdb/rdb_replication_info.h"

namespace core::keyspace {
class Keyspace;
}  // namespace core::keyspace

namespace persistence {

class ByteSink;
class FileSystem;

// How far a snapshot has been written or read.
struct RdbProgress {
  uint64_t bytes = 0;
  uint64_t keys = 0;
};
using RdbProgressCallback = std::function<void(const RdbProgress&)>;

// What of a key's uses is written with it: what the policy of eviction goes by, as Redis does.
enum class WrittenUse : uint8_t { kNone, kIdleTime, kFrequency };

struct RdbWriteOptions {
  bool compresses = true;  // `rdbcompression`
  bool has_sum = true;     // `rdbchecksum`; without it the file ends in zeros
  // AUX fields.
  std::string server_version = "7.4.0";  // of Redis, as clients are told
  int64_t created_at_s = 0;
  uint64_t used_memory_bytes = 0;
  bool is_aof_base = false;
  WrittenUse use = WrittenUse::kNone;
  uint32_t access_clock_s = 0;     // now, on the clock of the keys' uses
  uint32_t use_decay_minutes = 1;  // `lfu-decay-time`
  bool has_keys = true;            // without them only the AUX fields are written
  std::optional<RdbReplicationInfo> replication;
  std::vector<std::pair<std::string, std::string>> more_aux;
  // For other servers alone: of the version that Redis 5 reads too, and without a field of ours.
  bool is_for_others = false;
  size_t buffer_bytes = size_t{256} << 10;
  // Called after each piece; the bytes count those that reached the sink.
  RdbProgressCallback on_progress;
  // Called behind each key, unless it is empty.
  std::function<void()> after_key;
};

struct RdbPlace {
  std::string path;
  std::string temporary;
};

// Returns what was written in all. Errors: those of the sink, which is not written to again.
core::Result<RdbProgress> write_rdb(ByteSink& sink, const core::keyspace::Keyspace& keyspace,
                                    const RdbWriteOptions& options);

// Writes a file of its own and syncs it; what was at `path` is overwritten. For a base of the
// append log, which its manifest puts in place. Errors: those of `files`; the file is then removed.
core::Result<RdbProgress> write_rdb_file(FileSystem& files, const std::string& path,
                                         const core::keyspace::Keyspace& keyspace,
                                         const RdbWriteOptions& options);

// A snapshot that a process is writing.
std::string temporary_snapshot_name(int64_t process_id);
// One that a process is receiving.
std::string received_snapshot_name(int64_t process_id);
// Removes those that a crash has left in the directory, but for the file `kept`; returns which.
core::Result<std::vector<std::string>> remove_temporary_snapshots(FileSystem& files,
                                                                  const std::string& directory,
                                                                  const std::string& kept);

// Puts a snapshot in the place of the one at `path`: after any failure or power cut one of both is
// there, whole. `temporary` is in the same directory. Errors: as above.
core::Result<RdbProgress> save_rdb(FileSystem& files, const RdbPlace& place,
                                   const core::keyspace::Keyspace& keyspace,
                                   const RdbWriteOptions& options);

}  // namespace persistence
