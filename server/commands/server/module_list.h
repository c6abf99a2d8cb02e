// SPDX-License-Identifier: MIT
//
// Defines the module entry that clients look for before they use BF.* commands. It has RedisBloom's
// name and version.
//
// Thread-safe: the function uses only the given ReplyWriter.
#pragma once

#include "protocol/reply_writer.h"
#include "server/base/process/compatibility.h"
#include "server/commands/pair_writer.h"

namespace server {

inline void write_module_list(protocol::ReplyWriter& reply) {
  reply.array(1);
  reply.map(4);
  PairWriter pairs(reply);
  pairs.text("name", "bf");
  pairs.integer("ver", kCompatibleModuleVersion);
  pairs.text("path", "");
  reply.bulk("args");
  reply.array(0);
}

}  // namespace server
