// SPDX-License-Identifier: MIT
#include "persistence/file_stream.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "persistence/file.h"

namespace persistence {
namespace {

// What lies behind the place where the descriptor stands.
uint64_t bound_of(int descriptor) {
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    return ByteSource::kUnknownSize;
  }
  const off_t position = ::lseek(descriptor, 0, SEEK_CUR);
  if (position < 0) return ByteSource::kUnknownSize;
  return position < status.st_size ? static_cast<uint64_t>(status.st_size - position) : 0;
}

}  // namespace

core::Result<> FileSink::write(std::string_view bytes) {
  return write_descriptor(descriptor_, bytes, name_);
}

FileSource::FileSource(int descriptor, std::string name)
    : descriptor_(descriptor), name_(std::move(name)), size_bound_(bound_of(descriptor)) {}

core::Result<size_t> FileSource::read(std::span<char> out) {
  while (true) {
    const ssize_t got = ::read(descriptor_, out.data(), out.size());
    if (got >= 0) return static_cast<size_t>(got);
    if (errno != EINTR) {
      return core::Error{
          fmt::format("ERR can't read '{}': {}", name_, std::generic_category().message(errno))};
    }
  }
}

}  // namespace persistence
