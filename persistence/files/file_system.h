// SPDX-License-Identifier: MIT
//
// FileSystem: the file operations of snapshots and the append log, behind an interface. So tests
// can fail the N-th operation or cut the power of a simulated disk.
//
// Invariants: an interrupted operation (EINTR) is retried, and a short write is continued. An error
// names the operation, the path and the reason. New files are accessible to their owner only
// (0600). Anything but a regular file is rejected without waiting.
// Thread safety: several threads may use one FileSystem. Only one thread at a time may use a file,
// except that sync() may run in parallel with write() and truncate().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/result.h"
#include "persistence/bytes/byte_stream.h"

namespace persistence {

// AppendFile: a file that is written at its end. After an error of write(), some of the bytes may
// be in the file. The destructor closes the file.
class AppendFile : public ByteSink {
 public:
  // Waits until all earlier writes are on the disk (fdatasync).
  virtual core::Result<> sync() = 0;
  // Truncates the file. The next write goes to the new end.
  virtual core::Result<> truncate(uint64_t size_bytes) = 0;
};

// InputFile: a file that is read from its start to its end. read() reads as many bytes as fit and
// are available.
class InputFile : public ByteSource {
 public:
  // Returns the size of the file when it was opened.
  virtual uint64_t size_bytes() const = 0;
  uint64_t size_bound() const final { return size_bytes(); }
};

enum class OpenMode : uint8_t {
  kCreate,  // a new file is created; an existing file or link of that name is removed
  kAppend,  // an existing file is continued at its end; a missing one is created
};

struct DeviceSpace {
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;
};

class FileSystem {
 public:
  virtual ~FileSystem() = default;
  virtual core::Result<std::unique_ptr<AppendFile>> open_append(const std::string& path,
                                                                OpenMode mode) = 0;
  virtual core::Result<std::unique_ptr<InputFile>> open_input(const std::string& path) = 0;
  // Also returns true if the answer is unknown, for example without permission. Opening the file
  // then reports why.
  virtual bool exists(const std::string& path) = 0;
  virtual core::Result<uint64_t> size_bytes(const std::string& path) = 0;
  // Renames a file. Errors: those of the operation and of check_replaceable().
  virtual core::Result<> rename(const std::string& from, const std::string& to) = 0;
  // Returns an error if `path` exists and is neither a regular file nor a link to one, for example
  // a device or a pipe. Such a path must not be replaced.
  virtual core::Result<> check_replaceable(const std::string& path) {
    (void)path;
    return {};
  }
  // Creates a second name for a file. Errors: `to` exists, or the file system has no links.
  virtual core::Result<> link(const std::string& from, const std::string& to);
  // Removes a file. If it does not exist, that is no error.
  virtual core::Result<> remove(const std::string& path) = 0;
  // Returns the names in the directory, sorted; empty if there is no such directory.
  virtual core::Result<std::vector<std::string>> list(const std::string& directory) = 0;
  // Creates a directory. An existing directory is no error.
  virtual core::Result<> make_directory(const std::string& path) = 0;
  // Waits until all renames, creations and removals in the directory are on the disk.
  virtual core::Result<> sync_directory(const std::string& path) = 0;
  // Returns the size of the directory's device, and the free space that unprivileged processes may
  // use; nullopt if unknown.
  virtual std::optional<DeviceSpace> space(const std::string& directory) {
    (void)directory;
    return std::nullopt;
  }
};

// Returns the file system of the operating system. It lives as long as the process.
FileSystem& posix_file_system();

// Reads the first bytes of a file, at most `bytes_max`.
core::Result<std::string> read_beginning(FileSystem& files, const std::string& path,
                                         size_t bytes_max);

// Creates the file, calls `fill(sink)` to write it, and syncs it. `fill` returns a Result. An
// existing file at `path` is overwritten. Errors: those of `files` and `fill`; the file is then
// removed.
template <class Fill, class Filled = std::invoke_result_t<Fill, ByteSink&>>
Filled write_whole_file(FileSystem& files, const std::string& path, Fill&& fill) {
  const auto write = [&]() -> Filled {
    const auto file = files.open_append(path, OpenMode::kCreate);
    if (!file) return file.error();
    auto filled = fill(**file);
    if (!filled) return filled;
    if (auto synced = (*file)->sync(); !synced) return synced.error();
    return filled;
  };
  auto written = write();
  if (!written) (void)files.remove(path);
  return written;
}

// Renames `temporary` to `path` and syncs the directory. If the rename fails, removes `temporary`.
core::Result<> move_into_place(FileSystem& files, const std::string& temporary,
                               const std::string& path);

// Writes `bytes` to `temporary`, syncs it, renames it to `path` and syncs the directory. After a
// crash or an error, `path` has either its previous content or all of the new bytes. `temporary` is
// in the same directory.
core::Result<> replace_file(FileSystem& files, const std::string& path,
                            const std::string& temporary, std::string_view bytes);

// Gives the file `from` a second name `to`. Uses a link, or a synced copy if the file system has no
// links; the content must not change afterwards. An existing file `to` is removed, and is absent
// after an error.
core::Result<> duplicate_file(FileSystem& files, const std::string& from, const std::string& to);

// Returns the part of a path before its last slash; "." if there is none.
std::string directory_of(const std::string& path);

}  // namespace persistence
