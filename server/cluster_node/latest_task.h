// SPDX-License-Identifier: MIT
//
// LatestTask: a thread that runs one task at a time. A newer task replaces a task that has not
// begun. Used to apply the node's role and to write cluster.json, where only the newest state
// matters.
//
// Thread safety: any thread may call run(). One thread at a time may call start() and stop().
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "server/base/process/start_thread.h"

namespace server::cluster {

class LatestTask {
 public:
  LatestTask() = default;
  ~LatestTask() { stop(); }
  LatestTask(const LatestTask&) = delete;
  LatestTask& operator=(const LatestTask&) = delete;

  // Starts the thread under this name. The thread first runs the pending task, if there is one.
  void start(const std::string& name) {
    is_stopping_ = false;
    thread_ = start_thread(name, [this] { work(); });
  }
  void run(std::function<void()> task) {
    const std::scoped_lock lock(mutex_);
    waiting_ = std::move(task);
    wake_.notify_one();
  }
  // Ends the thread when it has finished the running task and the pending task, if any.
  void stop() {
    {
      const std::scoped_lock lock(mutex_);
      is_stopping_ = true;
      wake_.notify_one();
    }
    if (thread_.joinable()) thread_.join();
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [this] { return is_stopping_ || waiting_; });
      if (!waiting_) return;
      const std::function<void()> task = std::exchange(waiting_, nullptr);
      lock.unlock();
      task();
      lock.lock();
    }
  }

  std::mutex mutex_;  // this mutex guards waiting_ and is_stopping_
  std::condition_variable wake_;
  std::function<void()> waiting_;
  bool is_stopping_ = false;
  std::thread thread_;
};

}  // namespace server::cluster
