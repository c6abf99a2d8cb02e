// SPDX-License-Identifier: MIT
//
// export_snapshot: the process as `bloomery-server --export-rdb`, from arguments to exit code.
//
// Invariants: an end by SIGINT or SIGTERM leaves no temporary file either.
// Thread safety: called once, by main().
// Source: docs/moving_out.md.
#pragma once

#include <span>
#include <string>

#include "core/result.h"
#include "persistence/rdb/rdb_export.h"

namespace server {

// The file is written, but something of the source is not in it.
inline constexpr int kExitSomethingLeftOut = 2;

// --export-rdb, source, output, options. Fills in what the arguments say.
core::Result<persistence::ExportRequest> parse_export_options(
    std::span<const std::string> arguments);

// A few lines for people.
std::string describe_export(const persistence::ExportRequest& request,
                            const persistence::ExportFigures& figures);

// Prints the written and skipped keys on standard output, errors and progress on standard error.
// `arguments` without the program's own name. Returns 0 if all of the source is in the file,
// kExitSomethingLeftOut if not, and 1 if nothing was written.
int export_snapshot(std::span<const std::string> arguments);

}  // namespace server
