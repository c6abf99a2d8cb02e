// SPDX-License-Identifier: MIT
//
// EtcdFeed: follows the data of one cluster in etcd, which are the topology and the live nodes.
// EtcdFeed reads both at one revision, and watches changes from that revision on. When the watch
// ends, it reads both again.
//
// A watch may be silent although its connection looks alive, for example when a middlebox drops its
// packets. So the feed also reads the topology and the live nodes every `check_interval`. It starts
// the watch again when the read shows changes that the watch has not reported.
//
// Invariants: the revisions of the reported topologies increase, until a read shows that etcd was
// restored from an older backup. An invalid document is not reported, nor is a document whose slots
// changed without a record (see slot_record.h).
// Thread safety: belongs to the thread that runs the io_context.
// Source: https://etcd.io/docs/v3.4/learning/api/#watch-api.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "server/cluster/election/member_state.h"
#include "server/cluster/etcd_client.h"
#include "server/cluster/etcd_keys.h"
#include "server/cluster/slot_record.h"
#include "server/cluster/topology.h"

namespace server::cluster {

// The answer to a linearizable read of the topology. `known_revision` is the revision of the
// topology that this node knew when it sent the read.
struct TopologyCheck {
  uint64_t known_revision = 0;
  ReadOutcome outcome = ReadOutcome::kUnknown;
  TopologyVersion version = {};  // the topology that was read, with ReadOutcome::kChanged
};
class EtcdFeed {
 public:
  struct Handlers {
    std::function<void(const TopologyVersion&)> on_topology;
    std::function<void(const IdSet&)> on_alive;
    // Returns the topology that the owner of the feed has adopted.
    std::function<const TopologyVersion&()> known;
    std::function<void(const TopologyCheck&)> on_check;
    // Called when the watch reports that the topology was deleted. The watch has then reported all
    // earlier changes.
    std::function<void()> on_deleted;
    // Called when the ID of the etcd cluster becomes known, and each time it changes.
    std::function<void(const std::string& cluster_id)> on_etcd;
  };
  EtcdFeed(boost::asio::io_context& io, EtcdClient& client, const EtcdKeys& keys,
           std::chrono::milliseconds check_interval, Handlers handlers);

  void start() { read(); }
  // Reads the topology and the live nodes now. Calls the handlers if the read shows changes that
  // the watch has not reported.
  void check() { read(); }
  // Returns the read operations whose replies take() and check_of() accept.
  std::vector<EtcdOperation> ranges() const;
  // Reports the topology in `reply` if it is newer than the last one. `reply` must come from a
  // transaction with the operations that ranges() returns.
  void take(const EtcdTxnReply& reply);
  // Compares the topology in `reply` with the one at `known_revision`, which was known when the
  // request was sent. `reply` must come from a transaction with the operations that ranges()
  // returns.
  TopologyCheck check_of(uint64_t known_revision, const EtcdTxnReply& reply);

 private:
  void read();
  void read_in(std::chrono::milliseconds delay);
  void take_all(const EtcdTxnReply& reply);
  // Returns whether the reply shows that etcd has lost changes that it reported before. `floor` is
  // a revision that etcd had earlier.
  bool has_gone_back(const EtcdTxnReply& reply, uint64_t floor);
  bool is_recovered(const EtcdKeyValue& stored) const;
  void watch_from(uint64_t revision);
  void take_news(const EtcdWatchNews& news);
  void take_event(const EtcdEvent& event);
  void take_record(const EtcdKeyValue* stored);
  void take_topology(const EtcdKeyValue& stored);
  core::Result<Topology> accept(const EtcdKeyValue& stored) const;

  EtcdClient& client_;
  const EtcdKeys& keys_;
  const std::chrono::milliseconds check_interval_;
  const Handlers handlers_;
  boost::asio::steady_timer timer_;
  uint64_t revision_ = 0;  // revision of the last topology, valid or not
  SlotRecord record_;
  std::optional<EtcdKeyValue> refused_;  // the last topology in etcd, if it is not valid
  IdSet alive_;
  std::string cluster_id_;
  uint64_t watch_ = 0;  // number of the watch; 0: none

  // alive_ contains all changes up to this revision of etcd.
  uint64_t store_revision_ = 0;
};

}  // namespace server::cluster
