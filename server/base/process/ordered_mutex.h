// SPDX-License-Identifier: MIT
//
// OrderedMutex: a mutex with a rank in the server's lock order.
//
// Invariants: a thread that holds a mutex waits only for mutexes of a later LockRank. Debug builds
// assert this rule; a release build only uses a std::mutex. A thread must not lock a mutex that it
// already holds. try_lock() never waits, so the rule does not apply to it.
// Thread safety: any thread may lock an OrderedMutex, like a std::mutex.
// Source: docs/architecture.md, "Locks".
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace server {

// Ranks from the outermost to the innermost mutex. The order also has two locks whose rank debug
// builds do not assert. They come between kLogSwitch and kChildEnd: first the keyspace's stripes,
// then the mutex of CONFIG SET. While a mutex outside this order is held, no mutex of this order
// may be locked.
enum class LockRank : uint8_t {
  kShutdown,   // the mutex of Shutdown, which guards the state of the shutdown
  kStream,     // the mutex of Replication that keeps the data and their stream position consistent
  kLogSwitch,  // the mutex of LogSwitch that serializes opening and closing of the append log
  kChildEnd,   // the mutex of Saves that serializes the handling of an ended child process
  kSaves,      // the mutex of SaveSlot, which guards the saving child and its statistics
  kReplicaController,  // the mutex of ReplicaController, which guards the leader's address
  kInsyncAcks,         // the mutex of InsyncAcks, which serializes its updates
  kLeader,             // the mutex of Leader, which guards the list of replicas
  kRole,  // the mutex of StreamFeed, which guards the role and the link from journal to backlog
  kStreamIds,  // the mutex of StreamIds, which guards the replication ids
  kCount,
};

// The ranks of the mutexes that this thread holds.
class HeldLocks {
 public:
  // Returns whether the thread may wait for a mutex of this rank.
  bool may_wait_for(LockRank rank) const {
    for (size_t i = static_cast<size_t>(rank); i < counts_.size(); ++i) {
      if (counts_[i] != 0) return false;
    }
    return true;
  }
  bool has(LockRank rank) const { return counts_[static_cast<size_t>(rank)] != 0; }
  void add(LockRank rank) { ++counts_[static_cast<size_t>(rank)]; }
  void remove(LockRank rank) { --counts_[static_cast<size_t>(rank)]; }

 private:
  std::array<uint8_t, static_cast<size_t>(LockRank::kCount)> counts_{};
};

#ifdef NDEBUG
class OrderedMutex : public std::mutex {
 public:
  explicit OrderedMutex(LockRank /*rank*/) {}
  // Always returns true, because release builds do not record which mutexes a thread holds. For
  // assertions only.
  static bool is_held() { return true; }
};
#else
inline HeldLocks& held_locks() {
  thread_local HeldLocks held;
  return held;
}

class OrderedMutex {
 public:
  explicit OrderedMutex(LockRank rank) : rank_(rank) {}
  void lock() {
    assert(held_locks().may_wait_for(rank_));
    mutex_.lock();
    held_locks().add(rank_);
  }
  bool try_lock() {
    const bool is_locked = mutex_.try_lock();
    if (is_locked) held_locks().add(rank_);
    return is_locked;
  }
  void unlock() {
    held_locks().remove(rank_);
    mutex_.unlock();
  }
  // Returns whether this thread holds this mutex or another mutex of the same rank.
  bool is_held() const { return held_locks().has(rank_); }

 private:
  std::mutex mutex_;
  const LockRank rank_;
};
#endif

}  // namespace server
