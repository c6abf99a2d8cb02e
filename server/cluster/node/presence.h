// SPDX-License-Identifier: MIT
//
// Presence: this node's key alive/<id> in etcd, under a lease that is kept alive. Others see by its
// absence that this node may have died.
//
// Invariants: the key is created only where there is none, so two processes with one id are not
// both present: the second one waits, leads nothing and says so in the log. mod_revision() names a
// key that this process has created.
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
    std::chrono::milliseconds timeout;  // cluster-node-timeout
  };
  // `may_appear`: whether the key is to be written now.
  Presence(boost::asio::io_context& io, EtcdClient& client, LeaseSettings settings,
           std::function<bool()> may_appear);

  void start() { step(); }
  // The revision that created the own key; 0 while there is none, or none is known.
  uint64_t mod_revision() const { return mod_revision_; }
  // By permit_clock_us(): until then the own key is there, unless etcd ends its lease early; 0:
  // none.
  int64_t held_until_us() const { return mod_revision_ == 0 ? 0 : lease_until_us_; }
  bool etcd_answers() const { return etcd_answers_; }
  // Somebody has deleted the key, or it is not seen yet: it is written anew if it is not there.
  void key_is_missing() { mod_revision_ = 0; }
  // Gives the lease back, so that others need not wait for its end. `done` is always called.
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
  int64_t barred_us_ = 0;       // since when the key is another process's; 0: it is not
  int64_t twin_logged_us_ = 0;  // last log line about the other process; 0: none
};

}  // namespace server::cluster
