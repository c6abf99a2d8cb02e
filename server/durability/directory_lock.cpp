// SPDX-License-Identifier: MIT
#include "server/durability/directory_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

namespace server {
namespace {

constexpr const char* kFileName = ".bloomery.lock";

std::string working_directory() {
  std::error_code ignored;
  return std::filesystem::current_path(ignored).string();
}

}  // namespace

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

core::Result<> DirectoryLock::take() {
  descriptor_ = ::open(kFileName, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor_ < 0) {
    return core::Error{fmt::format("Can't lock the data directory '{}': {}", working_directory(),
                                   std::generic_category().message(errno))};
  }
  if (::flock(descriptor_, LOCK_EX | LOCK_NB) == 0) return {};
  return core::Error{fmt::format(
      "Another server uses the data directory '{}': give each its own by the option dir",
      working_directory())};
}

}  // namespace server
