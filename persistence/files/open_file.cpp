// SPDX-License-Identifier: MIT
#include "persistence/files/open_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>

#include "persistence/files/posix_io.h"

namespace persistence {
namespace {

// Names the type of a file that is not a regular file.
std::string_view type_name(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISCHR(mode)) return "a character device";
  if (S_ISBLK(mode)) return "a block device";
  return "a socket";
}

bool is_accepted(mode_t mode, FileKinds kinds) {
  if (S_ISREG(mode)) return true;
  return kinds != FileKinds::kRegular && (S_ISFIFO(mode) || S_ISCHR(mode));
}

core::Error wrong_type(const NamedFile& file, std::string_view type, FileKinds kinds) {
  const std::string_view wanted =
      kinds == FileKinds::kRegular ? "a regular file" : "a regular file, a device or a pipe";
  const std::string path = printable_path(file.path);
  if (file.option.empty()) {
    return {fmt::format("ERR can't open '{}': it is {}, not {}", path, type, wanted)};
  }
  return {
      fmt::format("ERR can't open '{}': it is {}; {} needs {}", path, type, file.option, wanted)};
}

}  // namespace

core::Result<core::Descriptor> open_file(const NamedFile& file, int flags, FileKinds kinds,
                                         mode_t mode) {
  const int waiting = kinds == FileKinds::kStreamsWithWait ? 0 : O_NONBLOCK;
  core::Descriptor opened(
      uninterrupted([&] { return ::open(file.path.c_str(), flags | waiting | O_CLOEXEC, mode); }));
  if (!opened.is_open()) {
    const int error_number = errno;
    // ENXIO has two causes: no process has the other end of the FIFO open, or the file is a socket.
    if (error_number == ENXIO) return wrong_type(file, "a socket or a FIFO without reader", kinds);
    return io_failure("open", file.path, error_number);
  }
  struct stat status {};
  if (::fstat(opened.get(), &status) != 0) return io_failure("open", file.path, errno);
  if (!is_accepted(status.st_mode, kinds)) {
    return wrong_type(file, type_name(status.st_mode), kinds);
  }
  return opened;
}

}  // namespace persistence
