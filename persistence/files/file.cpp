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
#include "persistence/files/posix_io.h"

namespace persistence {
namespace {

// A descriptor that is closed when it goes out of scope.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  // A late write error may show up only here (NFS), so the result counts.
  int close() {
    const int result = ::close(number_);
    number_ = -1;
    return result;
  }

 private:
  int number_;
};

std::string temporary_name(const std::string& path) {
  // The process id separates processes, the counter the threads of this one.
  static std::atomic<uint64_t> counter{0};
  return fmt::format("{}.tmp-{}-{}", path, ::getpid(), counter.fetch_add(1));
}

core::Result<> fill_temporary(Descriptor& file, const std::string& path, std::string_view bytes) {
  struct stat existing {};
  // Others get nothing, whatever they had: the new text may hold a secret that the old one did not.
  if (::stat(path.c_str(), &existing) == 0 &&
      ::fchmod(file.number(), existing.st_mode & kOwnerOnly) != 0) {
    return io_failure("set the permissions of", path, errno);
  }
  if (auto written = write_all(file.number(), bytes, path); !written) return written.error();
  if (uninterrupted([&] { return ::fsync(file.number()); }) != 0) {
    return io_failure("sync", path, errno);
  }
  if (file.close() != 0) return io_failure("close", path, errno);
  return {};
}

}  // namespace

core::Result<std::string> read_descriptor(int descriptor, const std::string& name,
                                          size_t limit_bytes) {
  std::string bytes;
  char buffer[16 * 1024];
  while (true) {
    const ssize_t got = uninterrupted([&] { return ::read(descriptor, buffer, sizeof buffer); });
    if (got < 0) return io_failure("read", name, errno);
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
  if (!file.is_open()) return io_failure("open", path, errno);
  return read_descriptor(file.number(), path, limit_bytes);
}

core::Result<> write_file_atomically(const std::string& path, std::string_view bytes) {
  const std::string temporary = temporary_name(path);
  Descriptor file(
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kOwnerOnly));
  if (!file.is_open()) return io_failure("create", temporary, errno);
  auto filled = fill_temporary(file, path, bytes);
  if (filled) filled = posix_file_system().rename(temporary, path);
  if (!filled) {
    ::unlink(temporary.c_str());
    return filled.error();
  }
  // Without this the rename itself may be lost with the power.
  return posix_file_system().sync_directory(directory_of(path));
}

}  // namespace persistence
