// SPDX-License-Identifier: MIT
//
// Member: the role of one server in its shard. Member decides whether the server leads and may
// acknowledge writes, whether it takes over, and which leader it follows. The owner executes the
// actions that take_actions() returns, and reports their outcomes. Member uses no sockets, threads
// or clocks.
//
//   topology names another leader ──► replica: campaigns when etcd lacks alive/<leader>
//   topology names this node ───────► leader: asks etcd, else its members, and extends its permit
//
// Invariants: while clocks' rates differ by less than 10 %, no two members of a shard have a permit
// at the same time. Once a leader has served in an epoch, no member gets a permit in a lower epoch.
// Both guarantees hold even if etcd loses changes or executes them late, and if leases end too
// early or too late. A restarted leader first writes a new epoch, because it does not remember its
// requests to etcd, or whether it had resigned. Once the topology has changed, etcd refuses all
// older requests. If the topology names this leader in an epoch that this process has not written,
// the leader also writes a new epoch. The reason is that another process with the same id may have
// written the topology. Only the process that owns alive/<id> can write such a new epoch.
// Thread safety: belongs to one thread; times are monotonic, of this machine, given by the caller.
// Source: permit.h for the leases. The takeover is a compare-and-swap,
// https://etcd.io/docs/v3.4/learning/api/#transaction.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "server/cluster/election/member_state.h"
#include "server/cluster/election/offset_questions.h"
#include "server/cluster/election/succession.h"

namespace server::cluster {

class LeaderPart;
class ReplicaPart;

inline constexpr std::string_view kFailoverNeedsReplica =
    "ERR You should send CLUSTER FAILOVER to a replica";

class Member {
 public:
  explicit Member(MemberOptions options);
  ~Member();
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;

  // Advances the member to the given time. Must be called when the state of the replication
  // changes, and about 20 times within PermitTimes::ask_us.
  void tick(int64_t now_us, const ReplicationFacts& facts);

  // Adopts the topology that etcd has, from a watch or a read, if it supersedes the known one.
  void topology_seen(int64_t now_us, const TopologyVersion& seen);
  // Sets the live nodes: the ids of all nodes for which etcd has a key alive/<id>.
  void alive_seen(int64_t now_us, IdSet ids);

  // Handles the answer to a linearizable read. `known_revision` is the revision of the topology
  // that this node knew when it sent the read.
  void topology_checked(int64_t now_us, uint64_t known_revision, ReadOutcome outcome,
                        const TopologyVersion& newer = {});
  // Called when the topology was deleted in etcd and this node had seen all earlier changes. A
  // leader writes the deleted topology again.
  void topology_deleted(int64_t now_us);

  // The functions below report the outcomes of actions. The owner must report an outcome for every
  // call, or "unknown" after a timeout. With ReadOutcome::kChanged, `newer` is the topology that
  // was read. If that topology is older than the known one, a leader continues as if etcd did not
  // answer. While etcd has the older topology, no member takes over or writes a new epoch.
  void topology_read(int64_t now_us, uint64_t call, ReadOutcome outcome,
                     const TopologyVersion& newer = {});
  // With kCommitted, `revision` is the revision of the written topology. Before the owner reports
  // kRefused, it must report the topology that etcd has.
  void topology_changed(int64_t now_us, uint64_t call, ChangeOutcome outcome,
                        uint64_t revision = 0);
  void promise_answered(int64_t now_us, uint64_t call, std::string_view peer, bool is_promised);
  // `position` is nullopt if the peer cannot campaign or has not answered.
  void offset_answered(int64_t now_us, uint64_t call, std::string_view peer,
                       std::optional<HistoryPosition> position);
  void epoch_kept(int64_t now_us, std::string_view shard, uint64_t epoch);
  // Called when no write runs and none can begin, after the HoldWrites of `handover`. `offset` is
  // the end of the stream.
  void writes_held(int64_t now_us, uint64_t handover, uint64_t offset);

  // The functions below handle requests and reports from peers. promise() returns true if the reply
  // to the peer is +OK.
  bool promise(int64_t now_us, std::string_view shard, uint64_t epoch);
  // Answers a peer that asks for this node's position. Returns nullopt unless this node can
  // campaign, or is a restarted leader that waits for a new epoch.
  std::optional<HistoryPosition> offset(int64_t now_us, std::string_view shard);
  void resigned(int64_t now_us, std::string_view shard, uint64_t epoch);
  // Called when a peer has answered +OK to ReportResigned: the peer leads and serves. Must not be
  // called for any other answer.
  void successor_serves(int64_t now_us, std::string_view shard, uint64_t epoch);

  // Executes CLUSTER FAILOVER on the leader. Errors: the reply to the client. After an error the
  // state is unchanged.
  core::Result<> hand_over(int64_t now_us, std::string_view target);
  // Returns the id of the online replica in sync with the highest acknowledged offset; empty if
  // there is none.
  std::string successor() const;
  // Executes CLUSTER FAILOVER FORCE on a replica, which takes over even if the leader is alive.
  core::Result<> take_over(int64_t now_us);

  // Called when this node shuts down. Its stream ends at `offset`. If this node is the leader,
  // members that lack a part of the stream are removed from the list of members in sync.
  void close_list(int64_t now_us, uint64_t offset);
  // Returns whether this node may now delete its key alive/<id>. If this node leads, another member
  // takes over after the deletion. So close_list() must have been called before. In addition, etcd
  // must have stored the list of members in sync without those that lack a part of the stream.
  bool may_leave() const;

  std::vector<MemberAction> take_actions() { return std::exchange(state_.actions, {}); }

  bool leads() const;
  // Returns the permit. The owner must publish a new permit to other threads only after it has
  // executed the actions. It must publish the end of a permit at once.
  const Permit& permit() const;
  MemberService service(int64_t now_us) const;
  const TopologyVersion& topology() const { return state_.topology; }
  TopologyFault topology_fault() const { return state_.fault; }
  // Returns the shard's highest epoch that this node has written to its disk.
  const KeptEpoch& kept_epoch() const { return state_.kept; }
  const std::string& id() const { return state_.options.id; }
  // Returns false while the append log of this node fails.
  bool log_works() const { return state_.facts.log_works; }
  // Returns the shard of this node; null if it is in none.
  const Shard* shard() const { return state_.shard(); }
  // Returns every member that may become the leader. With cluster-write-acks insync, replies to
  // writes wait for the acknowledgements of these members.
  IdSet required_acks() const;
  // Returns whether etcd has confirmed this leader within the last 2.5 times PermitTimes::ask_us.
  bool etcd_answers(int64_t now_us) const;
  // Returns whether this leader has lost its data in a restart, or may have lost its newest data.
  // The leader then leaves the shard to the other members in sync, and the key alive/<own id> must
  // not be written. A leader without a whole copy of the data waits until all members in sync have
  // been alive for four node timeouts. This time suffices for a takeover. A leader that has a
  // snapshot but no append log, or whose machine was restarted, waits at most four node timeouts
  // after its start. After a restart of the machine, the wait ends early if no member in
  // sync is ahead: each has sent its replication position.
  bool has_lost_data(int64_t now_us) const;

 private:
  enum class Writer : uint8_t { kSelf, kUnknown };
  void adopt(int64_t now_us, const TopologyVersion& seen, Writer writer = Writer::kUnknown);
  void step(int64_t now_us);
  // Returns whether the read confirms that etcd has the topology that this node knows, or a newer
  // one.
  bool is_sound(uint64_t known_revision, ReadOutcome outcome, const TopologyVersion& newer);
  void put_back(int64_t now_us);

  MemberState state_;
  bool puts_back_ = false;  // true while this leader puts the deleted topology back into etcd
  int64_t put_again_us_ = 0;
  Succession succession_;
  SuccessorSearch search_{state_};
  const std::unique_ptr<LeaderPart> leader_;
  const std::unique_ptr<ReplicaPart> replica_;
};

}  // namespace server::cluster
