// SPDX-License-Identifier: MIT
#include "server/dispatch/key_routing.h"

#include <vector>

#include "core/keyspace/slot.h"
#include "server/base/config/config.h"
#include "server/base/process/server_state.h"
#include "server/cluster/router.h"
#include "server/cluster/view.h"
#include "server/dispatch/context.h"
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

const cluster::View& view_of(const Context& ctx) {
  return ctx.environment.cluster.view_of(ctx.client.view_index);
}

bool KeyRouting::is_served() const {
  return route == Route::kServe || is_held();
}

bool KeyRouting::is_held() const {
  return route == Route::kHold;
}

KeyRouting KeyRouting::of(const Context& ctx, uint32_t flags) {
  const Environment& environment = ctx.environment;
  const Session& session = ctx.session;
  if (!environment.state.is_in_cluster()) return {};
  const RegisteredCommand& command = *ctx.command;
  SlotUnion slots;
  const auto add_keys = [&slots](const Command& row, Arguments args) {
    for_each_key(row, args, [&](size_t index, uint16_t) { slots.add(slot_of(args[index])); });
  };
  add_keys(*command.row, ctx.args);
  if (command.has(kRunsQueue)) {
    for (const QueuedCommand& queued : session.transaction.queue) {
      add_keys(*queued.command->row, queued.words());
    }
  }
  const bool writes = (flags & kWrite) != 0;
  if (!slots.first() && !writes) return {};
  const auto [view, service] = environment.cluster.look(session.client->view_index);
  const bool reads_replicas = session.client->reads_replicas;
  const cluster::RouteConditions conditions{
      .service = service,
      .reads_when_down = environment.config.flag(OptionId::kClusterAllowReadsWhenDown),
      .is_stale = reads_replicas && is_stale(environment)};
  if (!slots.first()) return {cluster::route_keyless_write(view, conditions), 0, &view};
  const cluster::RouteQuery query{.slot = *slots.first(),
                                  .crosses_slots = !slots.is_one(),
                                  .writes = writes || (flags & kMayReplicate) != 0,
                                  .is_channel = (command.row->keys[0].use & kNotAKey) != 0,
                                  .reads_replicas = reads_replicas};
  return {cluster::route(view, conditions, query), query.slot, &view};
}

bool KeyRouting::awaits_view(const core::Error& error) const {
  return view != nullptr && view->leads() && is_served() &&
         error.code == core::ErrorCode::kReadOnly;
}

core::Error KeyRouting::error(const Context& ctx) const {
  const cluster::EndpointType type{ctx.config().integer(OptionId::kClusterPreferredEndpointType)};
  return {cluster::route_error(*view, route, slot, {type, ctx.client.socket.tls != nullptr}),
          core::ErrorCode::kMisrouted};
}

}  // namespace server
