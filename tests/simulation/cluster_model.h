// SPDX-License-Identifier: MIT
//
// ClusterModel: simulates Members, their data and an etcd in virtual time, with faults drawn from a
// seed. The model checks the invariants at every event. A final period without faults shows that
// everything works again.
//
// A node's clock runs up to 4.5 % fast or slow. A restarted node has the data and the epoch that
// were synced, and an old topology. Calls are lost, late, or executed long after their timeout.
//
// Thread safety: none. The result of a run depends on its options and seed only.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <queue>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "server/cluster/election/member.h"
#include "tests/simulation/etcd_model.h"

namespace simulation {

// Units of virtual time, in microseconds.
inline constexpr int64_t kMs = 1000;
inline constexpr int64_t kSecond = 1000 * kMs;

// Each mutation removes one part of the cluster's design. The tests check that some run then
// violates an invariant. The comments describe the wrong behaviour.
enum class Mutation : uint8_t {
  kNone,
  kNoWait,                // a new leader does not wait until the former leader's permit has ended
  kPermitFromReply,       // a permit's time is counted from etcd's answer, not from the request
  kLeaseIsPermit,         // a leader serves without a permit while its lease is kept alive
  kStaleReads,            // a permit is confirmed by an etcd member that lags
  kSilenceIsPromise,      // a silent member counts as if it had promised to start no takeover
  kForgetsEpoch,          // a node loses its stored epoch when it restarts
  kSuccessorNeverWaits,   // a new leader assumes that the former leader has resigned
  kPromiseBlocksNothing,  // promises not to take over end at once, so leaders change needlessly
  kAbsentMayLead,         // a leader serves without a key alive/<id> in etcd
  kLeavesLate,            // a replica counts as in sync for seconds after its link ends
  kRevokesEarly,          // a leader that shuts down revokes its lease before its data are safe
  kIgnoresRewind,         // a node ignores a restored topology with a lower revision than its own
  kLeadsEmpty,            // a leader that lost its disk claims to have all data
  kMovedWhileNamed,       // a member that is about to lead redirects clients
  kServesBeforeRole,      // a leader acknowledges before its server has the role of a leader
  kThreadLoads,           // the thread that keeps the lease waits while the node loads a snapshot
  kFirstRegistered,       // a restarted leader does not report its position
  kAsksNoMember,          // a leader assumes that no power cut has shortened its log
  kCandidateWithoutLog,   // a member ignores that its append log fails
  kLeaderWithoutLog,      // a leader ignores that its append log fails
  kLearnsLate,            // a member that is asked for its position reads nothing from etcd
  kNamesAnySuccessor,     // a leader does not learn that the append log of a replica fails
  kAcknowledgesEarly,     // replies to writes do not wait for the members in sync
};

// The kinds of faults that a run injects.
enum class Faults : uint8_t {
  // Faults of all kinds, drawn from the seed.
  kDrawn,
  // The leader and one replica lose their connections to etcd, and the third member takes over.
  // Then the third member restarts without a connection to etcd, and is connected to the old
  // leader.
  kOldLeaderMeetsRestartedOne,
  // A second process starts with the id of the first leader. etcd always answers, and ends no lease
  // early. Data may be lost, because the two processes have different data.
  kTwins,
  // Whenever all members are in sync, either one member ends as after SIGTERM, or the leader dies
  // and may lose its disk. If the leader dies, acknowledged writes younger than kLagUs may be lost.
  // No other acknowledged write may be lost.
  kRollingRestarts,
  // etcd is restored from a backup that lacks some changes. Later the newest topology that a node
  // has stored is written to etcd, and the leader dies.
  kRestoredEtcd,
  // A power cut stops all nodes and etcd, and etcd restarts last. If no other member has more
  // entries on its disk than the leader, no entry on the leader's disk may be lost.
  kPowerCuts,
  // A power cut stops the leader, but not etcd. In shards with two members, it may stop both
  // members. The leader loses the unsynced end of its log. A log entry that a replica still has
  // must not be lost, even if the replica notices the leader's death late.
  kLeaderPowerCuts,
  // The append log of a replica may fail. Then the leader hands over, shuts down or crashes, or its
  // own log fails. Soon afterwards each leader must be a member whose log works. In shards with two
  // members, the leader only hands over or shuts down.
  kFailingLogs,
  // Replies to writes wait for the members in sync. Members fail one at a time, and no acknowledged
  // write is lost.
  kAckedWrites,
  // Replicas load snapshots slowly. The leader hands over while a replica loads. No lease must end
  // during the load.
  kSlowLoads,
  // No faults: leaders hand over repeatedly. No request of a client is redirected more than twice.
  kHandovers,
};

struct RunOptions {
  uint64_t seed = 0;
  int shards = 1;
  int members = 3;  // number of members of a shard
  int64_t seconds = 200;
  Mutation mutation = Mutation::kNone;
  Faults faults = Faults::kDrawn;
};

struct RunResult {
  std::string fault;  // empty if no invariant was violated
  int leaders = 0;    // number of times that a node began to lead
  int entries = 0;    // number of acknowledged writes
  int requests = 0;   // number of answered requests of the client
};

class ClusterModel {
 public:
  explicit ClusterModel(const RunOptions& options);
  ~ClusterModel();
  RunResult run();

 private:
  struct Node;
  struct ShardFacts;
  using Work = std::function<void()>;
  struct Event {
    int64_t at_us;
    uint64_t order;
    Work work;
    bool operator<(const Event& other) const {
      return std::tie(at_us, order) > std::tie(other.at_us, other.order);
    }
  };

  void at(int64_t delay_us, Work work);
  // Schedules work of a node. The work waits while the node is stopped, and is dropped if the node
  // has died or restarted.
  void at_node(Node& node, int64_t delay_us, std::function<void(Node&)> work);
  int64_t pick(int64_t from, int64_t to);
  bool chance(double probability);
  int64_t delay();
  bool is_cut(const Node& one, const Node* other) const;  // a null `other` means etcd

  void start(Node& node, bool is_first);
  void tick(Node& node);
  void look_at_role(Node& node);
  void change_role(Node& node, const std::string& leader, uint64_t epoch);
  void load(Node& node, const std::vector<uint64_t>& log, uint64_t epoch);
  void sync_disk(Node& node);
  void watch(Node& node);
  void take_news(Node& node, const TopologyVersion& topology,
                 const std::optional<server::cluster::IdSet>& alive, uint64_t version);
  void read_live_nodes(Node& node);
  void keep_lease(Node& node);
  void replicate(Node& node);
  void perform(Node& node);
  void perform_one(Node& node, const server::cluster::MemberAction& action);
  void call_etcd(Node& node, std::function<Work(Node&)> carry_out, Work unknown);
  void read(Node& node, const server::cluster::ReadTopology& read);
  void change(Node& node, const ChangeTopology& change);
  void ask_promise(Node& node, const server::cluster::AskPromise& ask);
  void ask_offset(Node& node, const server::cluster::AskOffset& ask);
  void answer_when_serving(Node& node, Node& former, uint64_t epoch);

  bool serves(const Node& node) const;
  void check(Node& node);
  void check_leases();
  void record_safe(ShardFacts& facts);
  void record_acknowledged(Node& leader);
  size_t common_length(const std::vector<uint64_t>& log, const std::vector<std::string>& ids) const;
  void write(ShardFacts& facts);
  void check_end();
  void fail(const std::string& fault);

  void schedule_faults();
  void old_leader_meets_restarted_one();
  void add_twin();
  void trouble_twins();
  void cut(const Node* one, const Node* other, int64_t from_us, int64_t until_us);
  void one_fault();
  void fault_at_node(Node& node, int64_t kind);
  void heal();
  void roll();
  const std::string& leader_id() const;  // leader of the first shard
  void restore_etcd();
  void recover_etcd();
  void end(Node& node);
  void close_list(Node& node, int64_t until_us);
  void die(Node& leader, ShardFacts& facts);
  static void clear_disk(Node& node);
  void come_back_empty(Node& leader);
  void lose_power(Node& node, int64_t off_us);
  void cut_power();
  void cut_power_of_leader();
  void fail_logs();
  void fail_log(Node& node);
  void fail_one_member();
  void end_leader_after_join(ShardFacts& facts, int64_t until_us, bool has_left = false);
  void load_slowly();
  void hand_over_often();
  // Makes the model's client send its request to this node, after `moved` redirections.
  void request(Node& node, int moved);

  // Seconds without faults at the end of every run.
  static constexpr int64_t kQuietSeconds = 40;
  // A member that has just joined the list of members in sync may lack writes of the last kLagUs
  // microseconds.
  static constexpr int64_t kLagUs = 3'000'000;

  const RunOptions options_;
  std::mt19937_64 random_;
  int64_t now_us_ = 1'000'000'000;
  int64_t end_us_ = 0;
  uint64_t order_ = 0;
  // Time at which each log entry was written, indexed by the entry's number.
  std::vector<int64_t> written_us_;
  std::priority_queue<Event> events_;
  server::cluster::PermitTimes times_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::map<std::string, Node*> by_id_;
  std::vector<std::unique_ptr<ShardFacts>> shards_;
  std::unique_ptr<EtcdModel> etcd_;
  int64_t etcd_down_until_us_ = 0;
  // true: etcd stalls for a while and then executes the waiting calls; false: the calls are lost
  bool etcd_stalls_ = false;
  int64_t slow_until_us_ = 0;
  std::set<std::pair<const Node*, const Node*>> cuts_;
  RunResult result_;
};

}  // namespace simulation
