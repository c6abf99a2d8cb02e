// SPDX-License-Identifier: MIT
#include "server/cluster/election/election.h"

#include <algorithm>
#include <utility>

namespace server::cluster {
namespace {

constexpr int64_t kAnswersUs = 300'000;
constexpr int64_t kRankUs = 300'000;
// The time in which a peer with more history learns of the election and campaigns. The peer reads
// the live nodes from etcd. The first attempt may fail after a second, and the next one follows
// after 200 ms. The peer then waits 300 ms, in case the leader restores its key in etcd.
constexpr int64_t kLearnsUs = 2'000'000;

}  // namespace

void Election::begin(uint64_t call, std::vector<std::string> peers, int64_t now_us) {
  state_ = State::kAsking;
  call_ = call;
  unanswered_ = std::move(peers);
  answers_.clear();
  due_us_ = now_us + kAnswersUs;
}

void Election::answered(uint64_t call, std::string_view peer, HistoryPosition position) {
  if (state_ != State::kAsking || call != call_) return;
  if (std::erase(unanswered_, peer) != 0) answers_.push_back({std::string(peer), position});
}

void Election::failed(uint64_t call, std::string_view peer) {
  if (state_ == State::kAsking && call == call_) std::erase(unanswered_, peer);
}

int64_t Election::wait_us(HistoryPosition own) const {
  const auto rank = std::ranges::count_if(answers_, [&](const Answer& answer) {
    return answer.position > own || (answer.position == own && answer.peer < own_id_);
  });
  const bool lacks_writes =
      std::ranges::any_of(answers_, [&](const Answer& answer) { return answer.position > own; });
  return rank * kRankUs + (lacks_writes ? kLearnsUs : 0);
}

bool Election::is_due(HistoryPosition own, int64_t now_us) {
  if (state_ == State::kAsking && (unanswered_.empty() || now_us >= due_us_)) {
    state_ = State::kWaits;
    due_us_ = now_us + wait_us(own);
  }
  if (state_ != State::kWaits || now_us < due_us_) return false;
  state_ = State::kIdle;
  return true;
}

}  // namespace server::cluster
