// SPDX-License-Identifier: MIT
//
// MemberTest: runs a Member of the sample topology and collects its actions.
//
// Thread safety: none.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "server/cluster/election/member.h"
#include "tests/server/cluster/sample_topology.h"

namespace server::cluster {

// Tests of a Member in the sample topology. In shard s1, node a leads at epoch 7 and node b is its
// replica. The clock starts at 100 s.
class MemberTest : public testing::Test {
 protected:
  static inline const std::string kA = id_of('a');
  static inline const std::string kB = id_of('b');
  static inline const std::string kC = id_of('c');
  static constexpr int64_t kSecondUs = 1'000'000;
  static inline const PermitTimes kTimes = PermitTimes::of_timeout(5 * kSecondUs);
  static constexpr int64_t kStartUs = 100 * kSecondUs;

  void be(const std::string& id, std::string kept_shard = "", uint64_t kept_epoch = 0) {
    member_.emplace(
        MemberOptions{id, kTimes, now_us_, std::move(kept_shard), kept_epoch, is_same_boot_});
    facts_ = {true, {7, 1000}, {}};
    facts_.present_until_us = INT64_MAX;
    member_->tick(now_us_, facts_);
    actions_.clear();
  }

  // Takes the member's actions, and executes KeepEpoch and Promote unless the test prevents that.
  void run() {
    for (bool is_busy = true; is_busy;) {
      is_busy = false;
      for (auto& action : member_->take_actions()) {
        is_busy = true;
        actions_.push_back(action);
        if (const auto* keep = std::get_if<KeepEpoch>(&action); keep != nullptr && keeps_) {
          member_->epoch_kept(now_us_, keep->shard, keep->epoch);
        }
        if (const auto* promote = std::get_if<Promote>(&action); promote != nullptr && promotes_) {
          facts_.led_epoch = promote->epoch;
          member_->tick(now_us_, facts_);
        }
      }
    }
  }
  void see(const Topology& topology, uint64_t revision) {
    member_->topology_seen(now_us_, {topology, revision});
    run();
  }
  void see_alive(IdSet ids) {
    member_->alive_seen(now_us_, std::move(ids));
    run();
  }
  void pass(int64_t us) {
    now_us_ += us;
    member_->tick(now_us_, facts_);
    run();
  }
  template <class Action>
  std::vector<Action> all() const {
    std::vector<Action> found;
    for (const auto& action : actions_) {
      if (const auto* one = std::get_if<Action>(&action)) found.push_back(*one);
    }
    return found;
  }
  template <class Action>
  Action last() const {
    const auto found = all<Action>();
    EXPECT_FALSE(found.empty());
    return found.empty() ? Action{} : found.back();
  }
  void confirm() {
    member_->topology_read(now_us_, last<ReadTopology>().call, ReadOutcome::kUnchanged);
    run();
  }
  void commit(uint64_t revision) {
    member_->topology_changed(now_us_, last<ChangeTopology>().call, ChangeOutcome::kCommitted,
                              revision);
    run();
  }

  // Reports that no write runs after the member's newest HoldWrites.
  void writes_held(uint64_t offset) {
    run();
    member_->writes_held(now_us_, last<HoldWrites>().handover, offset);
  }
  // Reports that etcd has refused the newest change of the topology.
  void refuse() {
    member_->topology_changed(now_us_, last<ChangeTopology>().call, ChangeOutcome::kRefused);
    run();
  }

  // Makes the member act as node a, which leads at epoch 8 and serves. Its replica b is online.
  void lead() {
    be(kA);
    see(sample_topology(), 10);
    facts_.replicas = {{kB, 1000, true}};
    commit(11);
    pass(kTimes.wait_us);
    confirm();
    ASSERT_EQ(member_->service(now_us_), MemberService::kServes);
  }
  // Makes the member act as node b, which is a replica and may take over the shard.
  void replicate() {
    be(kB);
    see(sample_topology(), 10);
    see_alive({kA, kB, kC});
    pass(kTimes.wait_us);
  }

  // Reports to the member that it receives its leader's stream, and then that it no longer receives
  // the stream.
  void connect() {
    facts_.hears_leader = true;
    pass(0);
    facts_.hears_leader = false;
  }

  std::optional<Member> member_;
  ReplicationFacts facts_;
  int64_t now_us_ = kStartUs;
  bool is_same_boot_ = true;
  bool keeps_ = true;
  bool promotes_ = true;  // true: a promotion takes effect at once
  std::vector<MemberAction> actions_;
};

}  // namespace server::cluster
