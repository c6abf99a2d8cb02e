// SPDX-License-Identifier: MIT
#include "server/base/process/tick_thread.h"

#include <utility>

#include "server/base/process/start_thread.h"

namespace server {

void TickThread::start(Tick tick) {
  is_stopping_ = false;
  is_running_ = true;
  thread_ = start_thread(name_, [this, tick = std::move(tick)] { run(tick); });
}

void TickThread::stop() {
  {
    const std::scoped_lock lock(mutex_);
    is_stopping_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  is_running_ = false;
}

void TickThread::wake() {
  {
    const std::scoped_lock lock(mutex_);
    is_woken_ = true;
  }
  wake_.notify_one();
}

void TickThread::run(const Tick& tick) {
  std::unique_lock lock(mutex_);
  while (!is_stopping_) {
    is_woken_ = false;
    lock.unlock();
    const auto pause = tick();
    lock.lock();
    wake_.wait_for(lock, pause, [this] { return is_stopping_ || is_woken_; });
  }
}

}  // namespace server
