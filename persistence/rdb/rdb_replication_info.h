// SPDX-License-Identifier: MIT
//
// RdbReplicationInfo: the position of a snapshot in the replication stream, from its AUX fields.
//
// Thread safety: one thread at a time may use an object.
// Source: docs/replication.md, "Snapshots".
#pragma once

#include <cstdint>
#include <string>

namespace persistence {

struct RdbReplicationInfo {
  int64_t stream_database = 0;
  std::string id;  // id of the history: 40 hexadecimal digits
  int64_t offset = 0;
  // True if a server other than Bloomery produced the stream. The receiver then re-executes the
  // commands of the stream.
  bool is_foreign = false;
  // True if big filters may contain bits that were set after `offset`, while the snapshot was
  // saved. Then a receiver's data equal the leader's only once the receiver has applied the stream
  // from `offset` to the end of the save.
  bool is_ahead = false;
  // In a cluster, the epoch of the leader that produced this history; 0 if unknown. Only the append
  // log stores the epoch.
  uint64_t epoch = 0;
};

}  // namespace persistence
