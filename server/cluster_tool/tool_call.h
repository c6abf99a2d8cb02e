// SPDX-License-Identifier: MIT
//
// ToolCall: the parsed arguments of bloomery-cluster.
//
// Thread safety: the functions are pure; a value shared by threads needs a lock.
// Source: docs/cluster.md.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "server/cluster_tool/node_client.h"
#include "server/cluster_tool/plan.h"

namespace server::cluster {

struct ToolCall {
  std::vector<std::string> endpoints;
  std::string cluster = "bloomery";
  std::string user = {};
  std::string password_file = {};
  std::string ca_file = {};
  std::string cert_file = {};
  std::string key_file = {};
  bool as_json = false;
  NodeAccess access = {};  // user and TLS settings for connections to the servers; no password
  std::string node_password_file = {};

  std::string command = {};
  std::vector<Address> nodes =
      {};  // create, recover and restore take several servers; add, remove and replace one
  unsigned replicas = 0;
  std::string shard = {};
  std::string directory = {};  // directory of the backup, for backup and restore
  std::optional<Address> to = {};
  bool force = false;
  bool is_confirmed = false;
  bool accepts_loss = false;
};

// The text and exit status for help, the version, or an error in the arguments.
struct ToolUsage {
  int exit_code = 0;
  std::string out;
  std::string err;
};

// Parses the arguments of the program, without its name.
std::variant<ToolCall, ToolUsage> parse_tool_call(std::vector<std::string> words);

}  // namespace server::cluster
