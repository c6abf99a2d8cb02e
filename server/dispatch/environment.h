// SPDX-License-Identifier: MIT
//
// Environment: references to the parts of the process that dispatching and data commands use.
//
// Server builds the object, and owns all parts that it refers to. The struct contains no
// logic. Types are forward-declared: a source file includes the headers of the types that it uses.
// Thread safety: the type of each member states its thread safety.
#pragma once

namespace core {
class Clock;
}
namespace core::keyspace {
class Keyspace;
class Reclaimer;
}  // namespace core::keyspace
namespace persistence {
class Journal;
}

namespace server::acl {
class Users;
}
namespace server::cluster {
class ClusterState;
}

namespace server {

class Config;
class KeyEvents;
class MemoryMonitor;
class Observer;
class OwnChanges;
class PauseGate;
class PubSub;
class Registry;
class Statistics;
class Tracking;
struct ServerState;
struct Services;

struct Environment {
  Config& config;
  const core::Clock& clock;
  core::keyspace::Keyspace& keyspace;
  core::keyspace::Reclaimer& reclaimer;
  persistence::Journal& journal;
  const Registry& registry;
  PubSub& pubsub;
  KeyEvents& key_events;
  Tracking& tracking;
  Statistics& statistics;
  MemoryMonitor& memory;
  PauseGate& pause;
  ServerState& state;
  OwnChanges& own_changes;
  Observer& observer;
  acl::Users& users;
  cluster::ClusterState& cluster;
  // The services of the whole server. Commands on data, in commands/bloom/, commands/keys/ and
  // commands/strings/, must not use this member. A file that uses it includes services.h.
  Services& services;
};

}  // namespace server
