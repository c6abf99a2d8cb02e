// SPDX-License-Identifier: MIT
//
// BuildInfo: what this program was built from, for --version and INFO.
//
// Thread safety: constants.
// Source: server/process/version/build_info.cmake writes the values at each build.
#pragma once

#include <string>
#include <string_view>

namespace server {

struct BuildInfo {
  std::string_view commit;      // 40 hexadecimal digits; empty: built without a repository
  bool is_modified = false;     // the sources differ from the commit
  std::string_view build_type;  // of CMake
};

const BuildInfo& build_info();

// The commit's first 8 digits; zeros without a commit, as Redis has it.
std::string_view short_commit(const BuildInfo& build);

// One line of `name=value`, for people and for tools that read "v=" as the version of a Redis.
std::string version_text(std::string_view redis_version, const BuildInfo& build);

// One JSON object with the same facts.
std::string version_json(std::string_view redis_version, const BuildInfo& build);

}  // namespace server
