// SPDX-License-Identifier: MIT
//
// DurabilityParts: what Durability is made of: the data, the machine that saves them, and whom it
// tells.
//
// Thread safety: each member says its own.
#pragma once

#include <chrono>

#include "server/durability/data/data_parts.h"
#include "server/durability/saves/save_child.h"

namespace server {

class CommandDrain;
class LogListener;

struct DurabilityParts : DataParts {
  SaveMachine machine{};
  // Without it no command runs beside this.
  CommandDrain* commands = nullptr;
  // Null when no reply waits for the append log.
  LogListener* log_listener = nullptr;
  // How long a start waits for the directory's lock, which a killed server's child may hold.
  std::chrono::milliseconds lock_patience{5000};
};

}  // namespace server
