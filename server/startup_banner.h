// SPDX-License-Identifier: MIT
//
// Writes the log line that reports the start. It contains the version, ports, threads, directory,
// the loaded data and the loading time.
//
// Thread safety: any thread may call the function, which keeps no state.
#pragma once

#include <string>

namespace core::keyspace {
class Keyspace;
}

namespace server {

class Config;
struct LoadFigures;

// Returns the line. It begins with "Ready to accept connections", which scripts wait for.
std::string startup_banner(const Config& config, const LoadFigures& loaded,
                           const core::keyspace::Keyspace& keyspace);

}  // namespace server
