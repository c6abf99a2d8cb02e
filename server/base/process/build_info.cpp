// SPDX-License-Identifier: MIT
#include "server/base/process/build_info.h"

#include <fmt/format.h>

namespace server {
namespace {

constexpr size_t kShortDigits = 8;

#ifdef BLOOMERY_JEMALLOC
constexpr std::string_view kAllocator = "jemalloc";
#else
constexpr std::string_view kAllocator = "libc";
#endif

}  // namespace

std::string_view short_commit(const BuildInfo& build) {
  return build.commit.empty() ? "00000000" : build.commit.substr(0, kShortDigits);
}

std::string version_text(std::string_view redis_version, const BuildInfo& build) {
  return fmt::format("Bloomery server v={} bloomery={} sha={}:{} malloc={} bits={} build={}",
                     redis_version, BLOOMERY_VERSION, short_commit(build),
                     build.is_modified ? 1 : 0, kAllocator, 8 * sizeof(void*), build.build_type);
}

std::string version_json(std::string_view redis_version, const BuildInfo& build) {
  // The values are not escaped for JSON, because versions, digits and build types need no escapes.
  return fmt::format(
      R"({{"version":"{}","commit":"{}","modified":{},"build_type":"{}","redis_version":"{}"}})",
      BLOOMERY_VERSION, build.commit, build.is_modified, build.build_type, redis_version);
}

}  // namespace server
