// SPDX-License-Identifier: MIT
//
// DataParts: references to the objects that are needed to save, load and replicate the data set.
//
// This header only declares the types of the objects. A source file includes the headers of the
// types that it uses.
// Thread safety: the type of each member states its thread safety.
#pragma once

namespace core {
class Clock;
}
namespace core::keyspace {
class Keyspace;
}
namespace persistence {
class FileSystem;
class Journal;
}  // namespace persistence

namespace server {

class Config;
struct ServerState;

struct DataParts {
  Config& config;
  const core::Clock& clock;
  core::keyspace::Keyspace& keyspace;
  persistence::Journal& journal;
  persistence::FileSystem& files;
  ServerState& state;
};

}  // namespace server
