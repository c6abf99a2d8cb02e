// SPDX-License-Identifier: MIT
#include "core/keyspace/expiry_index.h"

#include <algorithm>
#include <utility>

#include "core/memory/release_storage.h"

namespace core::keyspace {

void ExpiryIndex::add(int64_t deadline_ms, uint64_t hash) {
  if (records_.size() == records_.capacity()) records_.reserve(grown_capacity());
  records_.push_back({deadline_ms, hash});
  sift_up(records_.size() - 1);
  publish_next();
}

std::optional<uint64_t> ExpiryIndex::take_due(int64_t now_ms) {
  if (records_.empty() || records_.front().deadline_ms >= now_ms) return std::nullopt;
  const uint64_t hash = records_.front().hash;
  remove(0);
  return hash;
}

void ExpiryIndex::clear() {
  core::release_storage(records_);
  purge_at_ = 0;
  needed_in_a_row_ = 0;
  publish_next();
}

void ExpiryIndex::swap(ExpiryIndex& other) {
  records_.swap(other.records_);
  std::swap(purge_at_, other.purge_at_);
  std::swap(needed_in_a_row_, other.needed_in_a_row_);
  publish_next();
  other.publish_next();
}

void ExpiryIndex::remove(size_t at) {
  records_[at] = records_.back();
  records_.pop_back();
  if (at < records_.size()) {
    sift_down(at);
    sift_up(at);
  }
  publish_next();
  constexpr size_t kSmallCapacity = 64;
  if (records_.capacity() > kSmallCapacity && records_.size() < records_.capacity() / 4) {
    std::vector<Record> fewer;
    fewer.reserve(grown_capacity());
    fewer.assign(records_.begin(), records_.end());
    records_.swap(fewer);
  }
}

void ExpiryIndex::sift_up(size_t at) {
  const Record record = records_[at];
  while (at > 0) {
    const size_t parent = (at - 1) / kChildren;
    if (records_[parent].deadline_ms <= record.deadline_ms) break;
    records_[at] = records_[parent];
    at = parent;
  }
  records_[at] = record;
}

void ExpiryIndex::sift_down(size_t at) {
  const Record record = records_[at];
  for (;;) {
    const size_t first = at * kChildren + 1;
    if (first >= records_.size()) break;
    const size_t end = std::min(first + kChildren, records_.size());
    size_t least = first;
    for (size_t child = first + 1; child < end; ++child) {
      if (records_[child].deadline_ms < records_[least].deadline_ms) least = child;
    }
    if (record.deadline_ms <= records_[least].deadline_ms) break;
    records_[at] = records_[least];
    at = least;
  }
  records_[at] = record;
}

void ExpiryIndex::sort_and_unite() {
  std::ranges::sort(records_, {}, [](const Record& record) {
    return std::pair(record.hash, record.deadline_ms);
  });
  const auto is_same = [](const Record& one, const Record& two) { return one.hash == two.hash; };
  records_.erase(std::unique(records_.begin(), records_.end(), is_same), records_.end());
}

void ExpiryIndex::build() {
  records_.shrink_to_fit();
  for (size_t at = records_.size() / kChildren + 1; at > 0; --at) {
    if (at - 1 < records_.size()) sift_down(at - 1);
  }
  publish_next();
}

void ExpiryIndex::publish_next() {
  const int64_t next_ms = records_.empty() ? kNever : records_.front().deadline_ms;
  if (next_ms != this->next_ms()) next_ms_.store(next_ms, std::memory_order_relaxed);
}

}  // namespace core::keyspace
