// SPDX-License-Identifier: MIT
//
// RdbDecoders: threads that decode batches of a snapshot's keys, in no order.
//
// Invariants: what waits is bounded, in bytes and batches: beyond that submit() decodes on the
// caller's thread. After the first error batches are dropped. The destructor waits for all threads.
// Thread safety: one caller; `decode` is called by several threads at once.
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

// Keys one behind the other, each from its name to the end of its value.
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

  // REQUIRES: at least one helper. What `decode` uses must outlive it.
  RdbDecoders(unsigned helper_count, Decode decode);
  ~RdbDecoders();
  RdbDecoders(const RdbDecoders&) = delete;
  RdbDecoders& operator=(const RdbDecoders&) = delete;

  // With memory that an earlier one has left, if there is some.
  RdbBatch empty_batch();
  // False when some batch has failed already.
  bool submit(RdbBatch batch);
  // Returns when all batches have been decoded, with an error of one of them if there was any.
  core::Result<> drain();

 private:
  void help();
  void decode_one(RdbBatch batch);
  bool is_full() const;

  const Decode decode_;
  std::mutex mutex_;
  // All below: under mutex_.
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
