// SPDX-License-Identifier: MIT
//
// ItemBatch: buffers for the hashes and answers of one command with many items. Each thread reuses
// its own ItemBatch. EarlyHash and EarlyBatch hold hashes that are computed before the key is
// locked.
//
// Invariants: hashes, outcomes, removals and found have one element per item of the last call of
// hash(), until release_large() is called.
// Thread safety: of_thread() gives each thread its own ItemBatch.
#pragma once

#include <array>
#include <boost/container/vector.hpp>
#include <optional>
#include <span>
#include <string_view>

#include "core/bloom/hash.h"
#include "core/bloom/scalable_filter.h"
#include "core/memory/release_storage.h"
#include "server/dispatch/context.h"

namespace server {

class ItemBatch {
 public:
  static ItemBatch& of_thread() {
    thread_local ItemBatch batch;
    return batch;
  }

  void hash(const core::bloom::ItemHasher& hasher, Arguments items) {
    resize(hashes_, items.size());
    hasher(items, hashes_);
  }

  std::span<const core::bloom::ItemHash> hashes() const { return {hashes_.data(), hashes_.size()}; }

  std::span<core::bloom::AddOutcome> outcomes() { return one_per_hash(outcomes_); }
  std::span<core::bloom::Removal> removals() { return one_per_hash(removals_); }
  std::span<bool> found() { return one_per_hash(found_); }

  // Frees buffers for more than kKeptItemsMax items, which the thread would otherwise keep. Must be
  // called after each command.
  void release_large() {
    release_if_large(hashes_);
    release_if_large(outcomes_);
    release_if_large(removals_);
    release_if_large(found_);
  }

 private:
  static constexpr size_t kKeptItemsMax = 16384;

  // Boost's vector stores bool elements as bytes and can grow without initializing new elements.
  template <class T>
  static void resize(boost::container::vector<T>& values, size_t size) {
    values.resize(size, boost::container::default_init);
  }

  template <class T>
  std::span<T> one_per_hash(boost::container::vector<T>& values) const {
    resize(values, hashes_.size());
    return {values.data(), values.size()};
  }

  template <class T>
  static void release_if_large(boost::container::vector<T>& values) {
    if (values.capacity() > kKeptItemsMax) core::release_storage(values);
  }

  boost::container::vector<core::bloom::ItemHash> hashes_;
  boost::container::vector<core::bloom::AddOutcome> outcomes_;
  boost::container::vector<core::bloom::Removal> removals_;
  boost::container::vector<bool> found_;
};

// Before the key is locked, items are hashed for the configured layout of new filters. If the key's
// filter has another layout, the items are hashed again under the lock.

// Returns the layout for which items are hashed before the filter is known; nullopt if the hash of
// the configured layout depends on the filter.
inline std::optional<core::bloom::LayoutId> guessed_layout(const Context& ctx) {
  const core::bloom::LayoutId layout = BloomDefaults(ctx.config()).layout();
  if (!core::bloom::layout_row(layout).has_fixed_hash) return std::nullopt;
  return layout;
}

// EarlyHash: the hash of the item at argument 2, computed before the key is locked.
class EarlyHash {
 public:
  explicit EarlyHash(const Context& ctx) : item_(ctx.args[2]) {
    if (const Preview& preview = ctx.request.preview; preview.kind != 0) {
      guess_ = static_cast<core::bloom::LayoutId>(preview.kind);
      hash_ = {preview.words[0], preview.words[1]};
    } else if ((guess_ = guessed_layout(ctx))) {
      hash_ = core::bloom::ItemHasher(*guess_)(item_);
    }
  }
  core::bloom::ItemHash for_filter(const core::bloom::ScalableFilter& filter) const {
    return guess_ == filter.layout() ? hash_ : filter.hasher()(item_);
  }

 private:
  std::string_view item_;
  std::optional<core::bloom::LayoutId> guess_;
  core::bloom::ItemHash hash_;
};

// EarlyBatch: the hashes of a command's items, computed before a key is locked. They are computed
// again for each filter that hashes differently from the filter before it.
class EarlyBatch {
 public:
  EarlyBatch(const Context& ctx, Arguments items) : batch_(ItemBatch::of_thread()), items_(items) {
    if (const auto guess = guessed_layout(ctx)) hash(core::bloom::ItemHasher(*guess));
  }
  ~EarlyBatch() { batch_.release_large(); }
  EarlyBatch(const EarlyBatch&) = delete;
  EarlyBatch& operator=(const EarlyBatch&) = delete;

  ItemBatch& for_filter(const core::bloom::ScalableFilter& filter) {
    const core::bloom::ItemHasher hasher = filter.hasher();
    if (hasher_ != hasher) hash(hasher);
    return batch_;
  }
  // Returns the first item's hash if the items were hashed with this filter's hash function;
  // otherwise null.
  const core::bloom::ItemHash* at_hand(const core::bloom::ScalableFilter& filter) const {
    return hasher_ == filter.hasher() ? batch_.hashes().data() : nullptr;
  }

 private:
  void hash(const core::bloom::ItemHasher& hasher) {
    batch_.hash(hasher, items_);
    hasher_ = hasher;
  }

  ItemBatch& batch_;
  Arguments items_;
  std::optional<core::bloom::ItemHasher> hasher_;  // the hasher that made the hashes in batch_
};

// Prefetches the cache lines of the filter's bits for the item in argument 2 of each request. If
// all filters of this layout hash items in the same way, stores the hash and the layout in the
// preview.
inline void prefetch_items(const Entry& entry, std::span<Request* const> requests) {
  if (!entry.is_filter()) return;
  const core::bloom::ScalableFilter& filter = entry.filter();
  const core::bloom::ItemHasher hasher = filter.hasher();
  const core::bloom::LayoutId layout = filter.layout();
  const bool keeps = core::bloom::layout_row(layout).has_fixed_hash;
  std::array<core::bloom::ItemHash, kLookAheadMax> hashes;
  for (size_t i = 0; i < requests.size(); ++i) {
    Request& request = *requests[i];
    hashes[i] = hasher(request.args[2]);
    if (keeps)
      request.preview = {static_cast<uint64_t>(layout), {hashes[i].first, hashes[i].second}};
  }
  filter.prefetch(std::span(hashes).first(requests.size()));
}

}  // namespace server
