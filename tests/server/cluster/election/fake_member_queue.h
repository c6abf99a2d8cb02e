// SPDX-License-Identifier: MIT
//
// FakeMemberQueue: a queue with a Member in the sample topology. The queue runs its tasks when the
// test calls run().
//
// Thread safety: none.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/cluster/election/member.h"
#include "server/cluster/election/member_queue.h"
#include "server/cluster/election/member_waits.h"
#include "tests/server/cluster/sample_topology.h"

namespace server::cluster {

class FakeMemberQueue final : public MemberQueue {
 public:
  static constexpr int64_t kStartedUs = 1'000'000'000;

  explicit FakeMemberQueue(std::string id)
      : member({std::move(id), PermitTimes::of_timeout(5'000'000), kStartedUs}) {
    facts.present_until_us = INT64_MAX;
    member.tick(kStartedUs, facts);
    member.topology_seen(kStartedUs, {sample_topology(), 10});
    member.epoch_kept(kStartedUs, "s1", 7);
  }

  void post(std::function<void(Member&, int64_t)> task) override {
    tasks.push_back(std::move(task));
  }
  void await(std::function<bool(const Member&, int64_t)> condition, int64_t limit_us,
             std::function<void(bool)> done) override {
    waits.add(std::move(condition), now_us + limit_us, std::move(done));
  }
  void ask_leader(std::vector<std::string> words,
                  std::function<void(const std::optional<std::string>&)> done) override {
    asked = std::move(words);
    done(leader_says);
  }
  // Makes the server the leader in the shard's present epoch.
  void promote() {
    facts.led_epoch = member.shard()->epoch;
    member.tick(now_us, facts);
  }
  // Answers the member's reads of the topology with "unchanged", which confirms that the member
  // leads.
  void confirm() {
    for (const MemberAction& action : member.take_actions()) {
      const auto* read = std::get_if<ReadTopology>(&action);
      if (read != nullptr) member.topology_read(now_us, read->call, ReadOutcome::kUnchanged);
    }
  }
  void run() {
    for (; !tasks.empty(); tasks.pop_front()) tasks.front()(member, now_us);
    waits.step(member, now_us);
  }

  ReplicationFacts facts{true, {7, 1000}, {}};
  Member member;
  int64_t now_us = kStartedUs + 60'000'000;
  std::deque<std::function<void(Member&, int64_t)>> tasks;
  MemberWaits waits;
  std::vector<std::string> asked;
  std::optional<std::string> leader_says;
};

}  // namespace server::cluster
