// SPDX-License-Identifier: MIT
#include "server/cluster/router.h"

#include <gtest/gtest.h>

#include "tests/server/cluster/sample_topology.h"

namespace server::cluster {
namespace {

constexpr unsigned kOwnShard = 5;    // a slot of shard s1, whose leader is a and whose replica is b
constexpr unsigned kForeign = 6000;  // a slot of shard s2, whose leader is c

View view_of(char own) {
  return View(id_of(own), {sample_topology(), 9}, {});
}

RouteConditions up() {
  return {.service = Service::kUp};
}

TEST(RouterTest, LeaderServesItsOwnSlots) {
  const View view = view_of('a');
  EXPECT_EQ(route(view, up(), {.slot = kOwnShard}), Route::kServe);
  EXPECT_EQ(route(view, up(), {.slot = kOwnShard, .writes = true}), Route::kServe);
  EXPECT_EQ(route(view, up(), {.slot = kOwnShard, .writes = true, .is_channel = true}),
            Route::kServe);
  EXPECT_EQ(route(view, up(), {.slot = kForeign}), Route::kMoved);
  EXPECT_EQ(route(view, up(), {.slot = kForeign, .reads_replicas = true}), Route::kMoved);
}

TEST(RouterTest, KeysOfSeveralSlotsComeBeforeTheSlotsOwner) {
  const View view = view_of('a');
  EXPECT_EQ(route(view, up(), {.slot = kForeign, .crosses_slots = true}), Route::kCrossSlot);
  EXPECT_EQ(route(view, {}, {.slot = kOwnShard, .crosses_slots = true}), Route::kCrossSlot);
}

TEST(RouterTest, WithoutATopologyNoSlotIsServed) {
  const View view(id_of('a'));
  EXPECT_EQ(route(view, up(), {.slot = kOwnShard}), Route::kUnbound);
  EXPECT_EQ(route(view, up(), {.slot = kOwnShard, .crosses_slots = true}), Route::kUnbound);
}

TEST(RouterTest, ReplicaServesReadsThatAskForIt) {
  const View view = view_of('b');
  EXPECT_EQ(route(view, {}, {.slot = kOwnShard}), Route::kMoved);
  EXPECT_EQ(route(view, {}, {.slot = kOwnShard, .reads_replicas = true}), Route::kServe);
  EXPECT_EQ(route(view, {}, {.slot = kOwnShard, .writes = true, .reads_replicas = true}),
            Route::kMoved);
  EXPECT_EQ(route(view, {}, {.slot = kForeign, .reads_replicas = true}), Route::kMoved);
}

TEST(RouterTest, ReplicaTakesSubscribersButNoMessages) {
  const View view = view_of('b');
  EXPECT_EQ(route(view, {}, {.slot = kOwnShard, .is_channel = true}), Route::kServe);
  EXPECT_EQ(route(view, {}, {.slot = kOwnShard, .writes = true, .is_channel = true}),
            Route::kMoved);
  EXPECT_EQ(route(view, {}, {.slot = kForeign, .is_channel = true}), Route::kMoved);
}

TEST(RouterTest, LeaderWithoutAPermitServesOnlyStaleReads) {
  const View view = view_of('a');
  EXPECT_EQ(route(view, {}, {.slot = kOwnShard}), Route::kDown);
  EXPECT_EQ(route(view, {}, {.slot = kOwnShard, .writes = true}), Route::kDown);
  EXPECT_EQ(route(view, {}, {.slot = kOwnShard, .reads_replicas = true}), Route::kServe);
  EXPECT_EQ(route(view, {}, {.slot = kOwnShard, .writes = true, .reads_replicas = true}),
            Route::kDown);
  EXPECT_EQ(route(view, {}, {.slot = kOwnShard, .is_channel = true}), Route::kServe);
  EXPECT_EQ(route(view, {}, {.slot = kOwnShard, .writes = true, .is_channel = true}), Route::kDown);
  EXPECT_EQ(route(view, {}, {.slot = kForeign, .writes = true}), Route::kMoved);
  const RouteConditions reads{.reads_when_down = true};
  EXPECT_EQ(route(view, reads, {.slot = kOwnShard}), Route::kServe);
  EXPECT_EQ(route(view, reads, {.slot = kOwnShard, .writes = true}), Route::kDownForWrites);
}

TEST(RouterTest, ClientsOfANewLeaderWait) {
  const View view = view_of('a');
  const RouteConditions held{.service = Service::kHeld};
  EXPECT_EQ(route(view, held, {.slot = kOwnShard, .writes = true}), Route::kHold);
  EXPECT_EQ(route(view, held, {.slot = kOwnShard}), Route::kHold);
  EXPECT_EQ(route(view, held, {.slot = kOwnShard, .reads_replicas = true}), Route::kServe);
  EXPECT_EQ(route(view, held, {.slot = kForeign, .writes = true}), Route::kMoved);
}

TEST(RouterTest, ClientsOfASuccessorWait) {
  const View view = view_of('b');
  const RouteConditions held{.service = Service::kHeld};
  EXPECT_EQ(route(view, held, {.slot = kOwnShard, .writes = true}), Route::kHold);
  EXPECT_EQ(route(view, held, {.slot = kOwnShard}), Route::kHold);
  EXPECT_EQ(route(view, held, {.slot = kOwnShard, .reads_replicas = true}), Route::kServe);
  EXPECT_EQ(route(view, held, {.slot = kForeign, .writes = true}), Route::kMoved);
  EXPECT_EQ(route_keyless_write(view, held), Route::kHold);
}

TEST(RouterTest, WritesWithoutKeysNeedAPermitToo) {
  const View leader = view_of('a');
  EXPECT_EQ(route_keyless_write(leader, up()), Route::kServe);
  EXPECT_EQ(route_keyless_write(leader, {.service = Service::kHeld}), Route::kHold);
  EXPECT_EQ(route_keyless_write(leader, {}), Route::kDown);
  EXPECT_EQ(route_keyless_write(leader, {.reads_when_down = true}), Route::kDownForWrites);
  EXPECT_EQ(route_keyless_write(view_of('b'), {}), Route::kServe);
  EXPECT_EQ(route_keyless_write(view_of('9'), {}), Route::kUnbound);
  EXPECT_EQ(route_keyless_write(View(id_of('a')), {}), Route::kUnbound);
}

TEST(RouterTest, ErrorsNameTheLeader) {
  const View view = view_of('b');
  EXPECT_EQ(route_error(view, Route::kMoved, kForeign, {}), moved_error(6000, "10.0.0.3", 7001));
  EXPECT_EQ(route_error(view, Route::kMoved, kForeign, {.is_tls = true}),
            moved_error(6000, "10.0.0.3", 7001));
  EXPECT_EQ(route_error(view, Route::kUnbound, 1, {}), kSlotNotServed);
  EXPECT_EQ(route_error(view, Route::kDown, 1, {}), kClusterIsDown);
}

TEST(RouterTest, ErrorsNameThePreferredEndpoint) {
  Topology topology = sample_topology();
  topology.shard("s1")->leader = id_of('b');
  const View view(id_of('c'), {topology, 9}, {});
  const auto moved = [&view](EndpointType type) {
    return route_error(view, Route::kMoved, kOwnShard, {.type = type});
  };
  EXPECT_EQ(moved(EndpointType::kIp), moved_error(5, "10.0.0.2", 7001));
  EXPECT_EQ(moved(EndpointType::kHostname), moved_error(5, "b.example", 7001));
  EXPECT_EQ(moved(EndpointType::kUnknown), moved_error(5, "", 7001));
  EXPECT_EQ(endpoint_of(*topology.node(id_of('a')), EndpointType::kHostname), "?");
}

TEST(RouterTest, StaleReplicaSendsReadersToItsLeader) {
  const View view = view_of('b');
  const RouteConditions stale{.is_stale = true};
  EXPECT_EQ(route(view, stale, {.slot = kOwnShard, .reads_replicas = true}), Route::kMoved);
  EXPECT_EQ(route(view, {}, {.slot = kOwnShard, .reads_replicas = true}), Route::kServe);
  EXPECT_EQ(route(view, stale, {.slot = kOwnShard, .is_channel = true}), Route::kServe);
}

TEST(RouterTest, ClientsOfTlsGetThePortForTls) {
  const Topology topology = sample_topology();
  EXPECT_EQ(port_of(*topology.node(id_of('b')), true), 7101U);
  EXPECT_EQ(port_of(*topology.node(id_of('b')), false), 7001U);
  Node only_tls = *topology.node(id_of('b'));
  only_tls.port = 0;
  EXPECT_EQ(port_of(only_tls, false), 7101U);
}

}  // namespace
}  // namespace server::cluster
