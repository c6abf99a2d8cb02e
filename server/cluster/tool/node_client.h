// SPDX-License-Identifier: MIT
//
// NodeClient: asks one server by RESP, and what bloomery-cluster wants to know of it.
//
// Invariants: every call ends within three seconds. REDISCLI_AUTH of the environment is the
// password, as for redis-cli.
// Thread safety: none.
// Source: RESP, https://redis.io/docs/latest/develop/reference/protocol-spec/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "protocol/reply.h"
#include "protocol/reply_parser.h"
#include "server/cluster/tool/plan.h"

namespace server::cluster {

class NodeClient {
 public:
  // Errors: the address, and why it cannot be reached.
  static core::Result<NodeClient> connect(const Address& address);
  ~NodeClient();
  NodeClient(NodeClient&& other) noexcept;
  NodeClient& operator=(NodeClient&&) = delete;

  // Errors: no answer in time, and what the server answers as an error.
  core::Result<protocol::Reply> call(const std::vector<std::string>& words);

 private:
  NodeClient(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}
  core::Error failure(std::string_view why) const;

  int descriptor_;
  std::string name_;
  std::string input_;
  protocol::ReplyParser parser_;
};

// What a server says of itself.
struct NodeFacts {
  Node node;  // as clients are to reach it
  bool in_cluster_mode = false;
  int64_t keys = 0;
  std::string role;            // "master" or "slave"
  int64_t offset = 0;          // of the replication stream
  int64_t topology_epoch = 0;  // the revision of the topology that it has; 0: none
  std::string cluster_state;   // "ok" or "fail"
};

// Errors: as NodeClient's, and a reply that makes no sense.
core::Result<NodeFacts> ask_node(const Address& address);

// The value of "name:value" in a text of lines, as INFO has it; "" if there is none.
std::string_view info_field(std::string_view text, std::string_view name);

}  // namespace server::cluster
