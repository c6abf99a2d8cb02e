// SPDX-License-Identifier: MIT
//
// Defines the module entry that clients look for before they use BF.* commands. It has RedisBloom's
// name and version.
#pragma once

#include "protocol/reply_writer.h"
#include "server/base/process/compatibility.h"

namespace server {

inline void write_module_list(protocol::ReplyWriter& reply) {
  reply.array(1);
  reply.map(4);
  reply.bulk("name");
  reply.bulk("bf");
  reply.bulk("ver");
  reply.integer(kCompatibleModuleVersion);
  reply.bulk("path");
  reply.bulk("");
  reply.bulk("args");
  reply.array(0);
}

}  // namespace server
