// SPDX-License-Identifier: MIT
//
// BuildOptions: what `bloomery-server --build-filter` is asked to make.
//
// Invariants: parsed options are in range; only memory and files can still refuse them.
// Thread safety: values.
// Source: docs/offline_builder.md.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/bloom/parameters.h"
#include "core/result.h"
#include "persistence/bulk/record_blocks.h"

namespace server {

struct BuildOptions {
  std::string path;
  std::string key = "filter";
  core::bloom::FilterParameters parameters;
  bool counts_items = true;  // no capacity was given
  persistence::RecordFormat format = persistence::RecordFormat::kLines;
};

// `arguments` without the program's own name: --build-filter, the path, options and their values.
core::Result<BuildOptions> parse_build_options(std::span<const std::string> arguments);

// How the mode is called, for help and errors.
std::string_view build_usage();

}  // namespace server
