// SPDX-License-Identifier: MIT
//
// EtcdFeed: what etcd has of one cluster, kept up to date: the topology and who is alive. It reads
// both at once and watches from there; when the watch ends it reads anew.
//
// Invariants: versions of the topology that it tells only grow. A document that is not valid is
// passed over.
// Thread safety: belongs to the thread that runs the io_context.
// Source: https://etcd.io/docs/v3.4/learning/api/#watch-api.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <functional>
#include <string>

#include "server/cluster/etcd_client.h"
#include "server/cluster/etcd_keys.h"
#include "server/cluster/member/member_state.h"
#include "server/cluster/topology.h"

namespace server::cluster {

// The keys of a cluster in etcd.
struct EtcdKeys {
  explicit EtcdKeys(const std::string& name)
      : prefix(cluster_prefix(name)),
        topology(topology_key(name)),
        alive_prefix(cluster::alive_prefix(name)) {}
  std::string alive(const std::string& id) const { return alive_prefix + id; }

  const std::string prefix;
  const std::string topology;
  const std::string alive_prefix;
};

class EtcdFeed {
 public:
  struct Handlers {
    std::function<void(const TopologyVersion&)> on_topology;
    std::function<void(const IdSet&)> on_alive;
  };
  EtcdFeed(boost::asio::io_context& io, EtcdClient& client, const EtcdKeys& keys,
           Handlers handlers);

  void start() { read(); }
  // What a call besides has brought.
  void take_topology(const EtcdKeyValue& stored);

 private:
  void read();
  void read_later();
  void take_all(const EtcdTxnReply& reply);
  void take_news(const EtcdWatchNews& news);
  void take_event(const EtcdEvent& event);

  EtcdClient& client_;
  const EtcdKeys& keys_;
  const Handlers handlers_;
  boost::asio::steady_timer timer_;
  uint64_t revision_ = 0;  // of the topology that was told last
  IdSet alive_;
};

}  // namespace server::cluster
