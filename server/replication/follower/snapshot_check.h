// SPDX-License-Identifier: MIT
//
// check_snapshot: reads a snapshot that a leader has sent, before the data that it would replace is
// given up.
//
// A small one is read as it would be loaded. Of a big one, and of one with a value that takes much
// memory, values are passed over, so that no second copy of the data is in memory; its checksum
// then says that they are what the leader wrote.
// Thread safety: pure functions.
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
  // The stream behind it holds effects of a server of ours, not requests that are judged again.
  bool has_own_stream = false;
  // Which database the stream goes on with.
  int64_t stream_database = 0;
};

struct SnapshotCheck {
  // Values that this server has no type for are passed over, else refused.
  bool skips_foreign_types = false;
  bool checks_sum = true;
  uint64_t database_count = 16;
  // A file bigger than this, or with a value that is: values are passed over. A filter may take
  // many times the bytes of its file.
  uint64_t loaded_bytes_max = uint64_t{16} << 20;
  std::function<void()> on_piece = [] {};
};

core::Result<SnapshotFacts> check_snapshot(persistence::FileSystem& files, const std::string& path,
                                           const SnapshotCheck& check);

}  // namespace server
