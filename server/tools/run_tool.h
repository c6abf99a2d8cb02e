// SPDX-License-Identifier: MIT
//
// run_tool: runs one of the modes that end after one task, such as --version and --check-aof.
//
// Thread safety: called once, by main().
// Source: docs/man/bloomery-server.1.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "server/base/config/command_line.h"
#include "server/tools/health_check.h"

namespace server {

class Config;

// Runs the mode that `launch` selects and returns the exit code. Returns nullopt if the process is
// to serve clients. Prints results to standard output, and errors of tools that write a file to
// standard error. `arguments` excludes the program's name.
std::optional<int> run_tool(Launch launch, const Config& config,
                            std::span<const std::string> arguments, HealthQuestion question);

}  // namespace server
