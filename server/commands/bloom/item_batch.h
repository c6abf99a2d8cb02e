// SPDX-License-Identifier: MIT
//
// ItemBatch: room for the hashes and answers of one command with many items, reused by all the
// commands of a thread.
//
// Invariants: hashes, outcomes and found are as long as the items of the last hash(), until
// release_large().
// Thread safety: of_thread() gives each thread its own.
#pragma once

#include <boost/container/vector.hpp>
#include <span>

#include "core/bloom/hash.h"
#include "core/bloom/scalable_filter.h"
#include "core/release_storage.h"
#include "server/dispatch/command.h"

namespace server {

class ItemBatch {
 public:
  static ItemBatch& of_thread() {
    thread_local ItemBatch batch;
    return batch;
  }

  void hash(const core::bloom::ItemHasher& hasher, Arguments items) {
    resize(hashes_, items.size());
    for (size_t i = 0; i < items.size(); ++i) hashes_[i] = hasher(items[i]);
  }

  std::span<const core::bloom::ItemHash> hashes() const { return {hashes_.data(), hashes_.size()}; }

  std::span<core::bloom::AddOutcome> outcomes() {
    resize(outcomes_, hashes_.size());
    return {outcomes_.data(), outcomes_.size()};
  }

  std::span<bool> found() {
    resize(found_, hashes_.size());
    return {found_.data(), found_.size()};
  }

  // To be called when the command is done: one huge command must not hold its megabytes until the
  // thread ends.
  void release_large() {
    release_if_large(hashes_);
    release_if_large(outcomes_);
    release_if_large(found_);
  }

 private:
  static constexpr size_t kKeptItemsMax = 16384;

  // Boost's vector holds real bools and can grow without writing to the new elements.
  template <class T>
  static void resize(boost::container::vector<T>& values, size_t size) {
    values.resize(size, boost::container::default_init);
  }

  template <class T>
  static void release_if_large(boost::container::vector<T>& values) {
    if (values.capacity() > kKeptItemsMax) core::release_storage(values);
  }

  boost::container::vector<core::bloom::ItemHash> hashes_;
  boost::container::vector<core::bloom::AddOutcome> outcomes_;
  boost::container::vector<bool> found_;
};

}  // namespace server
