// SPDX-License-Identifier: MIT
#include "server/durability/directory_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

#include "persistence/files/lock_file.h"
#include "persistence/files/open_file.h"
#include "server/base/log/log.h"

namespace server {
namespace {

std::string shown(const std::string& directory) {
  std::error_code ignored;
  return std::filesystem::canonical(directory, ignored);
}

// The function polls, because flock() has no timeout.
core::Result<bool> try_lock_for(std::chrono::milliseconds patience, int descriptor,
                                const std::string& path) {
  constexpr useconds_t kPauseUs = 5000;
  const auto end = std::chrono::steady_clock::now() + patience;
  for (;;) {
    auto locked = persistence::try_lock(descriptor, path);
    if (!locked || *locked || std::chrono::steady_clock::now() >= end) return locked;
    ::usleep(kPauseUs);
  }
}

core::Error cannot_lock(const std::string& directory, const core::Error& reason) {
  return {fmt::format("Can't lock the data directory '{}': {}", shown(directory),
                      core::without_code(reason.message))};
}

core::Result<core::Descriptor> lock_in(const std::string& directory,
                                       std::chrono::milliseconds patience) {
  const std::string path = fmt::format("{}/{}", directory, persistence::kLockFileName);
  auto file = persistence::open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW);
  if (!file) return cannot_lock(directory, file.error());
  auto locked = persistence::try_lock(file->get(), path);
  if (locked && !*locked && patience.count() > 0) {
    log_notice(
        "The data directory '{}' is in use: waiting up to {} ms, in case a killed server's child "
        "still holds it",
        shown(directory), patience.count());
    locked = try_lock_for(patience, file->get(), path);
  }
  if (!locked) return cannot_lock(directory, locked.error());
  if (*locked) return file;
  return core::Error{fmt::format(
      "Another process uses the data directory '{}': give each server its own by the option dir",
      shown(directory))};
}

}  // namespace

DirectoryLock::~DirectoryLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

core::Result<> DirectoryLock::take(std::chrono::milliseconds patience) {
  auto file = lock_in(".", patience);
  if (!file) return file.error();
  descriptor_ = file->release();
  return {};
}

core::Result<> DirectoryLock::move_to(const std::string& directory) {
  std::error_code error;
  if (std::filesystem::equivalent(directory, ".", error)) return {};
  // If the directory is locked, the function does not retry, because clients of this server wait
  // during the call.
  auto file = lock_in(directory, std::chrono::milliseconds::zero());
  if (!file) return file.error();
  if (::chdir(directory.c_str()) != 0) {
    return core::Error{"Changing directory: " + std::generic_category().message(errno)};
  }
  ::close(descriptor_.exchange(file->release()));
  return {};
}

}  // namespace server
