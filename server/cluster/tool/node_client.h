// SPDX-License-Identifier: MIT
//
// NodeClient: sends commands to one server by RESP, and reads the facts that bloomery-cluster
// needs.
//
// Invariants: every call ends within three seconds. With TLS a server's certificate is checked
// against the authorities before anything is sent. As in redis-cli, the name is not checked.
// Thread safety: none.
// Source: RESP, https://redis.io/docs/latest/develop/reference/protocol-spec/.
#pragma once

#include <openssl/ossl_typ.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "protocol/reply.h"
#include "protocol/reply_parser.h"
#include "server/cluster/cluster_counters.h"
#include "server/cluster/member/node_file.h"
#include "server/cluster/tool/plan.h"

namespace server::cluster {

// The credentials and the encryption for connections to servers.
struct NodeAccess {
  std::string user;      // empty: the default one
  std::string password;  // empty: no AUTH
  bool uses_tls = false;
  std::string ca_file;    // empty: the system's authorities
  std::string cert_file;  // certificate of this client; empty: none
  std::string key_file;
};

class NodeClient {
 public:
  // Errors: the address, and why it cannot be reached; a wrong password; files of TLS.
  static core::Result<NodeClient> connect(const Address& address, const NodeAccess& access);
  ~NodeClient();
  NodeClient(NodeClient&& other) noexcept;
  NodeClient& operator=(NodeClient&&) = delete;

  // Errors: no answer in time, and errors that the server answers.
  core::Result<protocol::Reply> call(const std::vector<std::string>& words);
  // For replies that are not RESP. send() sends a command, read_some() reads some bytes of the
  // reply.
  // Errors: the connection has ended, or nothing came in time.
  core::Result<> send(const std::vector<std::string>& words);
  core::Result<std::string> read_some();

 private:
  struct TlsEnd {
    void operator()(SSL* tls) const;
  };

  NodeClient(int descriptor, std::string name) : descriptor_(descriptor), name_(std::move(name)) {}
  core::Error failure(std::string_view why) const;
  core::Result<> begin_tls(const NodeAccess& access);
  core::Result<> authenticate(const NodeAccess& access);
  // Like send() and recv().
  int64_t write(std::string_view bytes);
  int64_t read(char* room, size_t size);
  std::string last_failure() const;

  int descriptor_;
  std::unique_ptr<SSL, TlsEnd> tls_;  // null without encryption
  std::string name_;
  std::string input_;
  protocol::ReplyParser parser_;
};

// The state that a server reports.
struct NodeFacts {
  Node node;  // with the address for clients
  bool in_cluster_mode = false;
  int64_t keys = 0;            // in slots of its shard
  int64_t stored_keys = 0;     // also in other slots
  std::string role;            // "master" or "slave"
  int64_t offset = 0;          // of the replication stream
  int64_t topology_epoch = 0;  // the revision of the topology that it has; 0: none
  std::string cluster_state;   // "ok" or "fail"
  // Of the topology in etcd, as the server sees it: "ok", "absent", "older" or "invalid".
  std::string topology_state = {};
  int64_t uptime_s = 0;
  bool log_works = true;     // false: the append log fails, so the server refuses writes
  std::string version = {};  // of the program
  // By cause, in the order of kFailoverCauses.
  std::array<int64_t, kFailoverCauses.size()> failovers{};
  int64_t permit_lapses = 0;
  bool is_loading = false;  // then the keys, the id and the state of the cluster are unknown
  bool link_is_up = true;   // a replica's link to its leader
};

// Errors: as NodeClient's, and a reply that makes no sense.
core::Result<NodeFacts> ask_node(const Address& address, const NodeAccess& access);

// Asks for the server's cluster.json, by CLUSTERX TOPOLOGY.
// Errors: as NodeClient's, and a reply that makes no sense.
core::Result<NodeFile> ask_kept(const Address& address, const NodeAccess& access);

// The value of "name:value" in a text of lines, as INFO has it; "" if there is none.
std::string_view info_field(std::string_view text, std::string_view name);

}  // namespace server::cluster
