// SPDX-License-Identifier: MIT
//
// ClusterNode: this process as a node of a cluster. Its thread calls etcd and the other nodes, runs
// the Member, executes the Member's actions, and publishes the view for clients. Two more threads
// execute tasks that may block: changes of the role, and writes of cluster.json.
//
//   etcd ──► EtcdFeed ──► Member ──► actions ──► etcd, Peers
//                            │          └──────► LatestTask: NodeHost, cluster.json ──► Member
//                            └─────► ClusterState ──► threads that serve clients
//
// Invariants: no command of a client makes this node call etcd. The node's thread renews the lease,
// so it waits neither for the disk nor for locks of the data. The Member learns of a stored epoch
// after cluster.json was synced, and of a role after the server has changed to it.
// Thread safety: one thread must call make() and start(). Any thread may call post(), await(),
// ask_leader() and depart(). One thread at a time may call stop().
// Source: docs/architecture.md, "A cluster".
#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/result.h"
#include "server/cluster/cluster_state.h"
#include "server/cluster/election/member_queue.h"
#include "server/cluster/election/member_waits.h"
#include "server/cluster/election/node_file.h"
#include "server/cluster/etcd_client.h"
#include "server/cluster/view.h"
#include "server/cluster_node/departure.h"
#include "server/cluster_node/etcd_feed.h"
#include "server/cluster_node/etcd_report.h"
#include "server/cluster_node/latest_task.h"
#include "server/cluster_node/node_host.h"
#include "server/cluster_node/peers.h"
#include "server/cluster_node/presence.h"

namespace server {
class Config;
class Tls;
}  // namespace server

namespace server::cluster {

class Announcer;
class Member;
class NodeFigures;

// The leader that this node follows, with its address.
struct FollowedLeader {
  Follow action = {};
  Node node = {};

  bool has_moved(const Topology& topology) const;
};

class ClusterNode final : public MemberQueue {
 public:
  struct Parts {
    const Config& config;
    const Tls* tls;
    ClusterState& state;
    NodeHost& host;
    std::string run_id;
  };
  // Reads cluster.json, or creates it. Errors: invalid options for etcd, a file that cannot be
  // used, or the name of another cluster.
  static core::Result<std::unique_ptr<ClusterNode>> make(const Parts& parts);
  ~ClusterNode();
  ClusterNode(const ClusterNode&) = delete;
  ClusterNode& operator=(const ClusterNode&) = delete;

  const std::string& id() const { return file_.id; }
  void start();
  // Executes a step of this node's departure, and then calls `done`, both on the node's thread. If
  // that thread has not started, calls `done` at once. REQUIRES for kCloseList: no write runs, and
  // no write will begin.
  enum class Step : uint8_t { kHandOver, kCloseList };
  void depart(Step step, std::function<void()> done);
  // Removes this node from etcd and ends the thread. If a member that lacks data might then take
  // over, only ends the thread. The lease in etcd then expires later, so this node can restart and
  // lead again before that member takes over.
  void stop();
  // Runs the task on the node's thread, then executes the Member's actions.
  void post(std::function<void(Member&, int64_t now_us)> task) override;
  void await(std::function<bool(const Member&, int64_t now_us)> condition, int64_t limit_us,
             std::function<void(bool holds)> done) override;
  void ask_leader(std::vector<std::string> words, Peers::Handler done) override;

 private:
  // The work that settle() has to do: publish the view, write cluster.json, and release the held
  // writes.
  struct Due {
    bool view = true;
    bool file = false;
    bool release = false;
    int64_t file_after_us = 0;  // the file is not written before this time
  };

  ClusterNode(const Parts& parts, NodeFile file, std::string path,
              std::chrono::milliseconds timeout);

  core::Result<> connect();
  void tick();
  void topology_seen(const TopologyVersion& seen);
  // Called after each event. Executes the Member's actions and publishes changes to clients.
  void settle();
  void show_service();

  void carry_out(const ReadTopology& action);
  void carry_out(const ChangeTopology& action);
  void carry_out(const AskPromise& action);
  void carry_out(const AskOffset& action);
  void carry_out(const ReadLiveNodes& /*action*/) { feed_->check(); }
  void carry_out(const ReportResigned& action);
  void carry_out(const KeepEpoch& action);
  void carry_out(const HoldWrites& action);
  void carry_out(const ReleaseWrites& /*action*/) { due_.release = true; }
  void carry_out(const Promote& action);
  void carry_out(const Follow& action);
  // Calls Peers::call() for the node with this id. If the topology has no such node, the handler
  // gets nullopt.
  void ask_peer(const std::string& id, std::vector<std::string> words, Peers::Handler handler,
                int64_t delay_ms = 0);

  const Parts parts_;
  NodeFile file_;
  const std::string path_;
  const EtcdKeys keys_;
  const PermitTimes times_;
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  boost::asio::steady_timer timer_;
  const std::unique_ptr<Member> member_;
  std::optional<IdSet> alive_;  // ids of the live nodes; nullopt until etcd has answered
  Due due_;
  MemberWaits waits_;
  struct {
    EtcdReport report;
    std::unique_ptr<EtcdClient> client;
  } etcd_;
  std::unique_ptr<EtcdFeed> feed_;
  std::unique_ptr<Presence> presence_;
  std::unique_ptr<Announcer> announcer_;
  std::unique_ptr<Peers> peers_;
  Departure departure_;
  const std::unique_ptr<NodeFigures> figures_;
  FollowedLeader followed_;
  struct {
    LatestTask role;
    LatestTask file;
  } slow_;  // threads for tasks that may block
  std::atomic<bool> is_running_{false};
  std::thread thread_;
};

}  // namespace server::cluster
