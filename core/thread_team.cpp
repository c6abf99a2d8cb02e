// SPDX-License-Identifier: MIT
#include "core/thread_team.h"

#include <system_error>
#include <utility>

namespace core {

ThreadTeam::ThreadTeam(unsigned size) {
  threads_.reserve(size - 1);
  try {
    for (unsigned member = 1; member < size; ++member) {
      threads_.emplace_back([this, member] { serve(member); });
    }
  } catch (const std::system_error&) {
    // The system allows no more threads. The members that exist do all the work.
  }
}

ThreadTeam::~ThreadTeam() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::run(const Task& task) {
  {
    const std::lock_guard lock(mutex_);
    task_ = &task;
    busy_count_ = size();
    ++round_;
  }
  changed_.notify_all();
  do_part(task, 0);
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return busy_count_ == 0; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadTeam::serve(unsigned member) {
  uint64_t rounds_done = 0;
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_ending_ || round_ != rounds_done; });
    if (is_ending_) return;
    rounds_done = round_;
    const Task& task = *task_;
    lock.unlock();
    do_part(task, member);
  }
}

void ThreadTeam::do_part(const Task& task, unsigned member) {
  std::exception_ptr failure;
  try {
    task(member);
  } catch (...) {
    failure = std::current_exception();
  }
  const std::lock_guard lock(mutex_);
  if (failure) failure_ = failure;
  if (--busy_count_ == 0) changed_.notify_all();
}

}  // namespace core
