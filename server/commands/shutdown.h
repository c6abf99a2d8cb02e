// SPDX-License-Identifier: MIT
//
// What SHUTDOWN and the signals that end the process have in common.
//
// Thread safety: as Services. To be called without any stripe lock.
#pragma once

#include "core/result.h"
#include "server/commands/services.h"

namespace server {

// Holds writes back, ends a saving child, brings the append log to the disk and saves a snapshot
// if asked. Errors: what could not be saved; the server then serves on.
core::Result<> prepare_shutdown(Services& services, bool saves);

}  // namespace server
