// SPDX-License-Identifier: MIT
#include "server/commands/families.h"

namespace server {

std::span<const Command> server_commands() {
  return {};
}

}  // namespace server
