// SPDX-License-Identifier: MIT
//
// ToolCall: what the arguments of bloomery-cluster ask for.
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
  NodeAccess access = {};  // but for the password
  std::string node_password_file = {};

  std::string command = {};
  std::vector<Address> nodes =
      {};  // of create, recover and restore all, of add, remove and replace one
  unsigned replicas = 0;
  std::string shard = {};
  std::string directory = {};  // of backup and restore
  std::optional<Address> to = {};
  bool force = false;
  bool is_confirmed = false;
  bool accepts_loss = false;
};

// Help, the version, or what is wrong with the arguments.
struct ToolUsage {
  int exit_code = 0;
  std::string out;
  std::string err;
};

// `words` without the program's own name.
std::variant<ToolCall, ToolUsage> parse_tool_call(std::vector<std::string> words);

}  // namespace server::cluster
