// SPDX-License-Identifier: MIT
#include "server/commands/shutdown.h"

#include <limits>

namespace server {

core::Result<> prepare_shutdown(Services& services, bool saves) {
  services.pause.pause(PauseGate::Mode::kWrites, std::numeric_limits<int64_t>::max(),
                       services.clock.wall_ms());
  auto ready = services.durability.prepare_end(saves);
  if (!ready) services.pause.end();
  return ready;
}

}  // namespace server
