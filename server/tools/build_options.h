// SPDX-License-Identifier: MIT
//
// BuildOptions: the parsed arguments of `bloomery-server --build-filter`.
//
// Invariants: parsed options are in range, so later errors are only errors of files or a lack of
// memory.
// Thread safety: a value shared by threads needs a lock.
// Source: docs/offline_builder.md.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/bloom/parameters.h"
#include "core/result.h"
#include "server/tools/record_blocks.h"

namespace server {

struct BuildOptions {
  std::string path;
  std::string key = "filter";
  core::bloom::FilterParameters parameters;
  bool counts_items = true;  // true if no capacity was given, so the items are counted first
  int native_version = core::bloom::kNativeVersionMax;
  RecordFormat format = RecordFormat::kLines;
};

// `arguments` excludes the program's name: --build-filter, the path, options and their values.
core::Result<BuildOptions> parse_build_options(std::span<const std::string> arguments);

// Returns the usage line of --build-filter, for help and errors.
std::string_view build_usage();

}  // namespace server
