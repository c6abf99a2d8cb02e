// SPDX-License-Identifier: MIT
//
// The log line that reports the start: version, ports, threads, directory, and which data were
// loaded in which time.
//
// Thread safety: a pure function.
#pragma once

#include <string>

namespace core::keyspace {
class Keyspace;
}

namespace server {

class Config;
struct LoadFigures;

// Returns the line. It begins with "Ready to accept connections", which scripts wait for.
std::string ready_line(const Config& config, const LoadFigures& loaded,
                       const core::keyspace::Keyspace& keyspace);

}  // namespace server
