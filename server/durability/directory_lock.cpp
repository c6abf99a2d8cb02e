// SPDX-License-Identifier: MIT
#include "server/durability/directory_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace server {
namespace {

constexpr const char* kFileName = ".bloomery.lock";

core::Result<int> lock_in(const std::string& directory) {
  std::error_code ignored;
  const std::string shown = std::filesystem::canonical(directory, ignored);
  const std::string path = fmt::format("{}/{}", directory, kFileName);
  constexpr int kFlags = O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
  const int descriptor = ::open(path.c_str(), kFlags, 0600);
  if (descriptor < 0) {
    return core::Error{fmt::format("Can't lock the data directory '{}': {}", shown,
                                   std::generic_category().message(errno))};
  }
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return descriptor;
  ::close(descriptor);
  return core::Error{fmt::format(
      "Another server uses the data directory '{}': give each its own by the option dir", shown)};
}

}  // namespace

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

core::Result<> DirectoryLock::take() {
  auto descriptor = lock_in(".");
  if (!descriptor) return descriptor.error();
  descriptor_ = *descriptor;
  return {};
}

core::Result<> DirectoryLock::move_to(const std::string& directory) {
  std::error_code error;
  if (std::filesystem::equivalent(directory, ".", error)) return {};
  auto descriptor = lock_in(directory);
  if (!descriptor) return descriptor.error();
  if (::chdir(directory.c_str()) != 0) {
    const int error_number = errno;
    ::close(*descriptor);
    return core::Error{"Changing directory: " + std::generic_category().message(error_number)};
  }
  ::close(std::exchange(descriptor_, *descriptor));
  return {};
}

}  // namespace server
