// SPDX-License-Identifier: MIT
#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "persistence/files/file_system.h"
#include "persistence/files/open_file.h"
#include "persistence/files/posix_io.h"

namespace persistence {
namespace {

class PosixAppendFile final : public AppendFile {
 public:
  PosixAppendFile(Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  core::Result<> write(std::string_view bytes) override {
    return write_all(descriptor_.get(), bytes, path_);
  }

  core::Result<> sync() override {
    if (uninterrupted([&] { return ::fdatasync(descriptor_.get()); }) != 0) {
      return io_failure("sync", path_, errno);
    }
    return {};
  }

  core::Result<> truncate(uint64_t size_bytes) override {
    if (uninterrupted(
            [&] { return ::ftruncate(descriptor_.get(), static_cast<off_t>(size_bytes)); }) != 0) {
      return io_failure("truncate", path_, errno);
    }
    return {};
  }

 private:
  const Descriptor descriptor_;
  const std::string path_;
};

class PosixInputFile final : public InputFile {
 public:
  PosixInputFile(Descriptor descriptor, std::string path, uint64_t size_bytes)
      : descriptor_(std::move(descriptor)), path_(std::move(path)), size_bytes_(size_bytes) {}

  core::Result<size_t> read(std::span<char> buffer) override {
    size_t filled = 0;
    while (filled < buffer.size()) {
      const ssize_t got = uninterrupted([&] {
        return ::read(descriptor_.get(), buffer.data() + filled, buffer.size() - filled);
      });
      if (got < 0) return io_failure("read", path_, errno);
      if (got == 0) break;
      filled += static_cast<size_t>(got);
    }
    return filled;
  }
  uint64_t size_bytes() const override { return size_bytes_; }

 private:
  const Descriptor descriptor_;
  const std::string path_;
  const uint64_t size_bytes_;
};

class PosixFileSystem final : public FileSystem {
 public:
  core::Result<std::unique_ptr<AppendFile>> open_append(const std::string& path,
                                                        OpenMode mode) override {
    if (mode == OpenMode::kCreate) {
      if (auto removed = remove(path); !removed) return removed.error();
    }
    const int exclusive = mode == OpenMode::kCreate ? O_EXCL | O_NOFOLLOW : 0;
    auto opened = open_file(path, O_WRONLY | O_CREAT | O_APPEND | exclusive);
    if (!opened) return opened.error();
    return std::unique_ptr<AppendFile>(std::make_unique<PosixAppendFile>(*std::move(opened), path));
  }

  core::Result<std::unique_ptr<InputFile>> open_input(const std::string& path) override {
    auto opened = open_file(path, O_RDONLY);
    if (!opened) return opened.error();
    struct stat status {};
    if (::fstat(opened->get(), &status) != 0) return io_failure("look at", path, errno);
    return std::unique_ptr<InputFile>(std::make_unique<PosixInputFile>(
        *std::move(opened), path, static_cast<uint64_t>(status.st_size)));
  }

  bool exists(const std::string& path) override { return ::access(path.c_str(), F_OK) == 0; }

  core::Result<uint64_t> size_bytes(const std::string& path) override {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return io_failure("look at", path, errno);
    return static_cast<uint64_t>(status.st_size);
  }

  core::Result<> rename(const std::string& from, const std::string& to) override {
    if (auto replaceable = check_replaceable(to); !replaceable) return replaceable;
    if (::rename(from.c_str(), to.c_str()) != 0) return io_failure("replace", to, errno);
    return {};
  }

  core::Result<> check_replaceable(const std::string& path) override {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return {};
    if (S_ISREG(status.st_mode)) return {};
    if (S_ISDIR(status.st_mode)) return io_failure("replace", path, EISDIR);
    return core::Error{
        fmt::format("ERR can't replace '{}': it is not a regular file", core::printable(path))};
  }

  core::Result<> link(const std::string& from, const std::string& to) override {
    if (::link(from.c_str(), to.c_str()) != 0) return io_failure("create", to, errno);
    return {};
  }

  core::Result<> remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return io_failure("remove", path, errno);
    return {};
  }

  core::Result<std::vector<std::string>> list(const std::string& directory) override {
    std::vector<std::string> names;
    DIR* const stream = ::opendir(directory.c_str());
    if (stream == nullptr) {
      if (errno == ENOENT) return names;
      return io_failure("list", directory, errno);
    }
    errno = 0;
    while (const dirent* entry = ::readdir(stream)) {
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
    const int error_number = errno;
    ::closedir(stream);
    if (error_number != 0) return io_failure("list", directory, error_number);
    std::ranges::sort(names);
    return names;
  }

  core::Result<> make_directory(const std::string& path) override {
    if (::mkdir(path.c_str(), 0755) == 0) return {};
    const int error_number = errno;
    struct stat status {};
    const bool is_there =
        error_number == EEXIST && ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
    if (is_there) return {};
    return io_failure("create directory", path, error_number);
  }

  core::Result<> sync_directory(const std::string& path) override {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0) return io_failure("open directory", path, errno);
    const int result = uninterrupted([&] { return ::fsync(descriptor); });
    const int error_number = errno;
    ::close(descriptor);
    if (result != 0) return io_failure("sync directory", path, error_number);
    return {};
  }

  std::optional<DeviceSpace> space(const std::string& directory) override {
    struct statvfs status {};
    if (::statvfs(directory.c_str(), &status) != 0) return std::nullopt;
    return DeviceSpace{status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize};
  }
};

core::Result<> copy_file(FileSystem& files, const std::string& from, const std::string& to) {
  constexpr size_t kPieceBytes = size_t{256} << 10;
  auto source = files.open_input(from);
  if (!source) return source.error();
  auto target = files.open_append(to, OpenMode::kCreate);
  if (!target) return target.error();
  std::string piece(kPieceBytes, '\0');
  for (;;) {
    const auto got = (*source)->read(piece);
    if (!got) return got.error();
    if (*got == 0) return (*target)->sync();
    const auto written = (*target)->write(std::string_view(piece).substr(0, *got));
    if (!written) return written;
  }
}

}  // namespace

FileSystem& posix_file_system() {
  static PosixFileSystem files;
  return files;
}

core::Result<> replace_file(FileSystem& files, const std::string& path,
                            const std::string& temporary, std::string_view bytes) {
  const auto fill = [&]() -> core::Result<> {
    auto file = files.open_append(temporary, OpenMode::kCreate);
    if (!file) return file.error();
    if (auto written = (*file)->write(bytes); !written) return written;
    return (*file)->sync();
  };
  auto done = fill();
  if (done) done = files.rename(temporary, path);
  if (!done) {
    (void)files.remove(temporary);
    return done;
  }
  // Without a sync of the directory, a power cut may undo the rename.
  return files.sync_directory(directory_of(path));
}

core::Result<> FileSystem::link(const std::string& /*from*/, const std::string& to) {
  return io_failure("create", to, EOPNOTSUPP);
}

core::Result<> duplicate_file(FileSystem& files, const std::string& from, const std::string& to) {
  if (auto removed = files.remove(to); !removed) return removed;
  if (files.link(from, to)) return {};
  auto copied = copy_file(files, from, to);
  if (!copied) (void)files.remove(to);
  return copied;
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace persistence
