// SPDX-License-Identifier: MIT
//
// delay_for_key: sleeps for the time that rdb-key-save-delay or key-load-delay requests. These
// options let tests observe a server that is saving or loading. They have no effect if
// enable-debug-command denies DEBUG to all clients.
//
// Thread-safe: each thread has its own random generator.
#pragma once

#include <chrono>
#include <cstdint>
#include <random>
#include <thread>

#include "server/base/config/config.h"

namespace server {

// Returns the value of `option`, which is rdb-key-save-delay or key-load-delay. Returns 0 if DEBUG
// is denied to all clients.
inline int64_t key_delay(const Config& config, OptionId option) {
  const DebugCommand debug{config.integer(OptionId::kEnableDebugCommand)};
  return debug == DebugCommand::kNo ? 0 : config.integer(option);
}

// Sleeps before the next key is saved or loaded. A positive `delay` is the duration in
// microseconds. If `delay` is negative, on average one of every -delay calls sleeps, for a
// microsecond.
inline void delay_for_key(int64_t delay) {
  if (delay == 0) return;
  if (delay < 0) {
    thread_local std::minstd_rand random;
    if (std::uniform_int_distribution<int64_t>(1, -delay)(random) != 1) return;
    delay = 1;
  }
  std::this_thread::sleep_for(std::chrono::microseconds(delay));
}

}  // namespace server
