// SPDX-License-Identifier: MIT
//
// Raises the limit on descriptors so that each client can have one. Lowers maxclients if the system
// denies that.
//
// Thread safety: must be called before other threads start.
#pragma once

namespace server {

class Config;

void raise_descriptor_limit(Config& config);

}  // namespace server
