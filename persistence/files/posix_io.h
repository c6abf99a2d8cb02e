// SPDX-License-Identifier: MIT
//
// Defines helpers for descriptors: they repeat interrupted calls, continue short writes, and report
// failures with the operation and the file.
//
// Thread safety: the functions keep no state, so any thread may call them.
// Source: write(2), signal(7) "Interruption of system calls".
#pragma once

#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>

#include "core/printable.h"
#include "core/result.h"

namespace persistence {

// The permissions of new files, to which other users have no access.
inline constexpr mode_t kOwnerOnly = 0600;

// Returns the path in absolute form, for a message. The user who reads the message may be in
// another directory.
inline std::string printable_path(const std::string& path) {
  std::error_code error;
  const auto whole = std::filesystem::absolute(path, error);
  return core::printable(error || path.empty() ? path : whole.lexically_normal().string());
}

// Returns the error of a failed system call on a stream. `name` need not be a path, because a
// stream such as the standard input has no path.
inline core::Error stream_failure(std::string_view act, std::string_view name, int error_number) {
  return {fmt::format("ERR can't {} '{}': {}", act, core::printable(name),
                      std::generic_category().message(error_number))};
}

inline core::Error io_failure(std::string_view act, const std::string& path, int error_number) {
  return stream_failure(act, printable_path(path), error_number);
}

// Repeats a system call that a signal interrupted.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// Returns the outcome of a system call that returns 0 if it succeeds. REQUIRES: errno is that of
// the call.
inline core::Result<> call_result(int result, std::string_view act, const std::string& path) {
  if (result == 0) return {};
  return io_failure(act, path, errno);
}

inline core::Result<> write_all(int descriptor, std::string_view bytes, const std::string& path) {
  // The maximum size of one write(). It is below Linux's own limit of about 2 GiB, because larger
  // writes would be cut short.
  constexpr size_t kWriteBytesMax = size_t{1} << 30;
  while (!bytes.empty()) {
    const ssize_t written = uninterrupted(
        [&] { return ::write(descriptor, bytes.data(), std::min(bytes.size(), kWriteBytesMax)); });
    if (written < 0) return io_failure("write", path, errno);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

}  // namespace persistence
