// SPDX-License-Identifier: MIT
//
// DurabilityParts: dependencies of Durability: the data, the machine's resources for saving, and
// the listeners.
//
// Thread safety: the type of each member states its thread safety.
#pragma once

#include <chrono>

#include "server/durability/data/data_parts.h"
#include "server/durability/saves/save_child.h"

namespace server {

class CommandDrain;
class LogListener;

struct DurabilityParts : DataParts {
  SaveMachine machine{};
  // Waits for running commands; null if no command runs concurrently.
  CommandDrain* commands = nullptr;
  // The object that is notified of the append log's progress; null if no reply waits for the log.
  LogListener* log_listener = nullptr;
  // Limit on how long startup waits for the directory's lock, which the child process of a killed
  // server may hold.
  std::chrono::milliseconds lock_patience{5000};
};

}  // namespace server
