// SPDX-License-Identifier: MIT
//
// Services: extends the Environment for commands about connections, replication and the server.
// Refers to all parts of the process that these commands use, including the network and other code
// above dispatch/.
//
// The class Server builds the Services object, and owns all parts to which this object refers. The
// struct contains no logic. Types are forward-declared: a source file includes the headers of the
// types that it uses.
// Thread safety: the type of each member states its thread safety.
#pragma once

#include "server/dispatch/environment.h"

namespace server {

class Clients;
class Durability;
class ReplicaController;
class Leader;
class Replication;
class Shutdown;
class TickClock;
struct Gauges;
struct ProcessFacts;

namespace cluster {
class MemberQueue;
}

struct Services : Environment {
  const TickClock& ticks;
  Clients& clients;
  Durability& durability;
  Replication& replication;
  Leader& leader;
  ReplicaController& replica_controller;
  Shutdown& shutdown;
  Gauges& gauges;
  const ProcessFacts& facts;
  // Passes tasks to the thread of this server's ClusterNode. Null unless this server is a node of a
  // cluster on etcd.
  cluster::MemberQueue* member = nullptr;
};

}  // namespace server
