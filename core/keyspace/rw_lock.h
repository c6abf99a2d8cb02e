// SPDX-License-Identifier: MIT
//
// RwLock: a reader/writer lock that lets a waiting writer in before new readers. std::shared_mutex
// on Linux prefers readers, so one hot key read by all threads could keep its writers out forever.
//
// Invariants: not recursive: a thread that holds it in any mode must not take it again.
// Thread safety: all members may be called from any thread.
#pragma once

#include <pthread.h>

namespace core::keyspace {

class RwLock {
 public:
  RwLock() {
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(&lock_, &attributes);
    pthread_rwlockattr_destroy(&attributes);
  }
  ~RwLock() { pthread_rwlock_destroy(&lock_); }
  RwLock(const RwLock&) = delete;
  RwLock& operator=(const RwLock&) = delete;

  void lock() { pthread_rwlock_wrlock(&lock_); }
  void lock_shared() { pthread_rwlock_rdlock(&lock_); }
  void unlock() { pthread_rwlock_unlock(&lock_); }

 private:
  pthread_rwlock_t lock_;
};

}  // namespace core::keyspace
