// SPDX-License-Identifier: MIT
#include "persistence/files/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "persistence/files/file_system.h"
#include "persistence/files/open_file.h"
#include "persistence/files/posix_io.h"

namespace persistence {
namespace {

constexpr std::string_view kTemporaryMark = ".tmp-";

std::string temporary_name(const std::string& path) {
  // The process id and the counter make the name unique: the process id among processes, the
  // counter among threads of this process.
  static std::atomic<uint64_t> counter{0};
  return fmt::format("{}{}{}-{}", path, kTemporaryMark, ::getpid(), counter.fetch_add(1));
}

// Returns whether temporary_name() returned this name for the file `target`, in any process.
bool is_temporary_of(std::string_view target, std::string_view name) {
  const auto is_count = [](std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (!name.starts_with(target)) return false;
  name.remove_prefix(target.size());
  if (!name.starts_with(kTemporaryMark)) return false;
  name.remove_prefix(kTemporaryMark.size());
  const size_t dash = name.find('-');
  return dash != std::string_view::npos && is_count(name.substr(0, dash)) &&
         is_count(name.substr(dash + 1));
}

// Removes the temporary files of processes that were killed. A process that still writes its file
// holds a lock on the file.
void remove_abandoned(const std::string& path) {
  const std::string directory = directory_of(path);
  const auto names = posix_file_system().list(directory);
  if (!names) return;
  const std::string_view target = std::string_view(path).substr(path.rfind('/') + 1);
  for (const std::string& name : *names) {
    if (!is_temporary_of(target, name)) continue;
    const std::string abandoned = fmt::format("{}/{}", directory, name);
    const core::Descriptor file(
        ::open(abandoned.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file.is_open() || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) continue;
    (void)posix_file_system().remove(abandoned);
  }
}

// Locks a new file. Returns whether the file still exists and no other process has locked it. On a
// file system without locks, no process removes the file.
bool claim(const core::Descriptor& file) {
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return errno != EWOULDBLOCK;
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 && status.st_nlink > 0;
}

// Creates and locks a temporary file for `path`, and stores its path in `temporary`. The returned
// descriptor is closed after an error, which errno then states.
core::Descriptor create_temporary(const std::string& path, std::string& temporary) {
  // A killed process leaves its file. In a container, the next process has the same id, and so the
  // same first names.
  constexpr int kNamesMax = 100;
  for (int i = 0; i < kNamesMax; ++i) {
    temporary = temporary_name(path);
    core::Descriptor file(::open(temporary.c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOwnerOnly));
    if (file.is_open() && claim(file)) return file;
    if (!file.is_open() && errno != EEXIST) return file;
  }
  errno = EEXIST;
  return core::Descriptor();
}

core::Result<> fill_temporary(const core::Descriptor& file, const std::string& path,
                              std::string_view bytes) {
  struct stat existing {};
  // Removes the permissions of group and others: the new text may contain a secret that the old
  // text did not.
  if (::stat(path.c_str(), &existing) == 0 &&
      ::fchmod(file.get(), existing.st_mode & kOwnerOnly) != 0) {
    return io_failure("set the permissions of", path, errno);
  }
  if (auto written = write_all(file.get(), bytes, path); !written) return written;
  return call_result(uninterrupted([&] { return ::fsync(file.get()); }), "sync", path);
}

}  // namespace

core::Result<std::string> read_descriptor(int descriptor, const std::string& name,
                                          size_t limit_bytes) {
  std::string bytes;
  char buffer[16 * 1024];
  while (true) {
    const ssize_t got = uninterrupted([&] { return ::read(descriptor, buffer, sizeof buffer); });
    if (got < 0) return stream_failure("read", name, errno);
    if (got == 0) return {boost::system::in_place_value, std::move(bytes)};
    if (static_cast<size_t>(got) > limit_bytes - bytes.size()) {
      return core::Error{
          fmt::format("ERR can't read '{}': it is larger than {} bytes", name, limit_bytes)};
    }
    bytes.append(buffer, static_cast<size_t>(got));
  }
}

core::Result<std::string> read_whole_file(const NamedFile& file, size_t limit_bytes,
                                          FileKinds kinds) {
  const auto opened = open_file(file, O_RDONLY, kinds);
  if (!opened) return opened.error();
  return read_descriptor(opened->get(), printable_path(file.path), limit_bytes);
}

core::Result<> write_file_atomically(const std::string& path, std::string_view bytes) {
  remove_abandoned(path);
  std::string temporary;
  // The descriptor stays open until the rename, because it holds the lock on the file.
  const core::Descriptor file = create_temporary(path, temporary);
  if (!file.is_open()) return io_failure("create", temporary, errno);
  if (auto filled = fill_temporary(file, path, bytes); !filled) {
    ::unlink(temporary.c_str());
    return filled;
  }
  return move_into_place(posix_file_system(), temporary, path);
}

}  // namespace persistence
