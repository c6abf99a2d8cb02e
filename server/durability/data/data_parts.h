// SPDX-License-Identifier: MIT
//
// DataParts: what everything works on that keeps the data set or copies it elsewhere, by reference.
//
// Thread safety: each member says its own.
#pragma once

#include "core/clock.h"
#include "core/keyspace/keyspace.h"
#include "persistence/files/file_system.h"
#include "persistence/journal.h"
#include "server/config/config.h"
#include "server/process/server_state.h"

namespace server {

struct DataParts {
  Config& config;
  const core::Clock& clock;
  core::keyspace::Keyspace& keyspace;
  persistence::Journal& journal;
  persistence::FileSystem& files;
  ServerState& state;
};

}  // namespace server
