// SPDX-License-Identifier: MIT
//
// ReplicaSnapshot: a snapshot that a child process is writing for replicas.
//
// Thread safety: one thread at a time may use an object. Leader's mutex guards it.
#pragma once

#include <optional>
#include <string>

#include "core/result.h"
#include "server/replication/leader/replicas.h"

namespace server {

struct ReplicaSnapshot {
  ReplicaBatch batch;
  std::string path;  // path of the snapshot's file; empty if the child process writes to sockets
  std::optional<core::Result<>> result;  // result of the child process; nullopt until it has ended
};

}  // namespace server
