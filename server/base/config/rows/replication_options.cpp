// SPDX-License-Identifier: MIT
//
// The rows of the options on replication, for replicas and for leaders.
#include "core/bloom/parameters.h"
#include "server/base/config/option_rows.h"
#include "server/base/config/option_table.h"
#include "server/base/config/special_values.h"

namespace server {
namespace {

using namespace rows;

// Returns the choices of replica-foreign: auto, no, strings, and the name of each foreign layout. A
// layout's name means that foreign replicas, such as Redis servers, can hold filters of this
// layout.
std::vector<std::string_view> foreign_replica_choices() {
  std::vector<std::string_view> choices = {"auto", "no", "strings"};
  for (const core::bloom::LayoutRow& row : core::bloom::layout_rows()) {
    if (row.is_foreign) choices.push_back(row.name);
  }
  return choices;
}

}  // namespace

std::vector<Option> replica_options() {
  return {
      list("replicaof", {.aliases = {"slaveof"},
                         .mutability = kImmutable,
                         .parser = parse_replicaof,
                         .line_writer = write_replicaof}),
      text("masterauth", {.aliases = {"primaryauth"}, .sensitive = true}),
      text("masteruser", {.aliases = {"primaryuser"}, .sensitive = true}),
      flag("replica-read-only", "yes", {.aliases = {"slave-read-only"}}),
      flag("replica-serve-stale-data", "yes", {.aliases = {"slave-serve-stale-data"}}),
      integer("replica-priority", "100", 0, kInt32Max, {.aliases = {"slave-priority"}}),
      flag("replica-announced", "yes"),
      text("replica-announce-ip",
           {.aliases = {"slave-announce-ip"}, .parser = parse_announced_host}),
      integer("replica-announce-port", "0", 0, 65535, {.aliases = {"slave-announce-port"}}),
  };
}

std::vector<Option> leader_options() {
  return {
      choice("replica-foreign", "auto", foreign_replica_choices(), {.mutability = kWithHook}),
      flag("repl-diskless-sync", "yes"),
      integer("repl-diskless-sync-delay", "5", 0, kInt32Max),
      integer("repl-diskless-sync-max-replicas", "0", 0, kInt32Max),
      integer("repl-ping-replica-period", "10", 1, kInt32Max,
              {.aliases = {"repl-ping-slave-period"}}),
      integer("repl-timeout", "60", 1, kInt32Max),
      bytes("repl-backlog-size", "1048576", {.min = 1}),
      integer("repl-backlog-ttl", "3600", 0, kInt64Max),
      flag("repl-disable-tcp-nodelay", "no"),
      integer("min-replicas-to-write", "0", 0, kInt32Max, {.aliases = {"min-slaves-to-write"}}),
      integer("min-replicas-max-lag", "10", 0, kInt32Max, {.aliases = {"min-slaves-max-lag"}}),
      integer("replica-max-staleness", "0", 0, kInt32Max),
      integer("shutdown-timeout", "10", 0, kInt32Max),
  };
}

}  // namespace server
