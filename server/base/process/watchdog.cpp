// SPDX-License-Identifier: MIT
#include "server/base/process/watchdog.h"

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <utility>

#include "server/base/log/log.h"
#include "server/base/process/raw_report.h"

namespace server {
namespace {

// Number of checks per period, which limits how late a report may be.
constexpr int kLooksPerPeriod = 4;

void on_alarm(int /*signal*/) {
  const int error = errno;
  {
    const ReportFile file;
    RawOutput out(file.descriptor());
    std::array<char, 17> name{};
    ::prctl(PR_GET_NAME, name.data());
    out << "\n--- WATCHDOG TIMER EXPIRED ---\nThread " << int64_t{::gettid()} << " " << name.data()
        << ", " << int64_t{::time(nullptr)}
        << " s since 1970. Stack (c++filt makes names readable):\n";
    write_stack(out);
    out << "--------\n";
  }
  errno = error;
}

void install_handler() {
  struct sigaction action {};
  action.sa_handler = on_alarm;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(SIGALRM, &action, nullptr);
}

}  // namespace

Watchdog::Watchdog(size_t thread_count, Ask ask)
    : thread_count_(thread_count),
      ask_(std::move(ask)),
      watched_(std::make_unique<Watched[]>(thread_count)) {
  // Each watched thread stores its thread id. If the thread is stuck later, the watchdog needs this
  // id to send SIGALRM to the thread.
  for (size_t i = 0; i < thread_count; ++i) {
    ask_(i, [&watched = watched_[i]] { watched.thread = ::gettid(); });
  }
}

void Watchdog::set_period(std::chrono::milliseconds period) {
  if (period.count() <= 0) return stop();
  period_ms_ = std::max(period, kShortest).count();
  if (thread_.is_running()) return thread_.wake();
  install_handler();
  const auto now = std::chrono::steady_clock::now();
  for (size_t i = 0; i < thread_count_; ++i) watched_[i].asked_at = now;
  thread_.start([this] { return look(); });
}

std::chrono::milliseconds Watchdog::look() {
  const std::chrono::milliseconds period{period_ms_.load()};
  for (size_t i = 0; i < thread_count_; ++i) look_at(i, period);
  return period / kLooksPerPeriod;
}

void Watchdog::look_at(size_t index, std::chrono::milliseconds period) {
  Watched& watched = watched_[index];
  const auto now = std::chrono::steady_clock::now();
  if (watched.answered.load(std::memory_order_acquire) == watched.asked) {
    watched.is_reported = false;
    watched.asked_at = now;
    ask_(index, [&watched, number = ++watched.asked] {
      watched.answered.store(number, std::memory_order_release);
    });
    return;
  }
  const pid_t thread = watched.thread;
  // A thread without an id has not started to work, so it cannot be stuck.
  if (watched.is_reported || thread == 0 || now - watched.asked_at < period) return;
  watched.is_reported = true;
  const auto owed = std::chrono::duration_cast<std::chrono::milliseconds>(now - watched.asked_at);
  log_warning("I/O thread {} has not come back to its event loop for {} ms; its stack follows",
              index, owed.count());
  flush_log();
  ::syscall(SYS_tgkill, ::getpid(), thread, SIGALRM);
}

}  // namespace server
