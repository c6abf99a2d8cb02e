// SPDX-License-Identifier: MIT
#include "core/keyspace/rw_lock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <vector>

namespace core::keyspace {
namespace {

using namespace std::chrono_literals;

TEST(RwLockTest, ReadersShareTheLock) {
  RwLock lock;
  lock.lock_shared();
  std::async(std::launch::async, [&] {
    lock.lock_shared();
    lock.unlock_shared();
  }).get();
  lock.unlock_shared();
  lock.lock();
  lock.unlock();
}

TEST(RwLockTest, EndedWritesAreCounted) {
  RwLock lock;
  const auto count_of_reader = [&lock] {
    lock.lock_shared();
    const uint64_t count = lock.write_count();
    lock.unlock_shared();
    return count;
  };
  EXPECT_EQ(count_of_reader(), 0U);
  lock.lock();
  EXPECT_EQ(lock.write_count(), 0U);
  lock.unlock();
  EXPECT_EQ(count_of_reader(), 1U);
  EXPECT_EQ(count_of_reader(), 1U);
  ASSERT_TRUE(lock.try_lock());
  lock.unlock();
  EXPECT_EQ(count_of_reader(), 2U);
}

TEST(RwLockTest, WriterExcludesAllOthers) {
  RwLock lock;
  lock.lock();
  auto reader = std::async(std::launch::async, [&] {
    lock.lock_shared();
    lock.unlock_shared();
  });
  auto writer = std::async(std::launch::async, [&] {
    lock.lock();
    lock.unlock();
  });
  EXPECT_EQ(reader.wait_for(20ms), std::future_status::timeout);
  EXPECT_EQ(writer.wait_for(0ms), std::future_status::timeout);
  lock.unlock();
  reader.get();
  writer.get();
}

// A waiting writer precedes new readers. Otherwise the readers of a hot key would starve it.
TEST(RwLockTest, WaitingWriterPrecedesNewReaders) {
  RwLock lock;
  std::atomic<bool> stop{false};
  std::vector<std::thread> readers;
  for (int i = 0; i < 4; ++i) {
    readers.emplace_back([&] {
      while (!stop) {
        lock.lock_shared();
        lock.unlock_shared();
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    lock.lock();
    lock.unlock();
  }
  stop = true;
  for (auto& reader : readers) reader.join();
}

TEST(RwLockTest, GuardedDataIsNeverSeenHalfChanged) {
  RwLock lock;
  int first = 0;
  int second = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 5000; ++round) {
        lock.lock();
        ++first;
        ++second;
        lock.unlock();
      }
    });
    threads.emplace_back([&] {
      for (int round = 0; round < 5000; ++round) {
        lock.lock_shared();
        ASSERT_EQ(first, second);
        lock.unlock_shared();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(first, 10000);
}

}  // namespace
}  // namespace core::keyspace
