// SPDX-License-Identifier: MIT
#include "server/durability/saves/child_descriptors.h"

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <string_view>
#include <system_error>

namespace server {
namespace {

constexpr int kFirstOwn = 3;  // number of the first descriptor after the standard streams

// Closes all descriptors except the standard streams and those in `sorted_open`. Returns false if
// the kernel is older than 5.9, or a sandbox denies the call.
bool close_ranges_between(const std::vector<int>& sorted_open) {
  auto first = static_cast<unsigned>(kFirstOwn);
  for (const int descriptor : sorted_open) {
    const auto next = static_cast<unsigned>(descriptor);
    if (next > first && ::close_range(first, next - 1, 0) != 0) return false;
    first = std::max(first, next + 1);
  }
  return ::close_range(first, ~0U, 0) == 0;
}

core::Result<> close_listed_but(const std::vector<int>& sorted_open) {
  DIR* const list = ::opendir("/proc/self/fd");
  if (list == nullptr) {
    return core::Error{fmt::format("ERR can't list the open descriptors: {}",
                                   std::generic_category().message(errno))};
  }
  std::vector<int> found;
  while (const dirent* const entry = ::readdir(list)) {
    const std::string_view name = entry->d_name;
    int descriptor = -1;
    (void)std::from_chars(name.data(), name.data() + name.size(), descriptor);
    const bool is_listing = descriptor == ::dirfd(list);
    const bool stays = std::ranges::binary_search(sorted_open, descriptor);
    if (descriptor >= kFirstOwn && !is_listing && !stays) found.push_back(descriptor);
  }
  ::closedir(list);
  for (const int descriptor : found) ::close(descriptor);
  return {};
}

}  // namespace

core::Result<> close_unneeded(const ChildDescriptors& descriptors) {
  std::vector<int> open = descriptors.kept;
  if (descriptors.closed_last >= 0) open.push_back(descriptors.closed_last);
  std::ranges::sort(open);
  if (!close_ranges_between(open)) {
    if (auto closed = close_listed_but(open); !closed) return closed;
  }
  if (descriptors.closed_last >= 0) ::close(descriptors.closed_last);
  return {};
}

}  // namespace server
