// SPDX-License-Identifier: MIT
//
// ReplicationParts: references to the objects that both the leader's and the replica's code use.
//
// Thread safety: stated at each member.
#pragma once

#include "server/durability/data/data_parts.h"

namespace server {

class Durability;

struct ReplicationParts : DataParts {
  Durability& durability;
};

}  // namespace server
