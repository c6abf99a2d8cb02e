// SPDX-License-Identifier: MIT
//
// ReplicationParts: references to the parts that the code of leaders and the code of replicas
// share.
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
