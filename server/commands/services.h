// SPDX-License-Identifier: MIT
//
// Services: all of the process that commands about connections and about the server may use, and
// the network: the environment of every command, and what stands above dispatch/.
//
// Built once by Server, which owns all of it. No logic lives here. Types are only named: a file
// includes the headers of those that it uses.
// Thread safety: each member says its own.
#pragma once

#include "server/dispatch/environment.h"

namespace server {

class Clients;
class Durability;
class Follower;
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
  Follower& follower;
  Shutdown& shutdown;
  Gauges& gauges;
  const ProcessFacts& facts;
  cluster::MemberQueue* member = nullptr;  // null outside of a cluster that etcd describes
};

}  // namespace server
