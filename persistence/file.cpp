// SPDX-License-Identifier: MIT
#include "persistence/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <system_error>

#include "persistence/descriptor.h"
#include "persistence/file_system.h"

namespace persistence {
namespace {

core::Error failure(std::string_view act, const std::string& path, int error_number) {
  return {fmt::format("ERR can't {} '{}': {}", act, path,
                      std::generic_category().message(error_number))};
}

std::string temporary_name(const std::string& path) {
  // The process id separates processes, the counter the threads of this one.
  static std::atomic<uint64_t> counter{0};
  return fmt::format("{}.tmp-{}-{}", path, ::getpid(), counter.fetch_add(1));
}

core::Result<> fill_temporary(Descriptor& file, const std::string& path, const FileFiller& fill) {
  struct stat existing {};
  // Before the first byte, so that a secret never sits in a file more readable than the old one.
  if (::stat(path.c_str(), &existing) == 0 &&
      ::fchmod(file.number(), existing.st_mode & 07777) != 0) {
    return failure("set the permissions of", path, errno);
  }
  if (auto filled = fill(file.number()); !filled) return filled.error();
  if (::fsync(file.number()) != 0) return failure("sync", path, errno);
  if (file.close() != 0) return failure("close", path, errno);
  return {};
}

core::Result<> sync_directory(const std::string& path) {
  const Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.is_open()) return failure("open directory", path, errno);
  if (::fsync(directory.number()) != 0) return failure("sync directory", path, errno);
  return {};
}

}  // namespace

core::Result<std::string> read_descriptor(int descriptor, const std::string& name,
                                          size_t limit_bytes) {
  std::string bytes;
  char buffer[16 * 1024];
  while (true) {
    const ssize_t got = ::read(descriptor, buffer, sizeof buffer);
    if (got < 0) {
      if (errno == EINTR) continue;
      return failure("read", name, errno);
    }
    if (got == 0) return {boost::system::in_place_value, std::move(bytes)};
    if (static_cast<size_t>(got) > limit_bytes - bytes.size()) {
      return core::Error{
          fmt::format("ERR can't read '{}': it is larger than {} bytes", name, limit_bytes)};
    }
    bytes.append(buffer, static_cast<size_t>(got));
  }
}

core::Result<std::string> read_whole_file(const std::string& path, size_t limit_bytes) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return failure("open", path, errno);
  return read_descriptor(file.number(), path, limit_bytes);
}

core::Result<> write_descriptor(int descriptor, std::string_view bytes, const std::string& name) {
  // One write() moves at most 2 GiB on Linux; asking for less keeps short writes ordinary.
  constexpr size_t kChunkBytes = size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), std::min(bytes.size(), kChunkBytes));
    if (written < 0) {
      if (errno == EINTR) continue;
      return failure("write", name, errno);
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

core::Result<> write_file_atomically(const std::string& path, std::string_view bytes) {
  return replace_file_atomically(
      path, [&](int descriptor) { return write_descriptor(descriptor, bytes, path); });
}

core::Result<> replace_file_atomically(const std::string& path, const FileFiller& fill) {
  const std::string temporary = temporary_name(path);
  Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (!file.is_open()) return failure("create", temporary, errno);
  auto filled = fill_temporary(file, path, fill);
  if (filled && ::rename(temporary.c_str(), path.c_str()) != 0) {
    filled = failure("replace", path, errno);
  }
  if (!filled) {
    ::unlink(temporary.c_str());
    return filled.error();
  }
  // Without this the rename itself may be lost with the power.
  return sync_directory(directory_of(path));
}

}  // namespace persistence
