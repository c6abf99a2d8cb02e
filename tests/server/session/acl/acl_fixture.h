// SPDX-License-Identifier: MIT
//
// Creates a small command table for tests of ACL rules.
//
// Thread-safe: the functions keep no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "server/session/acl/command_table.h"
#include "server/session/acl/user.h"

namespace server::acl {

enum TestCategory : uint32_t { kTestRead = 1, kTestWrite = 2, kTestSlow = 4, kTestAdmin = 8 };
enum TestCommand : size_t { kGet, kSet, kSelect, kConfig, kConfigGet, kConfigSet, kPing };

inline CommandTable test_table() {
  std::vector<CommandEntry> entries{
      {.name = "get", .categories = kTestRead},
      {.name = "set", .categories = kTestWrite},
      {.name = "select"},
      {.name = "config", .categories = kTestSlow, .subcommands = {kConfigGet, kConfigSet}},
      {.name = "config|get", .parent = "config", .categories = kTestSlow | kTestAdmin},
      {.name = "config|set", .parent = "config", .categories = kTestSlow | kTestAdmin},
      {.name = "ping"},
  };
  return {std::move(entries), {"read", "write", "slow", "admin"}};
}

}  // namespace server::acl
