// SPDX-License-Identifier: MIT
//
// ThreadTeam: threads that run the same task in parallel, each on its own part of the work.
//
// Invariants: run() returns when every member has returned. Each member sees all writes of earlier
// tasks. If a member throws, run() throws the exception after all members have returned.
// Thread safety: none; one thread owns the team and calls run().
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace core {

class ThreadTeam {
 public:
  using Task = std::function<void(unsigned member)>;

  // Creates a team of `size` members, or of fewer if the system allows no more threads. The first
  // member is the caller of run(). REQUIRES: size >= 1.
  explicit ThreadTeam(unsigned size);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  unsigned size() const { return static_cast<unsigned>(threads_.size()) + 1; }
  // Calls task(member) once for each member of [0, size()).
  void run(const Task& task);

 private:
  void serve(unsigned member);
  void do_part(const Task& task, unsigned member);

  std::mutex mutex_;
  // mutex_ guards task_, round_, busy_count_, is_ending_ and failure_.
  std::condition_variable changed_;
  const Task* task_ = nullptr;
  uint64_t round_ = 0;
  unsigned busy_count_ = 0;
  bool is_ending_ = false;
  std::exception_ptr failure_;

  std::vector<std::thread> threads_;
};

}  // namespace core
