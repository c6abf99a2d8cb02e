// SPDX-License-Identifier: MIT
#include "server/commands/families.h"

namespace server {

std::span<const Command> client_commands() {
  return {};
}

}  // namespace server
