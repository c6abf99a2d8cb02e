// SPDX-License-Identifier: MIT
//
// A small topology for tests.
//
// Thread-safe: the functions keep no state.
#pragma once

#include <string>

#include "server/cluster/topology.h"

namespace server::cluster {

inline std::string id_of(char digit) {
  return std::string(40, digit);
}

// Returns a topology of two shards. The first has the leader a and the replica b, the second only
// the leader c.
inline Topology sample_topology() {
  Topology topology;
  topology.nodes = {{id_of('a'), "10.0.0.1", 7001, 0, ""},
                    {id_of('b'), "10.0.0.2", 7001, 7101, "b.example"},
                    {id_of('c'), "10.0.0.3", 7001, 0, ""}};
  topology.shards = {
      {"s1",
       7,
       id_of('a'),
       {id_of('a'), id_of('b')},
       {id_of('a'), id_of('b')},
       {{0, 5460}, {7000, 7000}}},
      {"s2", 1, id_of('c'), {id_of('c')}, {id_of('c')}, {{5461, 6999}, {7001, 16383}}}};
  return topology;
}

}  // namespace server::cluster
