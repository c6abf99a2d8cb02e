// SPDX-License-Identifier: MIT
#include "server/net/loop_sharing.h"

#include <algorithm>
#include <ctime>
#include <fstream>
#include <utility>

#include "server/net/io_threads.h"

namespace server::net {
namespace {

// Over how long the use of processors is measured; the system tells it in steps of 10 ms.
constexpr std::chrono::milliseconds kMeasureInterval{100};
// A driver that uses more than this of its processor leaves the loops to their threads if so much
// of one was idle twice; they share again when they use less than this together. Where clients on
// the same machine use up the processors, a second thread would only take from them.
constexpr int kBusyPermille = 900;
constexpr int kIdlePermille = 500;
constexpr int kLightPermille = 500;
// How long they stay apart at least.
constexpr std::chrono::milliseconds kSpreadTime{100};
// A round that takes longer is left to itself by the loops that have no part in it.
constexpr std::chrono::milliseconds kLongRound{10};

}  // namespace

std::chrono::nanoseconds LoopSharing::thread_cpu_time() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

// See proc_uptime(5).
std::optional<std::chrono::nanoseconds> LoopSharing::processors_idle_time() {
  std::ifstream file("/proc/uptime");
  double up_s = 0;
  double idle_s = 0;
  if (!(file >> up_s >> idle_s)) return std::nullopt;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(idle_s));
}

LoopSharing::Role LoopSharing::join(IoThread& thread) {
  if (!is_light_ || !is_wanted()) {
    resign(thread, Role::kReturned);
    return Role::kAlone;
  }
  if (thread.share.drives) return Role::kDriver;
  std::unique_lock lock(mutex_);
  if (driver_ != nullptr) return lend(thread, lock);
  driver_ = &thread;
  thread.share.drives = true;
  return Role::kDriver;
}

LoopSharing::Role LoopSharing::lend(IoThread& thread, std::unique_lock<std::mutex>& lock) {
  restart_measure(thread);
  thread.share.lease.lend();
  offers_.push_back(&thread);
  has_offers_ = true;
  driver_->notice();
  const auto is_back = [&thread] { return thread.share.lease.state() == Lease::State::kOwn; };
  uint64_t last_round = driver_->share.rounds;
  while (!lease_ended_.wait_for(lock, kLongRound, is_back)) {
    const uint64_t round = driver_->share.rounds;
    if (round == last_round && !driver_->is_in_readiness && thread.share.lease.end()) {
      std::erase(offers_, &thread);
      spread();
      return Role::kReturned;
    }
    last_round = round;
  }
  return thread.share.role_after_lease;
}

void LoopSharing::adopt_offers(IoThread& driver) {
  // Those that have gone back, from a round that was long.
  std::erase_if(driver.share.lent, [&driver](IoThread* loop) {
    if (loop->share.lease.state() != Lease::State::kOwn) return false;
    driver.readiness.remove(loop->readiness, loop->lent_watcher);
    return true;
  });
  if (!has_offers_) return;
  const std::scoped_lock lock(mutex_);
  adopt_locked(driver);
}

void LoopSharing::adopt_locked(IoThread& driver) {
  for (IoThread* const loop : offers_) {
    // One that has gone back from a long round, and has come again before its end, is still there.
    auto& lent = driver.share.lent;
    if (std::find(lent.begin(), lent.end(), loop) != lent.end()) continue;
    if (driver.readiness.add(loop->readiness, loop->lent_watcher)) {
      lent.push_back(loop);
    } else if (loop->share.lease.end()) {
      loop->share.role_after_lease = Role::kReturned;  // it looks under the mutex
      lease_ended_.notify_all();
    }
  }
  offers_.clear();
  has_offers_ = false;
}

void LoopSharing::resign(IoThread& thread, Role role_of_others) {
  if (!thread.share.drives) return;
  const std::scoped_lock lock(mutex_);
  adopt_locked(thread);
  for (IoThread* const loop : thread.share.lent) {
    thread.readiness.remove(loop->readiness, loop->lent_watcher);
    if (loop->share.lease.end()) loop->share.role_after_lease = role_of_others;
  }
  thread.share.lent.clear();
  thread.share.drives = false;
  driver_ = nullptr;
  lease_ended_.notify_all();
}

void LoopSharing::spread() {
  spread_until_ = Clock::now() + kSpreadTime;
  is_light_ = false;
}

void LoopSharing::measure(IoThread& thread) {
  const auto now = Clock::now();
  Usage& usage = thread.share.usage;
  const std::chrono::nanoseconds elapsed = now - usage.since;
  if (elapsed < kMeasureInterval) return;
  const auto permille = [elapsed](std::chrono::nanoseconds time) {
    return static_cast<int>(time * 1000 / elapsed);
  };
  const auto cpu_time = thread_time();
  const int used = permille(cpu_time - usage.cpu_time);
  used_permille_ += used - usage.permille;
  usage.permille = used;
  usage.since = now;
  usage.cpu_time = cpu_time;
  if (thread.share.drives) {
    const auto idle_now = idle_time();
    const auto idle_then = std::exchange(usage.idle_time, idle_now);
    // The first look has nothing to compare with.
    const int idle = idle_now && idle_then ? permille(*idle_now - *idle_then) : 0;
    const int idle_before = std::exchange(usage.idle_permille, idle);
    const bool has_room = !idle_now || idle + idle_before > 2 * kIdlePermille;
    if (used > kBusyPermille && has_room) spread();
  } else if (!is_light_ && now >= spread_until_.load() && used_permille_ < kLightPermille) {
    is_light_ = true;
  }
}

void LoopSharing::restart_measure(IoThread& thread) {
  Usage& usage = thread.share.usage;
  used_permille_ -= usage.permille;
  usage = Usage{};
  usage.since = Clock::now();
  usage.cpu_time = thread_time();
}

}  // namespace server::net
