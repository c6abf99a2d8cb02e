// SPDX-License-Identifier: MIT
//
// Implements the functions of Dispatcher that route commands to the servers of a cluster.
#include <vector>

#include "core/keyspace/slot.h"
#include "server/base/config/config.h"
#include "server/base/process/server_state.h"
#include "server/cluster/router.h"
#include "server/cluster/view.h"
#include "server/dispatch/context.h"
#include "server/dispatch/dispatcher.h"
#include "server/dispatch/environment.h"
#include "server/session/session.h"

namespace server {

using cluster::Route;
using core::keyspace::slot_of;

namespace {

// Returns whether this replica has not heard from its leader for longer than replica-max-staleness.
bool is_stale(const Environment& environment) {
  const int64_t limit_ms = environment.config.integer(OptionId::kReplicaMaxStaleness);
  return limit_ms > 0 && environment.cluster.leader_silence_us() > limit_ms * 1000;
}

}  // namespace

bool Dispatcher::KeyRouting::is_served() const {
  return route == Route::kServe || is_held();
}

bool Dispatcher::KeyRouting::is_held() const {
  return route == Route::kHold;
}

Dispatcher::KeyRouting Dispatcher::route(const Context& ctx, uint32_t flags) const {
  if (!environment_.state.is_in_cluster()) return {};
  const RegisteredCommand& command = *ctx.command;
  SlotUnion slots;
  const auto add_keys = [&slots](const Command& row, Arguments args) {
    for_each_key(row, args, [&](size_t index, uint16_t) { slots.add(slot_of(args[index])); });
  };
  add_keys(*command.row, ctx.args);
  if (command.has(kRunsQueue)) {
    for (const QueuedCommand& queued : session_.transaction.queue) {
      const std::vector<std::string_view> words(queued.arguments.begin(), queued.arguments.end());
      add_keys(*queued.command->row, words);
    }
  }
  const bool writes = (flags & kWrite) != 0;
  if (!slots.first() && !writes) return {};
  const auto [view, service] = environment_.cluster.look(session_.thread_index);
  const bool reads_replicas = session_.reads_replicas.load(std::memory_order_relaxed);
  const cluster::RouteConditions conditions{
      .service = service,
      .reads_when_down = environment_.config.flag(OptionId::kClusterAllowReadsWhenDown),
      .is_stale = reads_replicas && is_stale(environment_)};
  if (!slots.first()) return {cluster::route_keyless_write(view, conditions), 0, &view};
  const cluster::RouteQuery query{.slot = *slots.first(),
                                  .crosses_slots = !slots.is_one(),
                                  .writes = writes || (flags & kMayReplicate) != 0,
                                  .is_channel = (command.row->keys[0].use & kNotAKey) != 0,
                                  .reads_replicas = reads_replicas};
  return {cluster::route(view, conditions, query), query.slot, &view};
}

bool Dispatcher::awaits_view(const KeyRouting& routing, std::string_view error) {
  return routing.view != nullptr && routing.view->leads() && routing.is_served() &&
         error.starts_with("READONLY ");
}

std::string Dispatcher::routing_error(const KeyRouting& routing) const {
  const cluster::EndpointType type{
      environment_.config.integer(OptionId::kClusterPreferredEndpointType)};
  return cluster::route_error(*routing.view, routing.route, routing.slot,
                              {type, session_.socket.tls != nullptr});
}

bool Dispatcher::is_routing_error(std::string_view error) {
  return error.starts_with("MOVED ") || error.starts_with("CROSSSLOT ") ||
         error.starts_with("CLUSTERDOWN ");
}

}  // namespace server
