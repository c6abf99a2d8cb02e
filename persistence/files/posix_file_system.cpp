// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "persistence/files/file_system.h"
#include "persistence/files/open_file.h"
#include "persistence/files/posix_io.h"

namespace persistence {
namespace {

class PosixAppendFile final : public AppendFile {
 public:
  PosixAppendFile(core::Descriptor descriptor, std::string path)
      : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  core::Result<> write(std::string_view bytes) override {
    return write_all(descriptor_.get(), bytes, path_);
  }

  core::Result<> sync() override {
    return call_result(uninterrupted([&] { return ::fdatasync(descriptor_.get()); }), "sync",
                       path_);
  }

  core::Result<> truncate(uint64_t size_bytes) override {
    const auto cut = [&] { return ::ftruncate(descriptor_.get(), static_cast<off_t>(size_bytes)); };
    return call_result(uninterrupted(cut), "truncate", path_);
  }

 private:
  const core::Descriptor descriptor_;
  const std::string path_;
};

class PosixInputFile final : public InputFile {
 public:
  PosixInputFile(core::Descriptor descriptor, std::string path, uint64_t size_bytes)
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
  const core::Descriptor descriptor_;
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

  bool exists(const std::string& path) override {
    return ::access(path.c_str(), F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR);
  }

  core::Result<uint64_t> size_bytes(const std::string& path) override {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return io_failure("look at", path, errno);
    return static_cast<uint64_t>(status.st_size);
  }

  core::Result<> rename(const std::string& from, const std::string& to) override {
    if (auto replaceable = check_replaceable(to); !replaceable) return replaceable;
    const int outcome = ::rename(from.c_str(), to.c_str());
    if (outcome != 0 && errno == EXDEV) {
      return core::Error{
          fmt::format("ERR can't replace '{}' by '{}': keep the data directory and "
                      "all in it on one file system",
                      printable_path(to), printable_path(from))};
    }
    return call_result(outcome, "replace", to);
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
    return call_result(::link(from.c_str(), to.c_str()), "create", to);
  }

  core::Result<> remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return io_failure("remove", path, errno);
    return {};
  }

  core::Result<std::vector<std::string>> list(const std::string& directory) override {
    std::vector<std::string> names;
    std::error_code error;
    const std::filesystem::directory_iterator end;
    for (std::filesystem::directory_iterator file(directory, error); file != end;
         file.increment(error)) {
      names.push_back(file->path().filename());
    }
    if (error == std::errc::no_such_file_or_directory) return names;
    if (error) return io_failure("list", directory, error.value());
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
    const core::Descriptor directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory.is_open()) return io_failure("open directory", path, errno);
    const auto sync = [&] { return ::fsync(directory.get()); };
    return call_result(uninterrupted(sync), "sync directory", path);
  }

  std::optional<DeviceSpace> space(const std::string& directory) override {
    struct statvfs status {};
    if (::statvfs(directory.c_str(), &status) != 0) return std::nullopt;
    return DeviceSpace{status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize};
  }
};

core::Result<> copy_all(ByteSource& source, ByteSink& target) {
  constexpr size_t kPieceBytes = size_t{256} << 10;
  std::string piece(kPieceBytes, '\0');
  for (;;) {
    const auto got = source.read(piece);
    if (!got) return got.error();
    if (*got == 0) return {};
    const auto written = target.write(std::string_view(piece).substr(0, *got));
    if (!written) return written;
  }
}

}  // namespace

FileSystem& posix_file_system() {
  static PosixFileSystem files;
  return files;
}

core::Result<std::string> read_beginning(FileSystem& files, const std::string& path,
                                         size_t bytes_max) {
  const auto file = files.open_input(path);
  if (!file) return file.error();
  std::string bytes(std::min<uint64_t>((*file)->size_bytes(), bytes_max), '\0');
  const auto got = (*file)->read(bytes);
  if (!got) return got.error();
  bytes.resize(*got);
  return {boost::system::in_place_value, std::move(bytes)};
}

core::Result<> move_into_place(FileSystem& files, const std::string& temporary,
                               const std::string& path) {
  if (auto renamed = files.rename(temporary, path); !renamed) {
    (void)files.remove(temporary);
    return renamed;
  }
  // Without a sync of the directory, a power cut may undo the rename.
  return files.sync_directory(directory_of(path));
}

core::Result<> replace_file(FileSystem& files, const std::string& path,
                            const std::string& temporary, std::string_view bytes) {
  const auto written =
      write_whole_file(files, temporary, [&](ByteSink& file) { return file.write(bytes); });
  return written ? move_into_place(files, temporary, path) : written;
}

core::Result<> FileSystem::link(const std::string& /*from*/, const std::string& to) {
  return io_failure("create", to, EOPNOTSUPP);
}

core::Result<> duplicate_file(FileSystem& files, const std::string& from, const std::string& to) {
  if (auto removed = files.remove(to); !removed) return removed;
  if (files.link(from, to)) return {};
  const auto source = files.open_input(from);
  if (!source) return source.error();
  return write_whole_file(files, to, [&](ByteSink& target) { return copy_all(**source, target); });
}

std::string directory_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace persistence
