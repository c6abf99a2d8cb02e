// SPDX-License-Identifier: MIT
//
// LoopSharing: which thread drives which I/O thread's loop: each its own, or, while that is wanted
// and one processor is enough, one thread those of all that have clients.
//
// Where every reply waits for a disk, waking threads costs more than the commands: each wakes for a
// few of the clients, commits for them, and waits again. So a thread that is about to wait for its
// clients lends its loop to one that already does, and sleeps until it gets it back: when no client
// has come for a while, when the driving thread needs more than a processor and there is another
// one, or when it has been in one round for so long that others shall not wait for its end. The
// driver's own loop does wait for that, and so do those that have a part in the round.
//
// Invariants: one thread at a time drives a loop. A thread drives or lends, or does neither. A loop
// that is lent goes back to its own thread, and to no other.
// Thread safety: each member is called by the thread whose loop it is given.
// Source: "Leader/Followers", D. Schmidt et al., Pattern-Oriented Software Architecture, vol. 2.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <vector>

namespace server::net {

struct IoThread;

// Of one loop: who may drive it.
class Lease {
 public:
  enum class State : uint8_t {
    kOwn,     // its own thread
    kLent,    // who takes it
    kDriven,  // the driving thread has taken it
  };
  State state() const { return state_; }
  void lend() { state_ = State::kLent; }
  // On the driving thread, for the time of a round; false when its thread has it back.
  bool take() { return change(State::kLent, State::kDriven); }
  void put_back() { state_ = State::kLent; }
  // False while it is driven.
  bool end() { return change(State::kLent, State::kOwn); }

 private:
  bool change(State from, State to) { return state_.compare_exchange_strong(from, to); }
  std::atomic<State> state_{State::kOwn};
};

class LoopSharing {
 public:
  using Clock = std::chrono::steady_clock;
  // What a thread has used of its processor.
  struct Usage {
    Clock::time_point since;
    std::chrono::nanoseconds cpu_time{0};               // then
    std::optional<std::chrono::nanoseconds> idle_time;  // of all processors, then, if it drove
    int permille = 0;                                   // in the time before, of one processor
    int idle_permille = 0;                              // in the time before, of one processor
  };

  enum class Role : uint8_t {
    kAlone,     // drives its own loop
    kDriver,    // drives its own and the lent ones
    kReturned,  // had lent its loop and has it back, with work perhaps
    kIdle,      // had lent its loop and has it back because no client came
  };
  // Whether sharing is any use now. Set before the threads start, as are the other two.
  std::function<bool()> is_wanted = [] { return false; };
  // What the calling thread has used of its processor.
  std::function<std::chrono::nanoseconds()> thread_time = thread_cpu_time;
  // For how long processors have been idle, all together; nothing if the system does not tell.
  std::function<std::optional<std::chrono::nanoseconds>()> idle_time = processors_idle_time;

  // What LoopSharing knows of a thread and its loop.
  struct Share {
    Lease lease;
    Role role_after_lease = Role::kReturned;  // guarded by mutex_
    bool drives = false;
    std::vector<IoThread*> lent;      // the loops that it drives besides its own
    std::atomic<uint64_t> rounds{0};  // that it has begun to drive
    Usage usage;
  };

  // Before the thread waits for its clients. Returns at once, or when it has its loop back.
  Role join(IoThread& thread);
  // Takes over the loops that have been lent since the last call.
  void adopt_offers(IoThread& driver);
  // Gives all lent loops back; a thread that does not drive has none.
  void resign(IoThread& thread, Role role_of_others);
  // From time to time: how much of a processor the thread uses decides who drives.
  void measure(IoThread& thread);
  // Before the thread sleeps.
  void restart_measure(IoThread& thread);

 private:
  static std::chrono::nanoseconds thread_cpu_time();
  static std::optional<std::chrono::nanoseconds> processors_idle_time();
  Role lend(IoThread& thread, std::unique_lock<std::mutex>& lock);
  void spread();
  // REQUIRES: mutex_.
  void adopt_locked(IoThread& driver);

  std::mutex mutex_;  // guards driver_, offers_ and the ends of leases
  std::condition_variable lease_ended_;
  IoThread* driver_ = nullptr;
  std::vector<IoThread*> offers_;
  std::atomic<bool> has_offers_{false};
  std::atomic<bool> is_light_{true};  // one thread is enough
  std::atomic<Clock::time_point> spread_until_{Clock::time_point{}};
  std::atomic<int> used_permille_{0};  // of one processor, by all threads
};

}  // namespace server::net
