// SPDX-License-Identifier: MIT
#include "persistence/rdb/rdb_decoders.h"

#include <pthread.h>

#include <new>
#include <system_error>
#include <utility>

#include "core/memory/thread_heap.h"

namespace persistence {
namespace {

constexpr size_t kWaitingBytesMax = size_t{32} << 20;
constexpr size_t kWaitingForEachHelper = 8;
// Limit on the memory of finished batches that is kept for later batches. Memory beyond this limit
// is freed. The limit equals the maximum size of the queue. With a lower limit the system would
// have to provide new pages for many batches.
constexpr size_t kSpareBytesMax = kWaitingBytesMax;

core::Result<> decode_safely(const RdbDecoders::Decode& decode, const RdbBatch& batch) {
  try {
    return decode(batch);
  } catch (const std::bad_alloc&) {
    return core::Error{"OOM not enough memory to read a snapshot", core::ErrorCode::kOutOfMemory};
  }
}

}  // namespace

RdbDecoders::RdbDecoders(unsigned helper_count, Decode decode) : decode_(std::move(decode)) {
  try {
    for (unsigned i = 0; i < helper_count; ++i) {
      helpers_.emplace_back([this] { help(); });
      ::pthread_setname_np(helpers_.back().native_handle(), "load");
    }
  } catch (const std::system_error&) {
    // If the system allows no more threads, the existing threads and the caller do the work.
  }
}

RdbDecoders::~RdbDecoders() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

RdbBatch RdbDecoders::empty_batch() {
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) return {};
  RdbBatch batch = std::move(spare_.back());
  spare_.pop_back();
  spare_bytes_ -= batch.bytes.capacity();
  return batch;
}

bool RdbDecoders::is_full() const {
  return waiting_.size() >= kWaitingForEachHelper * helpers_.size() ||
         waiting_bytes_ >= kWaitingBytesMax;
}

bool RdbDecoders::submit(RdbBatch batch) {
  std::unique_lock lock(mutex_);
  if (error_) return false;
  if (!is_full()) {
    waiting_bytes_ += batch.bytes.size();
    waiting_.push_back(std::move(batch));
    lock.unlock();
    changed_.notify_one();
    return true;
  }
  ++busy_count_;
  lock.unlock();
  decode_one(std::move(batch));
  return true;
}

void RdbDecoders::decode_one(RdbBatch batch) {
  auto decoded = decode_safely(decode_, batch);
  batch.bytes.clear();
  batch.keys.clear();
  const std::lock_guard lock(mutex_);
  if (!decoded && !error_) {
    error_ = decoded.error();
    waiting_.clear();
    waiting_bytes_ = 0;
  }
  const bool is_kept = spare_bytes_ + batch.bytes.capacity() <= kSpareBytesMax &&
                       spare_.size() < kWaitingForEachHelper * helpers_.size();
  if (is_kept) {
    spare_bytes_ += batch.bytes.capacity();
    spare_.push_back(std::move(batch));
  }
  --busy_count_;
  if (busy_count_ == 0 && waiting_.empty()) changed_.notify_all();
}

void RdbDecoders::help() {
  core::count_thread_heap();
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_ending_ || !waiting_.empty(); });
    if (is_ending_) return;
    RdbBatch batch = std::move(waiting_.front());
    waiting_.pop_front();
    waiting_bytes_ -= batch.bytes.size();
    ++busy_count_;
    lock.unlock();
    decode_one(std::move(batch));
  }
}

core::Result<> RdbDecoders::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return busy_count_ == 0 && waiting_.empty(); });
  if (error_) return *error_;
  return {};
}

}  // namespace persistence
