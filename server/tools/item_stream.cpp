// SPDX-License-Identifier: MIT
#include "server/tools/item_stream.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "persistence/files/posix_io.h"

namespace server {

DescriptorStream::DescriptorStream(int descriptor, std::string name)
    : descriptor_(descriptor), name_(std::move(name)) {
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) return;
  start_ = ::lseek(descriptor_, 0, SEEK_CUR);
  if (start_ < 0) return;
  const off_t left = status.st_size > start_ ? status.st_size - start_ : 0;
  size_bound_ = static_cast<uint64_t>(left);
}

core::Result<size_t> DescriptorStream::read(std::span<char> out) {
  const ssize_t got =
      persistence::uninterrupted([&] { return ::read(descriptor_, out.data(), out.size()); });
  if (got < 0) return persistence::stream_failure("read", name_, errno);
  return static_cast<size_t>(got);
}

core::Result<> DescriptorStream::rewind() {
  if (::lseek(descriptor_, start_, SEEK_SET) < 0)
    return persistence::stream_failure("rewind", name_, errno);
  return {};
}

}  // namespace server
