// SPDX-License-Identifier: MIT
#include "persistence/files/file.h"

#include <fcntl.h>
#include <fmt/format.h>
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

std::string temporary_name(const std::string& path) {
  // The process id and the counter make the name unique: the process id among processes, the
  // counter among threads of this process.
  static std::atomic<uint64_t> counter{0};
  return fmt::format("{}.tmp-{}-{}", path, ::getpid(), counter.fetch_add(1));
}

core::Result<> fill_temporary(core::Descriptor& file, const std::string& path,
                              std::string_view bytes) {
  struct stat existing {};
  // Removes the permissions of group and others: the new text may contain a secret that the old
  // text did not.
  if (::stat(path.c_str(), &existing) == 0 &&
      ::fchmod(file.get(), existing.st_mode & kOwnerOnly) != 0) {
    return io_failure("set the permissions of", path, errno);
  }
  if (auto written = write_all(file.get(), bytes, path); !written) return written;
  auto synced = call_result(uninterrupted([&] { return ::fsync(file.get()); }), "sync", path);
  return synced ? call_result(file.close(), "close", path) : synced;
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
  // A killed process leaves its file. In a container, the next process has the same id, and so the
  // same first names.
  constexpr int kNamesMax = 100;
  std::string temporary;
  core::Descriptor file;
  for (int i = 0; i < kNamesMax && !file.is_open(); ++i) {
    temporary = temporary_name(path);
    file = core::Descriptor(::open(
        temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOwnerOnly));
    if (!file.is_open() && errno != EEXIST) break;
  }
  if (!file.is_open()) return io_failure("create", temporary, errno);
  if (auto filled = fill_temporary(file, path, bytes); !filled) {
    ::unlink(temporary.c_str());
    return filled;
  }
  return move_into_place(posix_file_system(), temporary, path);
}

}  // namespace persistence
