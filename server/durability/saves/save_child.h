// SPDX-License-Identifier: MIT
//
// SaveChild: a forked copy of the process that saves the keyspace as it was at the fork.
//
// Big bit arrays are shared with the child and not copied (see core/bloom/arrays/bit_array.h), so
// the fork takes no longer for a big filter than for a small one.
//
// Invariants: the child first closes every socket, log and lock file that it was not given, then
// binds its life to the parent's. A parent that is killed may leave a child that has not run yet:
// the next server waits for its lock (DirectoryLock). The temporary file is removed if it is
// unfinished.
// Thread safety: one thread at a time; figures() from any thread.
// Source: fork(2): only the forking thread lives on in the child. The allocator's own
// pthread_atfork handlers make malloc ready for that, so the child allocates but takes no lock of
// ours.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/bloom/arrays/array_memory.h"
#include "core/clock.h"
#include "core/result.h"
#include "server/durability/saves/child_descriptors.h"
#include "server/durability/saves/save_work.h"

namespace server {

class SaveChild {
 public:
  using Figures = SaveFigures;
  using Work = SaveWork;

  // REQUIRES: nothing changes the keyspace meanwhile. Errors: the fork failed.
  static core::Result<std::unique_ptr<SaveChild>> start(const core::Clock& clock, const Work& work,
                                                        ChildDescriptors descriptors);
  // Saves at once, in this process: where files are imagined, a child's would not be seen.
  static core::Result<std::unique_ptr<SaveChild>> start_here(const core::Clock& clock,
                                                             const Work& work,
                                                             ChildDescriptors descriptors);
  using Starter = std::function<decltype(start)>;
  // Kills a child that still runs.
  ~SaveChild();
  SaveChild(const SaveChild&) = delete;
  SaveChild& operator=(const SaveChild&) = delete;

  // The child's result once it has ended; nullopt while it runs.
  std::optional<core::Result<>> poll();
  // Waits until the child has said that it is detached, or has ended.
  void await_detached() const;
  // Releases a child that waits for its parent.
  void let_begin() { shared_->figures.may_begin = true; }
  // Asks the child to end at once; poll() then tells of it.
  void kill();
  bool was_killed() const { return was_killed_; }

  pid_t process_id() const { return process_id_; }
  int64_t fork_us() const { return fork_us_; }
  int64_t started_us() const { return started_us_; }  // monotonic
  const Figures& figures() const { return shared_->figures; }

 private:
  struct Shared {
    Figures figures;
    char error[512] = {};
  };
  SaveChild(Shared* shared, pid_t process_id) : shared_(shared), process_id_(process_id) {}
  static Shared* share();

  Shared* shared_;  // a mapping that both processes see
  pid_t process_id_;
  std::optional<core::Result<>> result_here_;
  // Arrays that the child may read keep their bits until it has ended, though they are freed.
  std::unique_ptr<core::bloom::ArrayMemory::ChildGuard> arrays_;
  int64_t fork_us_ = 0;
  int64_t started_us_ = 0;
  bool has_ended_ = false;
  bool was_killed_ = false;
};

// The machine's resources for saving.
struct SaveMachine {
  SaveChild::Starter start_child = SaveChild::start;
  // Memory that the machine has left.
  std::function<uint64_t()> free_bytes = free_bytes_now;
  // ChildDescriptors::closed_last, when a child begins.
  std::function<int()> closed_last = [] { return -1; };

  static uint64_t free_bytes_now();
};

}  // namespace server
