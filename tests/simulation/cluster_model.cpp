// SPDX-License-Identifier: MIT
#include "tests/simulation/cluster_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tests/simulation/cluster_node_model.h"

namespace simulation {

using server::cluster::AskOffset;
using server::cluster::AskPromise;
using server::cluster::ChangeOutcome;
using server::cluster::Follow;
using server::cluster::HoldWrites;
using server::cluster::KeepEpoch;
using server::cluster::MemberAction;
using server::cluster::MemberOptions;
using server::cluster::MemberService;
using server::cluster::PermitTimes;
using server::cluster::Promote;
using server::cluster::ReadLiveNodes;
using server::cluster::ReadOutcome;
using server::cluster::ReadTopology;
using server::cluster::ReleaseWrites;
using server::cluster::ReportResigned;
using server::cluster::Topology;
using server::cluster::TopologyFault;

namespace {

constexpr int64_t kTickUs = 100 * kMs;
constexpr int64_t kCallLimitUs = 700 * kMs;
constexpr int64_t kPeerLimitUs = 300 * kMs;

Topology first_topology(int shards, int members) {
  Topology topology;
  for (int s = 0; s < shards; ++s) {
    server::cluster::Shard shard;
    shard.name = fmt::format("s{:03}", s);
    shard.epoch = 1;
    for (int n = 0; n < members; ++n) {
      shard.members.push_back(fmt::format("{:03}{}", s, static_cast<char>('a' + n)));
    }
    shard.leader = shard.members.front();
    shard.insync = {shard.leader};
    topology.shards.push_back(std::move(shard));
  }
  return topology;
}

}  // namespace

ClusterModel::ClusterModel(const RunOptions& options) : options_(options), random_(options.seed) {
  end_us_ = now_us_ + options.seconds * kSecond;
  times_ = PermitTimes::of_timeout(pick(2, 5) * kSecond);
  if (options.mutation == Mutation::kNoWait) times_.wait_us = 0;
  if (options.mutation == Mutation::kPromiseBlocksNothing) times_.promise_us = 0;
  etcd_ = std::make_unique<EtcdModel>(first_topology(options.shards, options.members));
  for (const auto& shard : etcd_->topology()->topology.shards) {
    shards_.push_back(std::make_unique<ShardFacts>(ShardFacts{shard.name, 0, nullptr, {}}));
    for (const std::string& id : shard.members) {
      auto node = std::make_unique<Node>();
      node->id = id;
      node->shard = shard.name;
      node->rate = 1 + static_cast<double>(pick(-45, 45)) / 1000;
      node->clock_offset_us = pick(0, 1'000'000'000);
      by_id_[id] = node.get();
      nodes_.push_back(std::move(node));
    }
  }
  if (options.faults == Faults::kTwins) add_twin();
}

ClusterModel::~ClusterModel() = default;

int64_t ClusterModel::pick(int64_t from, int64_t to) {
  const auto width = static_cast<uint64_t>(to - from) + 1;
  return from + static_cast<int64_t>(random_() % width);
}

bool ClusterModel::chance(double probability) {
  return static_cast<double>(random_() >> 11) * 0x1p-53 < probability;
}

void ClusterModel::at(int64_t delay_us, Work work) {
  events_.push({now_us_ + delay_us, ++order_, std::move(work)});
}

void ClusterModel::at_node(Node& node, int64_t delay_us, std::function<void(Node&)> work) {
  at(delay_us, [this, &node, life = node.life, work = std::move(work)] {
    if (!node.is_up || node.life != life) return;
    // While a process is stopped, the messages to it wait in its sockets.
    if (now_us_ < node.stopped_until_us) {
      return at_node(node, node.stopped_until_us - now_us_, work);
    }
    // A node does nothing between two events, so check() sees all that it did before this event.
    check(node);
    work(node);
    perform(node);
    check(node);
    record_acknowledged(node);
  });
}

bool ClusterModel::is_cut(const Node& one, const Node* other) const {
  const Node* self = &one;
  return cuts_.contains({std::min(self, other), std::max(self, other)});
}

int64_t ClusterModel::delay() {
  return now_us_ < slow_until_us_ ? pick(1 * kMs, 900 * kMs) : pick(200, 5 * kMs);
}

RunResult ClusterModel::run() {
  for (auto& node : nodes_) start(*node, true);
  for (auto& facts : shards_) {
    ShardFacts* shard = facts.get();
    at(kSecond, [this, shard] { write(*shard); });
  }
  schedule_faults();
  while (!events_.empty() && result_.fault.empty()) {
    Event event = events_.top();
    events_.pop();
    now_us_ = event.at_us;
    if (now_us_ >= end_us_) break;
    etcd_->end_leases(now_us_);
    if (options_.faults == Faults::kSlowLoads) check_leases();
    event.work();
  }
  if (result_.fault.empty()) check_end();
  return result_;
}

void ClusterModel::start(Node& node, bool is_first) {
  ++node.life;
  node.is_up = true;
  node.stopped_until_us = 0;
  node.seen_alive = 0;
  node.lease_end_us = 0;
  node.is_present = false;
  node.holds_writes = false;
  node.follows.clear();
  node.heard_us = 0;
  node.history_epoch = node.disk_epoch;
  ++node.roles;
  ++node.load;
  node.loads_until_us = 0;
  node.stream_epoch = 0;
  node.acks.clear();
  node.acknowledged = 0;
  node.log = node.disk;
  const bool forgets = options_.mutation == Mutation::kForgetsEpoch;
  // A crash loses the unsynced log entries. In some runs, the node also detects by its boot id that
  // a power cut has preceded its start.
  if (options_.faults == Faults::kDrawn && chance(0.5)) ++node.boot;
  const bool asks = node.kept_boot != node.boot && options_.mutation != Mutation::kAsksNoMember;
  node.member.emplace(MemberOptions{node.id, times_, node.clock(now_us_),
                                    forgets ? "" : node.kept_shard, forgets ? 0 : node.kept_epoch,
                                    !asks, options_.faults == Faults::kAckedWrites});
  if (!is_first && node.kept_topology) {
    at_node(node, 0, [this](Node& self) {
      self.member->topology_seen(self.clock(now_us_), *self.kept_topology);
    });
  }
  at_node(node, pick(0, kTickUs), [this](Node& self) { tick(self); });
  at_node(node, pick(0, kTickUs), [this](Node& self) { watch(self); });
  at_node(node, pick(0, kTickUs), [this](Node& self) { keep_lease(self); });
  at_node(node, pick(0, kTickUs), [this](Node& self) { replicate(self); });
}

void ClusterModel::tick(Node& node) {
  look_at_role(node);
  at_node(node, kTickUs, [this](Node& self) { tick(self); });
}

// Polls the topology in etcd. The real node uses a watch; the time between polls simulates its
// delay.
void ClusterModel::watch(Node& node) {
  const int64_t pause_us = pick(20 * kMs, 100 * kMs);
  const bool is_down = is_cut(node, nullptr) || now_us_ < etcd_down_until_us_;
  if (is_down) return at_node(node, pause_us, [this](Node& self) { watch(self); });
  // The first read of etcd after a start is linearizable. Only later reads may return an older
  // topology.
  const bool may_lag = node.seen_alive != 0;
  auto topology = may_lag && chance(0.1) ? etcd_->stale() : etcd_->topology();
  const uint64_t version = etcd_->alive_version();
  std::optional<IdSet> alive;
  if (version != node.seen_alive) alive = etcd_->alive();
  // A server detects within two timeouts that its watch is silent.
  const bool has_silent_watch = options_.faults == Faults::kLeaderPowerCuts;
  const int64_t limit_us = has_silent_watch ? 20 * times_.ask_us : 3 * kSecond;
  const bool is_late = options_.faults != Faults::kHandovers && chance(0.01);
  const int64_t late_us = is_late ? pick(0, limit_us) : delay();
  at_node(node, late_us, [this, topology, alive, version, pause_us](Node& self) {
    take_news(self, *topology, alive, version);
    at_node(self, pause_us, [this](Node& again) { watch(again); });
  });
}

// Gives the node the topology and the set of live nodes that it has read from etcd. `version` is
// the version of this set.
void ClusterModel::take_news(Node& node, const TopologyVersion& topology,
                             const std::optional<IdSet>& alive, uint64_t version) {
  const int64_t clock_us = node.clock(now_us_);
  const uint64_t known = node.member->topology().revision;
  const bool is_passed_over =
      options_.mutation == Mutation::kIgnoresRewind && topology.revision <= known;
  if (!is_passed_over) node.member->topology_seen(clock_us, topology);
  if (version < node.seen_alive) return;
  if (alive) node.member->alive_seen(clock_us, *alive);
  node.seen_alive = version;
}

void ClusterModel::read_live_nodes(Node& node) {
  if (options_.mutation == Mutation::kLearnsLate) return;
  call_etcd(
      node,
      [this](Node& self) -> Work {
        return [this, &self, topology = etcd_->topology(), alive = etcd_->alive(),
                version = etcd_->alive_version()] { take_news(self, *topology, alive, version); };
      },
      [] {});
}

void ClusterModel::keep_lease(Node& node) {
  const int64_t timeout_us = 10 * times_.ask_us;
  at_node(node, timeout_us / 4, [this](Node& self) { keep_lease(self); });
  if (node.member->has_lost_data(node.clock(now_us_))) return;
  call_etcd(
      node,
      [this, timeout_us, sent_us = node.clock(now_us_)](Node& self) -> Work {
        // etcd ends a lease when its timeout passes, or up to two seconds later.
        const int64_t end_us = now_us_ + timeout_us + (chance(0.2) ? pick(0, 2 * kSecond) : 0);
        const bool is_kept = etcd_->keep_alive(self.id, self.life, end_us);
        return [&self, is_kept, end_own_us = sent_us + timeout_us] {
          self.is_present = is_kept;
          if (is_kept) self.lease_end_us = end_own_us;
        };
      },
      [] {});
}

// Sends a call to etcd. The call and its answer may each arrive, be lost, or arrive long after the
// timeout.
void ClusterModel::call_etcd(Node& node, std::function<Work(Node&)> carry_out, Work unknown) {
  struct Call {
    bool is_over = false;
  };
  auto call = std::make_shared<Call>();
  at_node(node, kCallLimitUs, [call, unknown = std::move(unknown)](Node&) {
    if (!std::exchange(call->is_over, true)) unknown();
  });
  const bool is_reliable = options_.faults != Faults::kDrawn;
  if (is_cut(node, nullptr) || (!is_reliable && chance(0.005))) return;
  int64_t way_us = !is_reliable && chance(0.01) ? pick(0, 8 * kSecond) : delay();
  if (now_us_ + way_us < etcd_down_until_us_) {
    if (!etcd_stalls_) return;
    way_us = etcd_down_until_us_ - now_us_ + pick(0, 50 * kMs);
  }
  // A call that was sent to etcd arrives even if the node dies in the meantime.
  at(way_us, [this, call, &node, is_reliable, life = node.life, carry_out = std::move(carry_out)] {
    Work answer = carry_out(node);
    const bool is_lost = is_cut(node, nullptr) || (!is_reliable && chance(0.005));
    if (node.life != life || is_lost) return;
    at_node(node, delay(), [call, answer = std::move(answer)](Node&) {
      if (!std::exchange(call->is_over, true)) answer();
    });
  });
}

void ClusterModel::read(Node& node, const ReadTopology& read) {
  const bool reads_all = node.member->topology_fault() == TopologyFault::kOlder;
  call_etcd(
      node,
      [this, read, reads_all](Node& self) -> Work {
        const bool is_stale = options_.mutation == Mutation::kStaleReads;
        auto found = is_stale ? etcd_->stale() : etcd_->topology();
        return [this, &self, read, reads_all, found, is_stale] {
          const bool looks_up_only = is_stale || options_.mutation == Mutation::kIgnoresRewind;
          const bool is_recovered = reads_all && supersedes(*found, self.member->topology());
          const bool is_new = looks_up_only
                                  ? found->revision > read.known_revision
                                  : found->revision != read.known_revision || is_recovered;
          const auto outcome = is_new ? ReadOutcome::kChanged : ReadOutcome::kUnchanged;
          int64_t clock_us = self.clock(now_us_);
          if (options_.mutation == Mutation::kPermitFromReply && !is_new) {
            // With the mutation kPermitFromReply, the answer to one read of etcd also answers the
            // next read. The node requests the next read only after this answer has arrived.
            self.member->tick(clock_us + 20 * times_.ask_us, {});
            for (auto& action : self.member->take_actions()) {
              const auto* later = std::get_if<ReadTopology>(&action);
              if (later == nullptr) {
                perform_one(self, action);
              } else if (later->known_revision == read.known_revision) {
                self.member->topology_read(clock_us, later->call, outcome, {});
              }
            }
          }
          self.member->topology_read(clock_us, read.call, outcome, *found);
        };
      },
      [this, &node, call = read.call] {
        node.member->topology_read(node.clock(now_us_), call, ReadOutcome::kUnknown);
      });
}

void ClusterModel::change(Node& node, const ChangeTopology& change) {
  auto shared = std::make_shared<ChangeTopology>(change);
  if (options_.mutation == Mutation::kAbsentMayLead) shared->needs_own_alive = false;
  call_etcd(
      node,
      [this, shared, life = node.life](Node& self) -> Work {
        const uint64_t revision = etcd_->change(*shared, self.id, life);
        auto found = etcd_->topology();
        return [this, &self, shared, revision, found] {
          const int64_t clock_us = self.clock(now_us_);
          if (revision == 0) self.member->topology_seen(clock_us, *found);
          self.member->topology_changed(
              clock_us, shared->call,
              revision == 0 ? ChangeOutcome::kRefused : ChangeOutcome::kCommitted, revision);
        };
      },
      [this, &node, call = change.call] {
        node.member->topology_changed(node.clock(now_us_), call, ChangeOutcome::kUnknown);
      });
}

void ClusterModel::ask_promise(Node& node, const AskPromise& ask) {
  Node& peer = *by_id_.at(ask.peer);
  auto is_over = std::make_shared<bool>(false);
  at_node(node, kPeerLimitUs, [this, ask, is_over](Node& self) {
    if (std::exchange(*is_over, true)) return;
    const bool counts = options_.mutation == Mutation::kSilenceIsPromise;
    self.member->promise_answered(self.clock(now_us_), ask.call, ask.peer, counts);
  });
  if (is_cut(node, &peer) || is_cut(peer, &node) || !peer.is_up || chance(0.005)) return;
  at_node(peer, delay(), [this, &node, ask, is_over, life = node.life](Node& self) {
    const bool is_promised = self.member->promise(self.clock(now_us_), ask.shard, ask.epoch);
    if (node.life != life || is_cut(self, &node)) return;
    at_node(node, delay(), [this, ask, is_promised, is_over](Node& asker) {
      if (std::exchange(*is_over, true)) return;
      asker.member->promise_answered(asker.clock(now_us_), ask.call, ask.peer, is_promised);
    });
  });
}

void ClusterModel::ask_offset(Node& node, const AskOffset& ask) {
  Node& peer = *by_id_.at(ask.peer);
  const bool is_reliable = options_.faults == Faults::kPowerCuts ||
                           options_.faults == Faults::kLeaderPowerCuts ||
                           options_.faults == Faults::kFailingLogs;
  const bool is_lost = !is_reliable && chance(0.005);
  if (is_cut(node, &peer) || is_cut(peer, &node) || !peer.is_up || is_lost) return;
  at_node(peer, delay(), [this, &node, ask, life = node.life](Node& self) {
    auto position = self.member->offset(self.clock(now_us_), ask.shard);
    if (options_.mutation == Mutation::kFirstRegistered && self.member->leads()) position.reset();
    if (node.life != life || is_cut(self, &node)) return;
    at_node(node, delay(), [this, ask, position](Node& asker) {
      asker.member->offset_answered(asker.clock(now_us_), ask.call, ask.peer, position);
    });
  });
}

void ClusterModel::perform(Node& node) {
  for (;;) {
    const auto actions = node.member->take_actions();
    if (actions.empty()) return;
    for (const MemberAction& action : actions) perform_one(node, action);
  }
}

void ClusterModel::perform_one(Node& node, const MemberAction& action) {
  const int64_t clock_us = node.clock(now_us_);
  if (const auto* asked = std::get_if<ReadTopology>(&action)) {
    read(node, *asked);
  } else if (const auto* wanted = std::get_if<ChangeTopology>(&action)) {
    change(node, *wanted);
  } else if (const auto* promise = std::get_if<AskPromise>(&action)) {
    ask_promise(node, *promise);
  } else if (const auto* offset = std::get_if<AskOffset>(&action)) {
    ask_offset(node, *offset);
  } else if (std::holds_alternative<ReadLiveNodes>(action)) {
    read_live_nodes(node);
  } else if (const auto* keep = std::get_if<KeepEpoch>(&action)) {
    at_node(node, pick(0, 30 * kMs), [this, keep = *keep](Node& self) {
      // A server writes its epochs to the disk in the order in which they were requested, so an
      // older epoch never replaces a newer one.
      if (keep.shard != self.kept_shard) self.kept_epoch = 0;
      self.kept_shard = keep.shard;
      self.kept_boot = self.boot;
      self.kept_epoch = std::max(self.kept_epoch, keep.epoch);
      self.member->epoch_kept(self.clock(now_us_), keep.shard, keep.epoch);
    });
  } else if (const auto* hold = std::get_if<HoldWrites>(&action)) {
    node.holds_writes = true;
    node.member->writes_held(clock_us, hold->handover, node.log.size());
  } else if (std::holds_alternative<ReleaseWrites>(action)) {
    node.holds_writes = false;
  } else if (const auto* promote = std::get_if<Promote>(&action)) {
    ++result_.leaders;
    if (options_.mutation == Mutation::kSuccessorNeverWaits && promote->epoch != 0) {
      node.member->resigned(clock_us, node.shard, promote->epoch - 1);
    }
    change_role(node, "", promote->epoch);
  } else if (const auto* follow = std::get_if<Follow>(&action)) {
    change_role(node, follow->leader, follow->epoch);
  } else if (const auto* resigned = std::get_if<ReportResigned>(&action)) {
    Node& peer = *by_id_.at(resigned->peer);
    if (is_cut(node, &peer) || is_cut(peer, &node) || !peer.is_up) return;
    at_node(peer, delay(), [this, reported = *resigned, &node](Node& self) {
      self.member->resigned(self.clock(now_us_), reported.shard, reported.epoch);
      answer_when_serving(self, node, reported.epoch);
    });
  }
}

// Waits until the new leader `node` serves its shard. Then notifies the former leader, which
// resigned in `epoch`, that its successor serves.
void ClusterModel::answer_when_serving(Node& node, Node& former, uint64_t epoch) {
  const auto* shard = node.member->topology().topology.shard_of(node.id);
  if (shard == nullptr || shard->epoch > epoch + 1) return;
  if (node.member->service(node.clock(now_us_)) != MemberService::kServes) {
    return at_node(node, kMs, [this, &former, epoch](Node& self) {
      answer_when_serving(self, former, epoch);
    });
  }
  if (is_cut(node, &former) || is_cut(former, &node) || !former.is_up) return;
  at_node(former, delay(), [this, epoch](Node& self) {
    self.member->successor_serves(self.clock(now_us_), self.shard, epoch);
  });
}

void ClusterModel::request(Node& node, int moved) {
  constexpr int kMovedMax = 2;
  if (moved > kMovedMax) return fail("a client is sent in circles");
  const MemberService service = node.member->service(node.clock(now_us_));
  const bool may_wait = options_.mutation != Mutation::kMovedWhileNamed || node.member->leads();
  const bool is_served = service == MemberService::kServes;
  const bool waits =
      (is_served && node.holds_writes) || (service == MemberService::kWaits && may_wait);
  if (waits) return at(kMs, [this, &node, moved] { request(node, moved); });
  if (is_served) {
    ++result_.requests;
    return at(pick(0, 20 * kMs), [this, &node] { request(node, 0); });
  }
  const auto* shard = node.member->topology().topology.shard_of(node.id);
  const std::string leader = shard == nullptr ? node.id : shard->leader;
  // A node never redirects a client to itself. A leader without a permit refuses the request.
  if (leader == node.id) return fail("a client is refused");
  at(pick(100, kMs), [this, &next = *by_id_.at(leader), moved] { request(next, moved + 1); });
}

bool ClusterModel::serves(const Node& node) const {
  if (!node.is_up || !node.member || now_us_ < node.stopped_until_us) return false;
  const int64_t clock_us = node.clock(now_us_);
  if (options_.mutation == Mutation::kLeaseIsPermit) {
    return node.member->leads() && clock_us < node.lease_end_us;
  }
  return node.member->permit().allows(clock_us);
}

void ClusterModel::write(ShardFacts& facts) {
  at(pick(50 * kMs, 1500 * kMs), [this, &facts] { write(facts); });
  for (auto& node : nodes_) {
    if (node->shard != facts.name || !serves(*node)) continue;
    check(*node);
    if (node->holds_writes || !node->log_works) continue;
    node->log.push_back(written_us_.size());
    written_us_.push_back(now_us_);
    ++result_.entries;
  }
  record_safe(facts);
}

}  // namespace simulation
