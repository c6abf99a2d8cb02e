// SPDX-License-Identifier: MIT
//
// EtcdWatches: the watches of an EtcdClient. Each watch has its own connection, on which the reply
// does not end.
//
// Invariants: a watch reports each change once, in the order of revisions, however often its
// connection breaks. Between failed attempts to connect, the watch waits 50 ms at first, and at
// most one second.
// Thread safety: only the thread that runs the io_context may use an object.
// Source: https://etcd.io/docs/v3.4/learning/api/#watch-api.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string_view>

#include "server/cluster/etcd_calls.h"
#include "server/cluster/etcd_client.h"

namespace server::cluster {

class EtcdWatches : public std::enable_shared_from_this<EtcdWatches> {
 public:
  explicit EtcdWatches(std::shared_ptr<EtcdCalls> calls) : calls_(std::move(calls)) {}

  uint64_t start(const EtcdWatch& request, std::function<void(EtcdWatchNews)> handler);
  void cancel(uint64_t number);
  // Ends all watches without calling their handlers.
  void stop();
  // Moves each watch that uses another member to the current member.
  void move();

 private:
  struct Watch;
  using WatchPointer = std::shared_ptr<Watch>;

  boost::asio::awaitable<void> run(WatchPointer watch);
  // Runs the watch on one connection, until the connection ends.
  boost::asio::awaitable<EtcdError> follow(WatchPointer watch);
  EtcdCalls::Stream stream_of(const WatchPointer& watch);
  // Handles one message of the watch. Returns the error that ends the watch, or kOk.
  EtcdError on_message(const WatchPointer& watch, std::string_view line);
  void on_changes(const WatchPointer& watch, EtcdWatchReply reply);
  bool is_final(const WatchPointer& watch, const EtcdError& error);

  std::shared_ptr<EtcdCalls> calls_;
  std::map<uint64_t, WatchPointer> watches_;
  uint64_t last_number_ = 0;
};

}  // namespace server::cluster
