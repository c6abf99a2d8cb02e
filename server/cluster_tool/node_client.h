// SPDX-License-Identifier: MIT
//
// NodeClient: sends commands to one server by RESP, and reads the server's state for
// bloomery-cluster.
//
// Invariants: every wait for the server ends after three seconds. With TLS a server's certificate
// is checked against the certificate authorities before anything is sent. As with redis-cli, the
// host name is not checked.
// Thread safety: none.
// Source: RESP, https://redis.io/docs/latest/develop/reference/protocol-spec/.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "protocol/reply.h"
#include "server/base/transport/resp_client.h"
#include "server/cluster/cluster_counters.h"
#include "server/cluster/election/node_file.h"
#include "server/cluster_tool/plan.h"

namespace server::cluster {

// The credentials and the encryption for connections to servers.
struct NodeAccess {
  std::string user;      // user name for AUTH; empty: the default user
  std::string password;  // password for AUTH; empty: AUTH is not sent
  bool uses_tls = false;
  std::string ca_file;    // file of trusted CA certificates; empty: those of the system
  std::string cert_file;  // file of the tool's own certificate; empty: none
  std::string key_file;
};

class NodeClient {
 public:
  // Connects and authenticates. Errors: the server cannot be reached, the password is wrong, or a
  // certificate or key file cannot be used. Each error names the address and the reason.
  static core::Result<NodeClient> connect(const Address& address, const NodeAccess& access);

  // Sends a command and returns its reply. Errors: no answer in time, and errors that the server
  // returns.
  core::Result<protocol::Reply> call(const std::vector<std::string>& words);
  // Sends the commands in pipelines, and returns their replies in the same order. Errors: those of
  // call().
  core::Result<std::vector<protocol::Reply>> call_all(
      std::span<const std::vector<std::string>> commands);
  // These functions serve commands whose reply is not RESP. send() sends the command. read_line()
  // and read_some() read the reply, as in RespClient.
  core::Result<> send(const std::vector<std::string>& words) {
    return named(link_.send_command(words));
  }
  core::Result<std::string> read_line() { return named(link_.read_line()); }
  core::Result<std::string> read_some() { return named(link_.read_some()); }

 private:
  explicit NodeClient(std::string name);
  core::Error failure(std::string_view why) const;
  core::Result<protocol::Reply> read_reply();
  // Adds the server's address to the error, if there is one.
  template <class T>
  core::Result<T> named(core::Result<T> result) const {
    if (!result) return failure(result.error().message);
    return result;
  }

  std::string name_;
  RespClient link_;
};

// The state that a server reports about itself.
struct NodeFacts {
  Node node;  // the node, with the address that clients use
  bool in_cluster_mode = false;
  int64_t keys = 0;            // number of keys in the slots of the server's shard
  int64_t stored_keys = 0;     // number of keys in all slots
  std::string role;            // role in INFO: "master" or "slave"
  int64_t offset = 0;          // offset of the replication stream
  int64_t topology_epoch = 0;  // revision of the topology that the server has; 0: none
  std::string cluster_state;   // cluster_state of CLUSTER INFO: "ok" or "fail"

  // The state of etcd's topology as the server sees it: "ok", "absent", "older" or "invalid".
  std::string topology_state = {};
  int64_t since_ready_s = 0;  // time since the server had loaded its data at its start
  bool log_works = true;  // false if the append log cannot be written, so the server refuses writes
  std::string version = {};  // version of the server's program

  // Numbers of failovers by cause, in the order of kFailoverCauses.
  std::array<int64_t, kFailoverCauses.size()> failovers{};
  int64_t permit_lapses = 0;
  // True while the server loads data. Its keys, id and cluster state are then unknown.
  bool is_loading = false;
  bool link_is_up = true;  // false on a replica whose link to its leader is down
};

// Asks a server for its state. Errors: errors of NodeClient, and a reply of an unexpected form.
core::Result<NodeFacts> ask_node(const Address& address, const NodeAccess& access);

// Asks for the server's cluster.json, by CLUSTERX TOPOLOGY. Version 1.0.0 replies without the name
// of the cluster, so CONFIG GET reads it. It is empty if the server does not allow CONFIG.
// Errors: errors of NodeClient, and a reply of an unexpected form.
core::Result<NodeFile> ask_kept(const Address& address, const NodeAccess& access);

// Returns the value of the line "name:value" in INFO's text; empty if there is none.
std::string_view info_field(std::string_view text, std::string_view name);

}  // namespace server::cluster
