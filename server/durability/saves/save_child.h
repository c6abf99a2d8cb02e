// SPDX-License-Identifier: MIT
//
// SaveChild: a forked copy of the process that saves the keyspace as it was at the fork.
//
// The child shares big bit arrays with the parent without a copy (core/bloom/arrays/bit_array.h).
// So the fork takes no longer for a big filter than for a small one.
//
// Invariants: the child first closes every socket, log and lock file that it does not need. It then
// asks the kernel for SIGKILL when the parent ends. If the parent is killed before this request,
// the child exits after the request. The next server waits until the child has released the lock
// (DirectoryLock). The parent removes the temporary file of a failed save.
// Thread safety: any thread may call figures(). One thread at a time may call the other members.
// Source: fork(2): only the forking thread exists in the child. The allocator's pthread_atfork
// handlers make malloc usable, so the child may allocate, but it must take no lock of the server.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "core/bloom/arrays/array_memory.h"
#include "core/clock.h"
#include "core/result.h"
#include "server/base/process/memory_monitor.h"
#include "server/durability/saves/child_descriptors.h"
#include "server/durability/saves/save_work.h"

namespace server {

class SaveChild {
 public:
  using Figures = SaveFigures;
  using Work = SaveWork;

  // Forks a child that saves. REQUIRES: no thread changes the keyspace during the call. Errors: the
  // fork failed.
  static core::Result<std::unique_ptr<SaveChild>> start(const core::Clock& clock, const Work& work,
                                                        ChildDescriptors descriptors);
  // Saves in this process, without a fork, before the call returns. Used by tests with an in-memory
  // file system, because this process could not see the files that a child writes there.
  static core::Result<std::unique_ptr<SaveChild>> start_here(const core::Clock& clock,
                                                             const Work& work,
                                                             ChildDescriptors descriptors);
  using Starter = std::function<decltype(start)>;
  // Kills the child if it still runs.
  ~SaveChild();
  SaveChild(const SaveChild&) = delete;
  SaveChild& operator=(const SaveChild&) = delete;

  // Returns the child's result once it has ended; nullopt while it runs.
  std::optional<core::Result<>> poll();
  // Waits until the child has reported that it no longer shares arrays with the parent, or has
  // ended.
  void await_detached() const;
  // Sets SaveFigures::may_begin. The child of a log rewrite waits for this before it writes.
  void let_begin() { shared_->figures.may_begin = true; }
  // Kills the child. poll() then returns its result.
  void kill();
  bool was_killed() const { return was_killed_; }

  pid_t process_id() const { return process_id_; }
  int64_t fork_us() const { return fork_us_; }
  int64_t started_us() const { return started_us_; }  // Returns the monotonic time of the fork.
  const Figures& figures() const { return shared_->figures; }

 private:
  struct Shared {
    Figures figures;
    char error[512] = {};
  };
  SaveChild(Shared* shared, pid_t process_id) : shared_(shared), process_id_(process_id) {}
  static Shared* share();

  Shared* shared_;  // memory that the parent and the child share
  pid_t process_id_;
  std::optional<core::Result<>> result_here_;
  // While this guard exists, the child can read the bits of shared arrays, even if this process
  // frees the arrays.
  std::unique_ptr<core::bloom::ArrayMemory::ChildGuard> arrays_;
  int64_t fork_us_ = 0;
  int64_t started_us_ = 0;
  bool has_ended_ = false;
  bool was_killed_ = false;
};

// SaveMachine: the resources of the machine that saving needs.
struct SaveMachine {
  SaveChild::Starter start_child = SaveChild::start;
  // Returns the machine's free memory.
  std::function<uint64_t()> free_bytes = free_machine_bytes;
  // Returns the descriptor that a new child must close last (ChildDescriptors::closed_last).
  std::function<int()> closed_last = [] { return -1; };
};

}  // namespace server
