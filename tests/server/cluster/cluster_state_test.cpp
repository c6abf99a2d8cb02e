// SPDX-License-Identifier: MIT
#include "server/cluster/cluster_state.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "server/cluster/view.h"
#include "tests/server/cluster/sample_topology.h"
#include "tests/support/sanitized.h"

namespace server::cluster {
namespace {

std::shared_ptr<const View> view_at(uint64_t revision) {
  return std::make_shared<View>(id_of('a'), TopologyVersion{sample_topology(), revision},
                                std::vector<std::string>{});
}

TEST(ClusterStateTest, EachThreadSeesTheNewestView) {
  ClusterState state(2);
  EXPECT_EQ(state.latest(), nullptr);
  state.publish(view_at(1));
  EXPECT_EQ(state.view_of(0).revision(), 1U);
  EXPECT_EQ(&state.view_of(0), state.latest().get());
  state.publish(view_at(2));
  EXPECT_EQ(state.view_of(1).revision(), 2U);
  EXPECT_EQ(state.view_of(0).revision(), 2U);
}

TEST(ClusterStateTest, ServesWhatTheNewestViewLeadsWhileInService) {
  ClusterState state(2);
  EXPECT_FALSE(state.serves(0, 0)) << "without a cluster";
  state.publish(view_at(1));
  state.set_service(Service::kUp);
  EXPECT_FALSE(state.serves(0, 0)) << "the thread has no view yet";
  const View& view = state.view_of(0);
  EXPECT_FALSE(state.serves(1, 0)) << "that was another thread";
  for (unsigned slot = 0; slot < core::keyspace::kSlotCount; ++slot) {
    EXPECT_EQ(state.serves(0, slot), view.leads(slot)) << slot;
  }
  ASSERT_TRUE(state.serves(0, 0));
  for (const Service service : {Service::kHeld, Service::kDown}) {
    state.set_service(service);
    EXPECT_FALSE(state.serves(0, 0));
    state.view_of(0);
    EXPECT_FALSE(state.serves(0, 0));
  }
  state.set_service(Service::kUp);
  EXPECT_FALSE(state.serves(0, 0)) << "the thread has not heard of it";
  state.view_of(0);
  EXPECT_TRUE(state.serves(0, 0));
  state.publish(view_at(2));
  EXPECT_FALSE(state.serves(0, 0)) << "there is a newer view";
  state.view_of(0);
  EXPECT_TRUE(state.serves(0, 0));
}

constexpr uint64_t kRevisions = support::rounds(500U, 100U);

TEST(ClusterStateTest, AViewComesWithTheServiceOfItsTime) {
  ClusterState state(1);
  std::atomic<bool> is_done{false};
  const std::vector<std::string> alive;
  TopologyVersion led{sample_topology(), 1};
  TopologyVersion followed = led;
  followed.topology.shards[0].leader = id_of('b');
  state.publish(std::make_shared<View>(id_of('a'), followed, alive));
  std::thread reader([&] {
    while (!is_done) {
      const auto [view, service] = state.look(0);
      EXPECT_FALSE(view.leads() && service == Service::kDown);
    }
  });
  for (uint64_t revision = 2; revision < kRevisions; ++revision) {
    led.revision = followed.revision = revision;
    state.set_service(Service::kHeld);
    state.publish(std::make_shared<View>(id_of('a'), led, alive));
    state.set_service(Service::kUp);
    state.publish(std::make_shared<View>(id_of('a'), followed, alive));
    state.set_service(Service::kDown);
  }
  is_done = true;
  reader.join();
}

TEST(ClusterStateTest, ServesNothingAtFirst) {
  ClusterState state(1);
  EXPECT_EQ(state.service(), Service::kDown);
  state.set_service(Service::kUp);
  EXPECT_EQ(state.service(), Service::kUp);
}

TEST(ClusterStateTest, RevisionsOfAThreadNeverFall) {
  ClusterState state(1);
  state.publish(view_at(1));
  std::atomic<bool> is_done{false};
  std::thread reader([&] {
    uint64_t last = 0;
    while (!is_done) {
      const View& view = state.view_of(0);
      EXPECT_GE(view.revision(), last);
      EXPECT_TRUE(view.leads());
      last = view.revision();
    }
  });
  for (uint64_t revision = 2; revision < kRevisions; ++revision) state.publish(view_at(revision));
  is_done = true;
  reader.join();
  EXPECT_EQ(state.view_of(0).revision(), kRevisions - 1);
}

}  // namespace
}  // namespace server::cluster
