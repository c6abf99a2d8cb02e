// SPDX-License-Identifier: MIT
//
// ToolCall: the parsed arguments of bloomery-cluster.
//
// Thread safety: values and pure functions.
// Source: docs/cluster.md.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "server/cluster/tool/node_client.h"
#include "server/cluster/tool/plan.h"

namespace server::cluster {

struct ToolCall {
  std::vector<std::string> endpoints;
  std::string cluster = "bloomery";
  std::string user = {};
  std::string password_file = {};
  std::string ca_file = {};
  bool as_json = false;
  NodeAccess access = {};  // without the password
  std::string node_password_file = {};

  std::string command = {};
  std::vector<Address> nodes =
      {};  // create, recover and restore take several; add, remove and replace one
  unsigned replicas = 0;
  std::string shard = {};
  std::string directory = {};  // of backup and restore
  std::optional<Address> to = {};
  bool force = false;
  bool is_confirmed = false;
  bool accepts_loss = false;
};

// Help, the version, or the error in the arguments.
struct ToolUsage {
  int exit_code = 0;
  std::string out;
  std::string err;
};

// `words` without the program's own name.
std::variant<ToolCall, ToolUsage> parse_tool_call(std::vector<std::string> words);

}  // namespace server::cluster
