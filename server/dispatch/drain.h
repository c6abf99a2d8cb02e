// SPDX-License-Identifier: MIT
//
// Drain: calls a callback when no I/O thread any longer runs a command that started before begin().
//
// Holding back new commands is not enough for a caller that needs all commands to have stopped. A
// command that has started earlier may still be waiting for the locks of its stripes. Each command
// runs from its start to its end on one thread. So once each I/O thread has been between two
// commands, no earlier command is running.
//
// Invariants: only one drain runs at a time. The callbacks of a drain have returned before the next
// drain begins.
// Thread safety: begin() may be called from any thread, even from a callback. Callbacks run on one
// of the I/O threads, and must not wait for another drain.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

namespace server {

class CommandThreads;

class Drain {
 public:
  using Callback = std::function<void()>;

  explicit Drain(CommandThreads& threads) : threads_(threads) {}

  void begin(Callback on_ended);

 private:
  void visit();

  CommandThreads& threads_;
  std::mutex mutex_;  // this mutex guards the members below
  std::vector<Callback> waiting_;
  bool is_running_ = false;
};

// CommandThreads: the I/O threads, as seen by code that holds commands back.
class CommandThreads {
 public:
  // Calls `on_all_passed` on an I/O thread, after each I/O thread has been between two commands at
  // least once since this call.
  virtual void visit(Drain::Callback on_all_passed) = 0;
  // Makes the threads check held-back commands again.
  virtual void wake_held_back() = 0;

 protected:
  ~CommandThreads() = default;
};

}  // namespace server
