// SPDX-License-Identifier: MIT
//
// check_snapshot: reads a snapshot from a leader before the present data are deleted for it.
//
// All values of a small snapshot are decoded, as when it is loaded. If the snapshot or one of its
// values is big, no values are decoded, so that memory never holds the data twice. The checksum of
// the snapshot, if it has one and `rdbchecksum` is `yes`, then proves that the values are those
// that the leader wrote.
// Thread safety: any thread may call the function, which keeps no state.
// Source: docs/replication.md, "A full sync".
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "core/result.h"

namespace persistence {
class FileSystem;
}

namespace server {

struct SnapshotFacts {
  // True if the stream that follows the snapshot comes from a Bloomery leader. Such a stream
  // contains the effects of commands. Any other stream contains clients' commands, which this
  // server executes again.
  bool has_own_stream = false;
  // The number of the database that the stream after the snapshot uses until it selects another
  // one.
  int64_t stream_database = 0;
};

struct SnapshotCheck {
  // If true, values of unsupported types are skipped; otherwise they are an error.
  bool skips_foreign_types = false;
  bool checks_sum = true;
  uint64_t database_count = 16;
  // Limit in bytes on the size of the file, and on the memory of each decoded value. If the file or
  // a value exceeds the limit, the check reads the file without decoding values. A decoded filter
  // may be many times as big as in the file.
  uint64_t loaded_bytes_max = uint64_t{16} << 20;
  std::function<void()> on_piece = [] {};
};

core::Result<SnapshotFacts> check_snapshot(persistence::FileSystem& files, const std::string& path,
                                           const SnapshotCheck& check);

}  // namespace server
