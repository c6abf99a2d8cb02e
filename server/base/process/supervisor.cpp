// SPDX-License-Identifier: MIT
#include "server/base/process/supervisor.h"

#include <fmt/format.h>
#include <systemd/sd-daemon.h>

#include <cstdlib>
#include <utility>

#include "core/clock.h"

namespace server {
namespace {

// While the server loads its data, it asks systemd once a second to extend the startup timeout by
// this time.
constexpr int64_t kStartExtensionUs = 30 * core::kSecondUs;

bool manager_listens(Supervised mode) {
  const bool may = mode == Supervised::kSystemd || mode == Supervised::kAuto;
  return may && std::getenv("NOTIFY_SOCKET") != nullptr;
}

uint64_t watchdog_interval_us() {
  uint64_t interval_us = 0;
  return sd_watchdog_enabled(0, &interval_us) > 0 ? interval_us : 0;
}

void send_to_manager(const std::string& lines) {
  // The result is ignored, because an error of the service manager does not concern the server.
  (void)sd_notify(0, lines.c_str());
}

}  // namespace

Supervisor::Supervisor(Supervised mode)
    : Supervisor(manager_listens(mode), watchdog_interval_us(), send_to_manager) {}

Supervisor::Supervisor(bool listens, uint64_t watchdog_us, Send send)
    : listens_(listens), watchdog_us_(static_cast<int64_t>(watchdog_us)), send_(std::move(send)) {}

void Supervisor::ready(std::string_view what) {
  if (!listens_ || is_stopping_ || is_ready_.exchange(true)) return;
  send_(fmt::format("READY=1\nSTATUS={}", what));
}

void Supervisor::stopping() {
  if (!listens_ || is_stopping_.exchange(true)) return;
  send_("STOPPING=1\nSTATUS=Ending: saving the data");
}

void Supervisor::tick(int64_t now_us, double loaded_share) {
  if (!listens_) return;
  // As sd_watchdog_enabled(3) recommends, the watchdog message is sent twice per interval.
  if (watchdog_us_ != 0 && now_us - sign_of_life_us_ >= watchdog_us_ / 2) {
    sign_of_life_us_ = now_us;
    send_("WATCHDOG=1");
  }
  const bool is_loading = loaded_share >= 0 && !is_ready_ && !is_stopping_;
  if (!is_loading || now_us - loading_reported_us_ < core::kSecondUs) return;
  loading_reported_us_ = now_us;
  send_(fmt::format("STATUS=Loading data: {:.0f} %\nEXTEND_TIMEOUT_USEC={}", loaded_share * 100,
                    kStartExtensionUs));
}

}  // namespace server
