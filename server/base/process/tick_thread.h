// SPDX-License-Identifier: MIT
//
// TickThread: a thread that calls a function repeatedly. Each call returns the pause until the next
// one; wake() shortens the pause.
//
// Thread safety: any thread may call wake() and is_running(). One thread at a time may call start()
// and stop(). start() may be called again after stop().
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace server {

class TickThread {
 public:
  // The function that the thread calls. Returns the longest time that the thread may sleep before
  // the next call.
  using Tick = std::function<std::chrono::milliseconds()>;
  static constexpr std::chrono::milliseconds kUsual{50};
  static constexpr std::chrono::milliseconds kUrgent{1};

  // `name` is the name of the thread, for ps(1) and debuggers; at most 15 characters.
  explicit TickThread(const char* name = "tick") : name_(name) {}
  ~TickThread() { stop(); }

  void start(Tick tick);
  // Ends the thread. Returns when the last call has ended.
  void stop();
  void wake();
  bool is_running() const { return is_running_; }

 private:
  void run(const Tick& tick);

  const char* const name_;
  std::mutex mutex_;  // this mutex guards is_woken_ and is_stopping_
  std::condition_variable wake_;
  bool is_woken_ = false;
  bool is_stopping_ = false;
  std::atomic<bool> is_running_{false};
  std::thread thread_;
};

}  // namespace server
