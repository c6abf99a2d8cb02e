// SPDX-License-Identifier: MIT
//
// Peers: sends other nodes of the cluster short commands (CLUSTERX), which are answered in one
// line. Each called address has one link and one thread, until keep_only() ends the link. The link
// is kept between calls. A thread may wait long in a lookup by DNS, so only the destructor waits
// for threads.
//
// Invariants: each handler runs once, on the io_context, unless the io_context stops first. Calls
// to one address run one after the other. A call first waits for the earlier calls to its address.
// Then it ends within its time limit, plus the time of a lookup by DNS. A call that has waited for
// longer than its time limit is not sent, and its handler gets nullopt.
// Thread safety: members are called on the thread that runs the io_context.
// Source: RESP, https://redis.io/docs/latest/develop/reference/protocol-spec/.
#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/cluster/topology.h"

namespace server {
class Config;
class Tls;
}  // namespace server

namespace server::cluster {

class Peers {
 public:
  static constexpr int64_t kLimitMs = 300;

  // Receives the reply line without its end, "+OK" or "-NO …"; nullopt if the node has not
  // answered.
  using Handler = std::function<void(const std::optional<std::string>& line)>;

  // Links to peers use the same options for authentication and TLS as a replica's link to its
  // leader: masteruser, masterauth and tls-replication.
  Peers(boost::asio::io_context& io, const Config& config, const Tls* tls,
        int64_t limit_ms = kLimitMs);
  // Ends the threads of all links, and waits for them.
  ~Peers();
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // Sends the command. `delay_ms` is added to the time limit, for a command that the node answers
  // only after an event.
  void call(const Node& node, std::vector<std::string> words, Handler handler,
            int64_t delay_ms = 0);
  // Ends the links to addresses that the topology does not contain.
  void keep_only(const Topology& topology);

 private:
  class Link;
  using Address = std::pair<std::string, uint16_t>;

  Address address_of(const Node& node) const;

  boost::asio::io_context& io_;
  const Config& config_;
  const Tls* const tls_;
  const int64_t limit_ms_;
  std::map<Address, std::unique_ptr<Link>> links_;
  std::vector<std::unique_ptr<Link>> ending_;  // links whose threads may still run
};

}  // namespace server::cluster
