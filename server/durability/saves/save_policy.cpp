// SPDX-License-Identifier: MIT
#include "server/durability/saves/save_policy.h"

#include <algorithm>
#include <charconv>

#include "core/clock.h"

namespace server {

bool save_point_is_reached(std::string_view points, uint64_t changes, int64_t elapsed_s) {
  const char* at = points.data();
  const char* const end = at + points.size();
  const auto number = [&] {
    uint64_t value = 0;
    at = std::from_chars(at, end, value).ptr;
    if (at != end) ++at;
    return value;
  };
  while (at != end) {
    const auto seconds = static_cast<int64_t>(number());
    const uint64_t changes_needed = number();
    if (elapsed_s > seconds && changes > 0 && changes >= changes_needed) return true;
  }
  return false;
}

bool log_has_outgrown(uint64_t size_bytes, uint64_t base_bytes, uint64_t percentage,
                      uint64_t least_bytes) {
  if (percentage == 0 || size_bytes < least_bytes) return false;
  const uint64_t base = std::max<uint64_t>(base_bytes, 1);
  return static_cast<double>(size_bytes - std::min(size_bytes, base)) * 100 >=
         static_cast<double>(percentage) * static_cast<double>(base);
}

// After the first two failures of a rewrite there is no delay, except the least delay of the
// caller. Later retries begin after 1, 2, 4 … minutes, at most an hour.
int64_t rewrite_delay_us(uint64_t failures) {
  constexpr uint64_t kFreeFailures = 3;
  if (failures < kFreeFailures) return 0;
  const uint64_t minutes = uint64_t{1} << std::min<uint64_t>(failures - kFreeFailures, 6);
  return static_cast<int64_t>(std::min<uint64_t>(minutes, 60)) * 60 * core::kSecondUs;
}

}  // namespace server
