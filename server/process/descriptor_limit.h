// SPDX-License-Identifier: MIT
//
// Lets the process open a descriptor per client; lowers maxclients when the system does not.
//
// Thread safety: before other threads start.
#pragma once

namespace server {

class Config;

void raise_descriptor_limit(Config& config);

}  // namespace server
