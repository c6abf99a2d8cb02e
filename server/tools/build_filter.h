// SPDX-License-Identifier: MIT
//
// build_filter: runs `bloomery-server --build-filter`, from its arguments to its exit code.
//
// Invariants: no temporary file remains, even if SIGINT or SIGTERM ends the process.
// Thread safety: called once, by main().
// Source: docs/offline_builder.md.
#pragma once

#include <span>
#include <string>

#include "core/result.h"

namespace server {

// Reads the items from standard input. Prints the result on standard output, and progress on
// standard error. `arguments` excludes the program's name. Returns the exit code. Errors: the
// reason why no file was written.
core::Result<int> build_filter(std::span<const std::string> arguments);

}  // namespace server
