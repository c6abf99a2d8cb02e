// SPDX-License-Identifier: MIT
//
// RdbDecoders: threads that decode batches of a snapshot's keys, in no defined order.
//
// Invariants: the size of the queue is limited, in bytes and in batches. If the queue is full,
// submit() decodes on the caller's thread. After the first error, the batches that are not decoded
// yet are dropped. The destructor waits for all threads.
// Thread safety: one thread at a time may use an object. But an RdbDecoders calls `decode` on
// several threads at the same time, so `decode` must be thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "core/result.h"
#include "persistence/bytes/raw_bytes.h"
#include "persistence/rdb/rdb_entry.h"

namespace persistence {

// RdbBatch: the bytes of consecutive keys, each from its name to the end of its value.
struct RdbBatch {
  struct Key {
    uint8_t type = 0;
    RdbKeyAttributes attributes;
  };
  RawBytes bytes;
  std::vector<Key> keys;
};

class RdbDecoders {
 public:
  using Decode = std::function<core::Result<>(const RdbBatch&)>;

  // Starts the threads. REQUIRES: helper_count is at least 1. Objects that `decode` uses must
  // outlive the RdbDecoders.
  RdbDecoders(unsigned helper_count, Decode decode);
  ~RdbDecoders();
  RdbDecoders(const RdbDecoders&) = delete;
  RdbDecoders& operator=(const RdbDecoders&) = delete;

  // Returns an empty batch, which reuses the memory of an earlier batch if possible.
  RdbBatch empty_batch();
  // Submits a batch. Returns false if a batch has already failed.
  bool submit(RdbBatch batch);
  // Waits until all batches have been processed. If batches failed, returns the error of one batch.
  core::Result<> drain();

 private:
  void help();
  void decode_one(RdbBatch batch);
  bool is_full() const;

  const Decode decode_;
  std::mutex mutex_;
  // mutex_ guards the members from waiting_ to is_ending_.
  std::condition_variable changed_;
  std::deque<RdbBatch> waiting_;
  size_t waiting_bytes_ = 0;
  unsigned busy_count_ = 0;
  std::vector<RdbBatch> spare_;
  size_t spare_bytes_ = 0;
  std::optional<core::Error> error_;
  bool is_ending_ = false;

  std::vector<std::thread> helpers_;
};

}  // namespace persistence
