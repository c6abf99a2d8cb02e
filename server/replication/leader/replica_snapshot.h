// SPDX-License-Identifier: MIT
//
// ReplicaSnapshot: a snapshot that a child is writing for replicas.
//
// Thread safety: none; Leader guards it.
#pragma once

#include <optional>
#include <string>

#include "core/result.h"
#include "server/replication/leader/replicas.h"

namespace server {

struct ReplicaSnapshot {
  ReplicaBatch batch;
  std::string path;                      // empty if the child writes to sockets
  std::optional<core::Result<>> result;  // set once the child has ended
};

}  // namespace server
