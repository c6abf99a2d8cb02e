// SPDX-License-Identifier: MIT
//
// Fetches the snapshot of a shard's leader. The tool connects like a replica, and disconnects after
// the snapshot.
//
// Invariants: the file is whole and on the disk when fetch_snapshot() succeeds. If the request
// for the snapshot fails, a file of this name is removed.
// Thread safety: any thread may call the function, which blocks and keeps no state.
// Source: docs/replication.md, "The leader".
#pragma once

#include <cstdint>
#include <string>

#include "core/result.h"
#include "server/cluster_tool/node_client.h"
#include "server/cluster_tool/plan.h"

namespace server::cluster {

struct FetchedSnapshot {
  std::string replication_id;
  int64_t offset = 0;  // offset of the stream at which the snapshot was taken
  uint64_t bytes = 0;
  uint64_t keys = 0;
};

// Requests the snapshot and writes it to the file. Errors: the server does not lead its shard in
// `epoch`, the connection fails, or the received file is damaged.
core::Result<FetchedSnapshot> fetch_snapshot(const Address& address, const NodeAccess& access,
                                             uint64_t epoch, const std::string& path);

}  // namespace server::cluster
