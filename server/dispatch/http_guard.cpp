// SPDX-License-Identifier: MIT
#include "server/dispatch/http_guard.h"

#include <atomic>
#include <limits>

#include "protocol/arguments.h"
#include "server/base/log/log.h"

namespace server {

bool is_http_word(std::string_view name) {
  return protocol::equals_ignore_case(name, "post") || protocol::equals_ignore_case(name, "host:");
}

void warn_of_http(std::string_view client_address, int64_t now_ms) {
  constexpr int64_t kPauseMs = 60'000;
  static std::atomic<int64_t> last_ms{std::numeric_limits<int64_t>::min() / 2};
  int64_t last = last_ms.load();
  // If the clock was set back, the next warning is logged at once, because the old time limit might
  // suppress warnings for hours.
  if (now_ms >= last && now_ms - last < kPauseMs) return;
  if (!last_ms.compare_exchange_strong(last, now_ms)) return;
  log_warning(
      "Possible SECURITY ATTACK detected. It looks like somebody is sending POST or Host: commands "
      "to Redis. This is likely due to an attacker attempting to use Cross Protocol Scripting to "
      "compromise your Redis instance. Connection from {} aborted.",
      client_address);
}

}  // namespace server
