// SPDX-License-Identifier: MIT
//
// BuildInfo: the commit and the build type of this program, for --version and INFO.
//
// Thread safety: any thread may call the functions, because the values are constants.
// Source: server/base/process/build_info.cmake writes the values at each build.
#pragma once

#include <string>
#include <string_view>

namespace server {

struct BuildInfo {
  // 40 hexadecimal digits of the commit; empty if the program was built without a repository.
  std::string_view commit;
  bool is_modified = false;     // true if the sources differed from the commit at build time
  std::string_view build_type;  // value of CMAKE_BUILD_TYPE
};

const BuildInfo& build_info();

// Returns the commit's first 8 digits. Without a commit they are zeros, as in Redis.
std::string_view short_commit(const BuildInfo& build);

// Returns one line of `name=value`, for humans and for tools that read "v=" as the version of a
// Redis server.
std::string version_text(std::string_view redis_version, const BuildInfo& build);

// Returns the versions of Bloomery and Redis, the full commit and the build type as a JSON object.
std::string version_json(std::string_view redis_version, const BuildInfo& build);

}  // namespace server
