// SPDX-License-Identifier: MIT
//
// RdbReplicationInfo: where in the replication stream a snapshot stands, as its AUX fields say.
//
// Thread safety: a value.
// Source: docs/replication.md, "Snapshots".
#pragma once

#include <cstdint>
#include <string>

namespace persistence {

struct RdbReplicationInfo {
  int64_t stream_database = 0;
  std::string id;  // 40 hexadecimal digits
  int64_t offset = 0;
  // Another kind of server has made the stream: its commands are judged again by who follows.
  bool is_foreign = false;
  // Big filters may have bits that were set behind the offset: as a leader's start they are no
  // copy of what a replica has at that offset, until the stream behind it has been applied.
  bool is_ahead = false;
};

}  // namespace persistence
