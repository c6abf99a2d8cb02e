// SPDX-License-Identifier: MIT
//
// Presence: this node's key alive/<id> in etcd, under a lease that is kept alive. If the key is
// absent, other nodes suppose that this node may have died.
//
// Invariants: the key is created only if it does not exist. So of two processes with the same id,
// only one has the key. The other process waits, leads no shard and logs the reason. mod_revision()
// belongs to a key that this process has created.
// Thread safety: belongs to the thread that runs the io_context.
// Source: https://etcd.io/docs/v3.4/learning/api/#lease-api.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "server/cluster/etcd_client.h"

namespace server::cluster {

class Presence {
 public:
  struct LeaseSettings {
    std::string key;
    std::string value;
    std::chrono::milliseconds timeout;  // value of cluster-node-timeout
  };
  // `may_appear` returns whether the key may be written now.
  Presence(boost::asio::io_context& io, EtcdClient& client, LeaseSettings settings,
           std::function<bool()> may_appear);

  void start() { step(); }
  // Returns the revision at which this process created its key; 0 if the key or its revision is
  // unknown.
  uint64_t mod_revision() const { return mod_revision_; }
  // Returns the time by permit_clock_us() until which this node's key exists, unless etcd ends the
  // lease early. Returns 0 if this process has no key.
  int64_t held_until_us() const { return mod_revision_ == 0 ? 0 : lease_until_us_; }
  bool etcd_answers() const { return etcd_answers_; }
  // Called when the list of live nodes in etcd lacks this node. Makes Presence write the node's key
  // alive/<own id> again.
  void key_is_missing() { mod_revision_ = 0; }
  // Revokes the lease, so that other nodes need not wait until it expires. `done` is always called.
  void leave(std::function<void()> done);

 private:
  void step();
  void step_in(std::chrono::milliseconds delay);
  void ask_lease();
  void appear();
  void took(const EtcdTxnReply& reply);
  void wait_for_other();
  void keep_alive();
  void record_lease(int64_t sent_us);
  void lose();

  EtcdClient& client_;
  const LeaseSettings settings_;
  const std::function<bool()> may_appear_;
  boost::asio::steady_timer timer_;
  uint64_t lease_ = 0;
  int64_t lease_until_us_ = 0;
  uint64_t mod_revision_ = 0;
  bool etcd_answers_ = false;
  bool has_left_ = false;
  // Time at which this process found that another process holds the key alive/<own id>; 0 if no
  // other process holds it.
  int64_t barred_us_ = 0;
  int64_t twin_logged_us_ = 0;  // time of the last log line about the other process; 0: none
};

}  // namespace server::cluster
