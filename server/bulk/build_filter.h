// SPDX-License-Identifier: MIT
//
// build_filter: the process as `bloomery-server --build-filter`, from arguments to exit code.
//
// Invariants: an end by SIGINT or SIGTERM leaves no temporary file either.
// Thread safety: called once, by main().
// Source: docs/offline_builder.md.
#pragma once

#include <span>
#include <string>

namespace server {

// Reads the items from standard input. Prints the result on standard output, errors and progress on
// standard error. `arguments` without the program's own name.
int build_filter(std::span<const std::string> arguments);

}  // namespace server
