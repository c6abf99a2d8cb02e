// SPDX-License-Identifier: MIT
//
// The rows of the options on replication, for replicas and for leaders.
#include "core/bloom/parameters.h"
#include "server/base/config/option_table.h"
#include "server/base/config/special_values.h"

namespace server {
namespace {

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
      {.name = "replicaof",
       .aliases = {"slaveof"},
       .kind = OptionKind::kList,
       .mutability = Mutability::kImmutable,
       .multi_argument = true,
       .parser = parse_replicaof,
       .line_writer = write_replicaof},
      {.name = "masterauth",
       .aliases = {"primaryauth"},
       .kind = OptionKind::kString,
       .sensitive = true},
      {.name = "masteruser",
       .aliases = {"primaryuser"},
       .kind = OptionKind::kString,
       .sensitive = true},
      {.name = "replica-read-only",
       .aliases = {"slave-read-only"},
       .kind = OptionKind::kBool,
       .default_text = "yes"},
      {.name = "replica-serve-stale-data",
       .aliases = {"slave-serve-stale-data"},
       .kind = OptionKind::kBool,
       .default_text = "yes"},
      {.name = "replica-priority",
       .aliases = {"slave-priority"},
       .kind = OptionKind::kInteger,
       .default_text = "100",
       .max = kInt32Max},
      {.name = "replica-announced", .kind = OptionKind::kBool, .default_text = "yes"},
      {.name = "replica-announce-ip",
       .aliases = {"slave-announce-ip"},
       .kind = OptionKind::kString,
       .parser = parse_announced_host},
      {.name = "replica-announce-port",
       .aliases = {"slave-announce-port"},
       .kind = OptionKind::kInteger,
       .default_text = "0",
       .max = 65535},
  };
}

std::vector<Option> leader_options() {
  return {
      {.name = "replica-foreign",
       .kind = OptionKind::kEnum,
       .default_text = "auto",
       .choices = foreign_replica_choices(),
       .mutability = Mutability::kWithHook},
      {.name = "repl-diskless-sync", .kind = OptionKind::kBool, .default_text = "yes"},
      {.name = "repl-diskless-sync-delay",
       .kind = OptionKind::kInteger,
       .default_text = "5",
       .max = kInt32Max},
      {.name = "repl-diskless-sync-max-replicas",
       .kind = OptionKind::kInteger,
       .default_text = "0",
       .max = kInt32Max},
      {.name = "repl-ping-replica-period",
       .aliases = {"repl-ping-slave-period"},
       .kind = OptionKind::kInteger,
       .default_text = "10",
       .min = 1,
       .max = kInt32Max},
      {.name = "repl-timeout",
       .kind = OptionKind::kInteger,
       .default_text = "60",
       .min = 1,
       .max = kInt32Max},
      {.name = "repl-backlog-size",
       .kind = OptionKind::kMemory,
       .default_text = "1048576",
       .min = 1},
      {.name = "repl-backlog-ttl", .kind = OptionKind::kInteger, .default_text = "3600"},
      {.name = "repl-disable-tcp-nodelay", .kind = OptionKind::kBool, .default_text = "no"},
      {.name = "min-replicas-to-write",
       .aliases = {"min-slaves-to-write"},
       .kind = OptionKind::kInteger,
       .default_text = "0",
       .max = kInt32Max},
      {.name = "min-replicas-max-lag",
       .aliases = {"min-slaves-max-lag"},
       .kind = OptionKind::kInteger,
       .default_text = "10",
       .max = kInt32Max},
      {.name = "replica-max-staleness",
       .kind = OptionKind::kInteger,
       .default_text = "0",
       .max = kInt32Max},
      {.name = "shutdown-timeout",
       .kind = OptionKind::kInteger,
       .default_text = "10",
       .max = kInt32Max},
  };
}

}  // namespace server
