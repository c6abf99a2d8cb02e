// SPDX-License-Identifier: MIT
//
// FileSystem: what the snapshots and the append log do with files, behind a seam, so that tests
// fail the N-th operation or cut the power on a disk that is only imagined.
//
// Invariants: an operation that is interrupted (EINTR) is taken up again, a short write goes on
// where it stopped. A failed one says what could not be done, to which path, and why. Files are
// made for their owner alone (0600), and whatever is no regular file is refused without waiting.
// Thread safety: a FileSystem may be used by several threads, a file by one at a time; sync() may
// run beside write().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace persistence {

// A file that grows at its end. Closed when destroyed.
class AppendFile {
 public:
  virtual ~AppendFile() = default;
  // All bytes, or an error: then the file may have grown by some of them.
  virtual core::Result<> write(std::string_view bytes) = 0;
  // Returns when what was written before is on the disk (fdatasync).
  virtual core::Result<> sync() = 0;
  // Cuts the file; the next write goes to the new end.
  virtual core::Result<> truncate(uint64_t size_bytes) = 0;
};

// A file read from its start to its end.
class InputFile {
 public:
  virtual ~InputFile() = default;
  // As many bytes as fit and are there; 0 at the end.
  virtual core::Result<size_t> read(std::span<char> buffer) = 0;
  // When it was opened.
  virtual uint64_t size_bytes() const = 0;
};

enum class OpenMode : uint8_t {
  kCreate,  // a new one; what was there under its name, a link too, is removed
  kAppend,  // at the end of what is there; made when missing
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
  virtual bool exists(const std::string& path) = 0;
  virtual core::Result<uint64_t> size_bytes(const std::string& path) = 0;
  // Error: check_replaceable()'s.
  virtual core::Result<> rename(const std::string& from, const std::string& to) = 0;
  // That a file may take this name: a device or a pipe that has it, or that a link of this name
  // leads to, is not to be replaced by a file.
  virtual core::Result<> check_replaceable(const std::string& path) {
    (void)path;
    return {};
  }
  // Gives a file a second name. Errors: `to` is there already, or the file system has no links.
  virtual core::Result<> link(const std::string& from, const std::string& to);
  // Removing what is not there is no error.
  virtual core::Result<> remove(const std::string& path) = 0;
  // Names without the directory's, sorted; nothing when there is no such directory.
  virtual core::Result<std::vector<std::string>> list(const std::string& directory) = 0;
  // Making one that is there is no error.
  virtual core::Result<> make_directory(const std::string& path) = 0;
  // Returns when renames, creations and removals in it are on the disk.
  virtual core::Result<> sync_directory(const std::string& path) = 0;
  // Of the device that the directory is on, as far as this process may fill it; nothing when that
  // is not known.
  virtual std::optional<DeviceSpace> space(const std::string& directory) {
    (void)directory;
    return std::nullopt;
  }
};

// The operating system's. Lives as long as the process.
FileSystem& posix_file_system();

// Writes `bytes` to a temporary name, syncs, renames it to `path` and syncs the directory: the path
// holds either all of the new bytes or what it held before. `temporary` is in the same directory.
core::Result<> replace_file(FileSystem& files, const std::string& path,
                            const std::string& temporary, std::string_view bytes);

// Gives what `from` holds the name `to` too, which must not change afterwards: by a link, or as a
// copy that is synced where there are no links. A file `to` that was there is removed. After an
// error there is none.
core::Result<> duplicate_file(FileSystem& files, const std::string& from, const std::string& to);

// The part of a path before its last slash; "." when there is none.
std::string directory_of(const std::string& path);

}  // namespace persistence
