// SPDX-License-Identifier: MIT
//
// export_snapshot: runs `bloomery-server --export-rdb`, from its arguments to its exit code.
//
// Invariants: no temporary file remains, even if SIGINT or SIGTERM ends the process.
// Thread safety: called once, by main().
// Source: docs/moving_out.md.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/result.h"
#include "persistence/rdb/rdb_export.h"

namespace server {

// The exit code if the file is complete, but some keys of the source were skipped.
inline constexpr int kExitSomethingLeftOut = 2;

inline constexpr std::string_view kExportToItsSource =
    "--export-rdb does not write over the file that it reads";

// Parses --export-rdb, source, output and options. Members of the result that no argument sets keep
// their defaults.
core::Result<persistence::ExportRequest> parse_export_options(
    std::span<const std::string> arguments);

// Returns a summary of the export in a few lines, for the user.
std::string describe_export(const persistence::ExportRequest& request,
                            const persistence::ExportFigures& figures);

// Runs the export. Prints the numbers of written and skipped keys on standard output, and progress
// on standard error. `arguments` excludes the program's name. Returns 0 if the file contains all
// keys of the source, and kExitSomethingLeftOut if keys were skipped. Errors: the reason why no
// file was written.
core::Result<int> export_snapshot(std::span<const std::string> arguments);

}  // namespace server
