// SPDX-License-Identifier: MIT
//
// run_tool: the process as a tool that does one thing and ends: --version, --check-aof and so on.
//
// Thread safety: called once, by main().
// Source: docs/man/bloomery-server.1.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "server/config/command_line.h"
#include "server/process/supervision/health_check.h"

namespace server {

class Config;

// Does what `launch` asks for and returns the exit code; nullopt when that is to serve. Prints to
// standard output. `arguments` without the program's own name.
std::optional<int> run_tool(Launch launch, const Config& config,
                            std::span<const std::string> arguments, HealthQuestion question);

}  // namespace server
