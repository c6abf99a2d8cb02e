// SPDX-License-Identifier: MIT
//
// ReplicationParts: references to the objects that both the leader's and the replica's code use.
//
// Thread safety: the type of each member states its thread safety.
#pragma once

#include "server/durability/data/data_parts.h"

namespace server {

class Durability;

struct ReplicationParts : DataParts {
  Durability& durability;
};

}  // namespace server
