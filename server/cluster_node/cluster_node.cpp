// SPDX-License-Identifier: MIT
#include "server/cluster_node/cluster_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>
#include <variant>

#include "server/base/config/config.h"
#include "server/base/config/words.h"
#include "server/base/log/log.h"
#include "server/base/process/start_thread.h"
#include "server/cluster/election/member.h"
#include "server/cluster/election/succession.h"
#include "server/cluster/permit_clock.h"
#include "server/cluster_node/announced.h"
#include "server/cluster_node/member_start.h"
#include "server/cluster_node/node_figures.h"
#include "server/replication/stream/ids.h"

namespace server::cluster {
namespace {

constexpr int64_t kTicksPerQuestion = 20;
constexpr int64_t kFileRetryUs = 1'000'000;  // pause after a failed write of cluster.json

Service service_of(MemberService service) {
  if (service == MemberService::kServes) return Service::kUp;
  return service == MemberService::kWaits ? Service::kHeld : Service::kDown;
}

// Returns the view of the cluster that the node publishes, from cluster.json and the list of live
// nodes.
std::shared_ptr<const View> view_of(const NodeFile& file, const std::optional<IdSet>& alive,
                                    TopologyFault fault) {
  if (file.topology.revision == 0) return std::make_shared<View>(file.id);
  std::vector<std::string> ids;
  if (alive) {
    ids.assign(alive->begin(), alive->end());
  } else {
    // Until etcd has answered, every node of the topology counts as alive.
    for (const Node& node : file.topology.topology.nodes) ids.push_back(node.id);
  }
  return std::make_shared<View>(file.id, file.topology, std::move(ids), fault);
}

ReplicationFacts facts_of(NodeHost& host, const Member& member, const Presence& presence) {
  ReplicationFacts facts = host.facts(member.shard());
  facts.present_until_us = presence.held_until_us();
  return facts;
}

void log_topology_fault(TopologyFault fault, uint64_t revision) {
  constexpr std::string_view kRemedy =
      "`bloomery-cluster recover` has put the newest topology there";
  if (fault == TopologyFault::kNone) {
    log_notice("Cluster: the topology in etcd is valid, revision {}", revision);
  } else if (fault == TopologyFault::kAbsent) {
    log_error(
        "Cluster: etcd has no topology; this node keeps revision {}: no replica takes over before "
        "its leader or {}",
        revision, kRemedy);
  } else if (fault == TopologyFault::kOlder) {
    log_error(
        "Cluster: etcd has an older topology than this node, which keeps revision {}: no replica "
        "takes over before {}",
        revision, kRemedy);
  }
}

// Records the ID of the etcd cluster for cluster.json. Returns whether the ID has changed.
bool keep_etcd_id(NodeFile& file, const std::string& cluster_id) {
  if (file.etcd_cluster == cluster_id) return false;
  if (!file.etcd_cluster.empty()) {
    log_warning("Cluster: this is another etcd than before: its cluster id is {} and was {}",
                cluster_id, file.etcd_cluster);
  }
  file.etcd_cluster = cluster_id;
  return true;
}

// Reports to the Member that the epoch in `file` is on the disk.
void record_kept(Member& member, const NodeFile& file, int64_t now_us) {
  const KeptEpoch& kept = member.kept_epoch();
  const bool is_news = kept.shard() == file.kept_shard && kept.epoch() < file.kept_epoch;
  if (is_news) member.epoch_kept(now_us, file.kept_shard, file.kept_epoch);
}

// Returns a function that decides whether alive/<own id> may be written.
std::function<bool()> may_appear(const Member& member) {
  return [&member, was_leaving = false]() mutable {
    const bool leaves_shard = member.has_lost_data(permit_clock_us());
    if (leaves_shard && !was_leaving) {
      log_warning(
          "Cluster: this node leads its shard and lacks data that other members have, or may lack "
          "it: it waits until all of them have answered or one has taken over");
    }
    was_leaving = leaves_shard;
    return !leaves_shard;
  };
}

void show_permit(ClusterState& state, const Member& member) {
  state.set_permit(member.permit().from_us(), member.permit().until_us());
}

}  // namespace

bool FollowedLeader::has_moved(const Topology& topology) const {
  const Node* const leader = topology.node(action.leader);
  if (leader == nullptr) return false;
  return leader->ip != node.ip || leader->port != node.port || leader->tls_port != node.tls_port;
}

core::Result<std::unique_ptr<ClusterNode>> ClusterNode::make(const Parts& parts) {
  const Config& config = parts.config;
  const std::string path = config.directory() + "/cluster.json";
  auto read = read_node_file(path);
  if (!read) return read.error();
  const std::string wanted_id = config.text(OptionId::kClusterNodeId);
  NodeFile file;
  if (read->has_value()) file = **std::move(read);
  const std::string cluster = config.text(OptionId::kClusterName);
  if (!file.cluster.empty() && file.cluster != cluster) {
    return core::Error{fmt::format(
        "the directory '{}' belongs to a node of the cluster '{}', and cluster-name is '{}': "
        "correct cluster-name, or give this server a directory of its own",
        config.directory(), file.cluster, cluster)};
  }
  if (!wanted_id.empty() && wanted_id != file.id) {
    file = NodeFile();
    file.id = wanted_id;
  }
  if (file.id.empty()) file.id = random_id();
  file.cluster = cluster;
  if (auto written = write_node_file(path, file); !written) return written.error();
  const std::chrono::milliseconds timeout(config.integer(OptionId::kClusterNodeTimeout));
  std::unique_ptr<ClusterNode> node(new ClusterNode(parts, std::move(file), path, timeout));
  if (auto connected = node->connect(); !connected) return connected.error();
  parts.state.publish(view_of(node->file_, std::nullopt, TopologyFault::kNone));
  return node;
}

ClusterNode::ClusterNode(const Parts& parts, NodeFile file, std::string path,
                         std::chrono::milliseconds timeout)
    : parts_(parts),
      file_(std::move(file)),
      path_(std::move(path)),
      keys_(parts.config.text(OptionId::kClusterName)),
      times_(PermitTimes::of_timeout(timeout.count() * 1000)),
      work_(boost::asio::make_work_guard(io_)),
      timer_(io_),
      member_(std::make_unique<Member>(member_options(file_, times_, parts.config))),
      departure_(*member_),
      figures_(std::make_unique<NodeFigures>(parts.state.counters(), file_.id)) {}

ClusterNode::~ClusterNode() {
  stop();
}

core::Result<> ClusterNode::connect() {
  const Config& config = parts_.config;
  EtcdOptions options = etcd_options(config);
  if (options.endpoints.empty()) {
    return core::Error{"cluster-enabled yes needs cluster-etcd, the addresses of etcd"};
  }
  auto client = EtcdClient::make(io_, std::move(options));
  if (!client) return client.error();
  etcd_.client = *std::move(client);
  etcd_.client->on_result([this](EtcdRequest request, const EtcdError& error) {
    etcd_.report.record(request, error, permit_clock_us());
  });
  const std::chrono::milliseconds timeout(config.integer(OptionId::kClusterNodeTimeout));
  feed_ = std::make_unique<EtcdFeed>(
      io_, *etcd_.client, keys_, 2 * timeout,
      EtcdFeed::Handlers{
          .on_topology = [this](const TopologyVersion& seen) { topology_seen(seen); },
          .on_alive =
              [this](const IdSet& alive) {
                due_.view = due_.view || alive != alive_;
                alive_ = alive;
                if (!alive.contains(file_.id)) presence_->key_is_missing();
                member_->alive_seen(permit_clock_us(), alive);
                settle();
              },
          .known = [this]() -> const TopologyVersion& { return member_->topology(); },
          .on_check =
              [this](const TopologyCheck& check) {
                member_->topology_checked(permit_clock_us(), check.known_revision, check.outcome,
                                          check.version);
                settle();
              },
          .on_deleted =
              [this] {
                member_->topology_deleted(permit_clock_us());
                settle();
              },
          .on_etcd = [this](const std::string& id) { due_.file |= keep_etcd_id(file_, id); }});
  const std::string value =
      fmt::format(R"({{"run":"{}","ver":"{}"}})", parts_.run_id, BLOOMERY_VERSION);
  presence_ = std::make_unique<Presence>(
      io_, *etcd_.client, Presence::LeaseSettings{keys_.alive(file_.id), value, timeout},
      may_appear(*member_));
  announcer_ = std::make_unique<Announcer>(*etcd_.client, keys_, config, file_.id, file_.listening,
                                           [this](const Listening& now) {
                                             file_.listening = now;
                                             due_.file = true;
                                           });
  peers_ = std::make_unique<Peers>(io_, config, parts_.tls);
  return {};
}

void ClusterNode::start() {
  boost::asio::post(io_, [this] {
    // tick() comes first, so that the Member knows the state of this node's data when it gets the
    // topology.
    tick();
    if (file_.topology.revision != 0) topology_seen(file_.topology);
    feed_->start();
    presence_->start();
  });
  slow_.role.start("cluster-role");
  slow_.file.start("cluster-file");
  thread_ = start_thread("cluster", [this] { io_.run(); });
  is_running_ = true;
  log_notice("Cluster: this node is {} of the cluster '{}'", file_.id,
             parts_.config.text(OptionId::kClusterName));
}

void ClusterNode::stop() {
  if (!thread_.joinable()) return;
  boost::asio::post(io_, [this] {
    if (!member_->may_leave()) return io_.stop();
    presence_->leave([this] { io_.stop(); });
  });
  thread_.join();
  slow_.role.stop();
  slow_.file.stop();
  // The node's threads have ended, so no handler uses the objects that are destroyed here.
  parts_.state.set_service(Service::kDown);
  peers_.reset();
  announcer_.reset();
  presence_.reset();
  feed_.reset();
  etcd_.client.reset();
}

void ClusterNode::post(std::function<void(Member&, int64_t now_us)> task) {
  boost::asio::post(io_, [this, task = std::move(task)] {
    task(*member_, permit_clock_us());
    settle();
  });
}

void ClusterNode::await(std::function<bool(const Member&, int64_t now_us)> condition,
                        int64_t limit_us, std::function<void(bool holds)> done) {
  boost::asio::post(io_, [this, until_us = permit_clock_us() + limit_us,
                          condition = std::move(condition), done = std::move(done)]() mutable {
    waits_.add(std::move(condition), until_us, std::move(done));
    settle();
  });
}

void ClusterNode::ask_leader(std::vector<std::string> words, Peers::Handler done) {
  // Only requests of clients are passed on in this way. They rather wait than fail when the leader
  // is busy, so the leader gets more time than for the questions of an election.
  constexpr int64_t kDelayMs = 2000;
  boost::asio::post(io_, [this, words = std::move(words), done = std::move(done)]() mutable {
    const Shard* const shard = member_->topology().topology.shard_of(file_.id);
    ask_peer(shard == nullptr ? "" : shard->leader, std::move(words), std::move(done), kDelayMs);
  });
}

void ClusterNode::depart(Step step, std::function<void()> done) {
  // While the server loads its data, the node does not lead its shard, and its thread does not run.
  if (!is_running_) return done();
  boost::asio::post(io_, [this, step, done = std::move(done)] {
    const int64_t now_us = permit_clock_us();
    const ReplicationFacts facts = facts_of(parts_.host, *member_, *presence_);
    member_->tick(now_us, facts);
    if (step == Step::kHandOver) {
      departure_.hand_over(now_us, done);
    } else {
      departure_.close_list(now_us, facts.position.offset, done);
    }
    settle();
  });
}

void ClusterNode::tick() {
  const ReplicationFacts facts = facts_of(parts_.host, *member_, *presence_);
  member_->tick(permit_clock_us(), facts);
  figures_->on_tick(*member_, facts, permit_clock_us());
  parts_.state.set_leader_silence(facts.leader_silence_us);
  settle();
  if (presence_->etcd_answers() && presence_->mod_revision() != 0)
    announcer_->tick(permit_clock_us(), member_->topology());
  timer_.expires_after(
      std::chrono::microseconds(std::max<int64_t>(1000, times_.ask_us / kTicksPerQuestion)));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) tick();
  });
}

void ClusterNode::topology_seen(const TopologyVersion& seen) {
  member_->topology_seen(permit_clock_us(), seen);
  settle();
}

void ClusterNode::settle() {
  // If this node has lost its permit to serve, the loss is published before everything else. A new
  // permit is published only after the view of the cluster. Clients get CLUSTERDOWN if the view
  // gives this node slots while its published service is kDown. To avoid this error, a deposed
  // leader publishes the view, which redirects clients, before kDown. A new leader publishes kHeld,
  // which makes clients wait, before the view.
  if (service_of(member_->service(permit_clock_us())) != Service::kUp)
    show_permit(parts_.state, *member_);
  if (member_->topology().revision != 0 && !holds(file_, member_->topology())) {
    figures_->on_topology(file_.topology, member_->topology());
    file_.topology = member_->topology();
    peers_->keep_only(file_.topology.topology);
    due_.view = due_.file = true;
  }
  departure_.step(permit_clock_us());
  for (auto actions = member_->take_actions(); !actions.empty();
       actions = member_->take_actions()) {
    for (const MemberAction& action : actions) {
      std::visit([this](const auto& one) { carry_out(one); }, action);
    }
  }
  // The required acknowledgements must be set before this node serves as a new leader. Otherwise it
  // could acknowledge a write that the members in sync do not have yet.
  if (parts_.state.require_acks(member_->required_acks())) parts_.host.service_changed();
  const auto shown = parts_.state.latest();
  if (shown != nullptr && shown->fault() != member_->topology_fault()) {
    log_topology_fault(member_->topology_fault(), file_.topology.revision);
    due_.view = true;
  }
  if (followed_.has_moved(file_.topology.topology)) carry_out(followed_.action);
  if (std::exchange(due_.view, false)) {
    const bool is_down = service_of(member_->service(permit_clock_us())) == Service::kDown;
    if (!is_down && parts_.state.service() == Service::kDown) {
      parts_.state.set_service(Service::kHeld);
    }
    parts_.state.publish(view_of(file_, alive_, member_->topology_fault()));
    parts_.host.service_changed();
  }
  show_service();
  if (std::exchange(due_.release, false)) parts_.host.release_writes();
  waits_.step(*member_, permit_clock_us());
  if (due_.file && permit_clock_us() >= due_.file_after_us) {
    due_.file = false;
    slow_.file.run([this, file = file_] {
      const auto written = write_node_file(path_, file);
      if (!written) {
        log_warning("Cluster: {}", written.error().message);
        return post([this](Member&, int64_t now_us) {
          due_.file = true;
          due_.file_after_us = now_us + kFileRetryUs;
        });
      }
      post([file](Member& member, int64_t now_us) { record_kept(member, file, now_us); });
    });
  }
}

void ClusterNode::show_service() {
  const int64_t now_us = permit_clock_us();
  const Service service = service_of(member_->service(now_us));
  show_permit(parts_.state, *member_);
  parts_.state.set_etcd_up(presence_->etcd_answers() && etcd_.report.accepts(now_us));
  const Service before = parts_.state.service();
  if (before == service) return;
  if (service == Service::kDown && member_->leads()) {
    log_notice("Cluster: this node has no permit: neither etcd nor all members in sync answer");
  } else if (service == Service::kUp) {
    log_notice("Cluster: this node serves its slots");
  }
  parts_.state.set_service(service);
  parts_.host.service_changed();
}

void ClusterNode::carry_out(const ReadTopology& action) {
  // A topology that was restored from a backup may have a lower revision. So the topology counts as
  // unchanged only if its revision equals known_revision.
  EtcdTxn txn{{EtcdCompare::unchanged(keys_.topology, action.known_revision)}, {}, feed_->ranges()};
  // If etcd was restored from a backup, `bloomery-cluster recover` may store another topology at
  // exactly known_revision. So the topology is read even if the revision has not changed.
  const bool reads_all = member_->topology_fault() == TopologyFault::kOlder;
  if (reads_all) txn.success = txn.failure;
  etcd_.client->txn(txn, [this, action, reads_all](const EtcdResult<EtcdTxnReply>& result) {
    TopologyCheck check;
    if (result.answered() && result.reply.succeeded && !reads_all) {
      check.outcome = ReadOutcome::kUnchanged;
    } else if (result.answered()) {
      check = feed_->check_of(action.known_revision, result.reply);
    }
    member_->topology_read(permit_clock_us(), action.call, check.outcome, check.version);
    settle();
  });
}

void ClusterNode::carry_out(const ChangeTopology& action) {
  figures_->on_request(action);
  EtcdTxn txn;
  txn.compares = {EtcdCompare::unchanged(keys_.topology, action.revision)};
  if (!action.gone.empty()) txn.compares.push_back(EtcdCompare::absent(keys_.alive(action.gone)));
  if (action.needs_own_alive) {
    // If this node does not know a revision of its key alive/<own id>, the transaction compares the
    // key's revision with kNever. No key has this revision, so etcd rejects the change.
    const uint64_t own = presence_->mod_revision();
    constexpr uint64_t kNever = 1;
    txn.compares.push_back(EtcdCompare::unchanged(keys_.alive(file_.id), own == 0 ? kNever : own));
  }
  txn.success = {EtcdPut{keys_.topology, topology_json(action.topology)}};
  txn.failure = feed_->ranges();
  etcd_.client->txn(txn, [this, call = action.call](const EtcdResult<EtcdTxnReply>& result) {
    const int64_t now_us = permit_clock_us();
    if (!result.answered()) {
      // The outcome is unknown even if etcd refuses this attempt, because etcd may still execute an
      // earlier attempt.
      member_->topology_changed(now_us, call, ChangeOutcome::kUnknown);
    } else if (result.reply.succeeded) {
      member_->topology_changed(now_us, call, ChangeOutcome::kCommitted, result.reply.revision);
    } else {
      feed_->take(result.reply);
      member_->topology_changed(permit_clock_us(), call, ChangeOutcome::kRefused);
    }
    settle();
  });
}

void ClusterNode::ask_peer(const std::string& id, std::vector<std::string> words,
                           Peers::Handler handler, int64_t delay_ms) {
  const Node* const node = member_->topology().topology.node(id);
  if (node != nullptr) return peers_->call(*node, std::move(words), std::move(handler), delay_ms);
  boost::asio::post(io_, [handler = std::move(handler)] { handler(std::nullopt); });
}

void ClusterNode::carry_out(const AskPromise& action) {
  ask_peer(action.peer, {"CLUSTERX", "PROMISE", action.shard, std::to_string(action.epoch)},
           [this, call = action.call, peer = action.peer](const std::optional<std::string>& line) {
             member_->promise_answered(permit_clock_us(), call, peer, line == "+OK");
             settle();
           });
}

void ClusterNode::carry_out(const AskOffset& action) {
  ask_peer(action.peer, {"CLUSTERX", "OFFSET", action.shard},
           [this, call = action.call, peer = action.peer](const std::optional<std::string>& line) {
             std::optional<HistoryPosition> position;
             if (line && line->starts_with('+')) {
               HistoryPosition read;
               std::istringstream words(line->substr(1));
               if (words >> read.epoch >> read.offset) position = read;
             }
             member_->offset_answered(permit_clock_us(), call, peer, position);
             settle();
           });
}

void ClusterNode::carry_out(const ReportResigned& action) {
  ask_peer(
      action.peer, {"CLUSTERX", "RESIGNED", action.shard, std::to_string(action.epoch)},
      [this, action](const std::optional<std::string>& line) {
        if (line != "+OK") {
          return log_notice("Cluster: {} has not reported in time that it serves", action.peer);
        }
        member_->successor_serves(permit_clock_us(), action.shard, action.epoch);
        settle();
      },
      Succession::kAnswerUs / 1000);
}

void ClusterNode::carry_out(const KeepEpoch& action) {
  file_.kept_shard = action.shard;
  file_.kept_epoch = action.epoch;
  file_.kept_boot = boot_id();
  due_.file = true;
}

void ClusterNode::carry_out(const HoldWrites& action) {
  parts_.host.hold_writes([this, handover = action.handover](uint64_t offset) {
    post([handover, offset](Member& member, int64_t now_us) {
      member.writes_held(now_us, handover, offset);
    });
  });
}

void ClusterNode::carry_out(const Promote& action) {
  if (action.epoch != 0) {
    log_notice("Cluster: this node leads its shard in epoch {}", action.epoch);
  }
  followed_ = FollowedLeader{};
  slow_.role.run([this, epoch = action.epoch] {
    parts_.host.promote(epoch);
    post([this](Member& member, int64_t now_us) {
      member.tick(now_us, facts_of(parts_.host, member, *presence_));
    });
  });
}

void ClusterNode::carry_out(const Follow& action) {
  const Node* const leader = member_->topology().topology.node(action.leader);
  if (leader == nullptr) {
    followed_ = FollowedLeader{};
    return;
  }
  const uint64_t epoch = action.epoch;
  followed_ = FollowedLeader{action, *leader};
  log_notice("Cluster: this node follows {} in epoch {}", leader->id, epoch);
  slow_.role.run([this, node = *leader, epoch] {
    parts_.host.follow(node, epoch);
    post([this](Member& member, int64_t now_us) {
      member.tick(now_us, facts_of(parts_.host, member, *presence_));
    });
  });
}

}  // namespace server::cluster
