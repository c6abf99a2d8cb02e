// SPDX-License-Identifier: MIT
#include "server/cluster/election/topology_calls.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace server::cluster {
namespace {

constexpr size_t kReadsMax = 8;

}  // namespace

void TopologyCalls::read(int64_t now_us, uint64_t led_epoch, uint64_t known_revision) {
  // If too many reads are pending, the oldest one is dropped, because an answer to it comes too
  // late to be useful.
  if (reads_.size() == kReadsMax) reads_.erase(reads_.begin());
  reads_.push_back({next_call(), now_us, led_epoch, known_revision});
  actions_.emplace_back(ReadTopology{last_call_, known_revision});
}

std::optional<TopologyCalls::Read> TopologyCalls::take_read(uint64_t call) {
  const auto found = std::ranges::find(reads_, call, &Read::call);
  if (found == reads_.end()) return std::nullopt;
  const Read read = *found;
  reads_.erase(found);
  return read;
}

void TopologyCalls::change(ChangeTopology change) {
  assert(!change_);
  change.call = next_call();
  actions_.emplace_back(change);
  change_ = Change{std::move(change)};
}

std::optional<ChangeTopology> TopologyCalls::answered(uint64_t call) const {
  if (!change_ || change_->request.call != call) return std::nullopt;
  return change_->request;
}

void TopologyCalls::unknown(int64_t now_us) {
  if (!change_) return;
  change_->is_unknown = true;
  change_->read_again_us = now_us;
}

void TopologyCalls::unchanged(uint64_t revision) {
  if (!change_ || !change_->is_unknown || change_->request.revision != revision) return;
  change_->is_unknown = false;
  change_->request.call = next_call();
  actions_.emplace_back(change_->request);
}

void TopologyCalls::absent() {
  if (change_ && change_->request.revision != 0) return change_.reset();
  unchanged(0);
}

void TopologyCalls::seen(uint64_t revision) {
  if (change_ && change_->request.revision < revision) change_.reset();
}

void TopologyCalls::step(int64_t now_us, uint64_t led_epoch, uint64_t known_revision) {
  if (!change_ || !change_->is_unknown || now_us < change_->read_again_us) return;
  change_->read_again_us = now_us + ask_us_;
  read(now_us, led_epoch, known_revision);
}

}  // namespace server::cluster
