// SPDX-License-Identifier: MIT
//
// The rows of the options on clusters.
#include "server/base/config/option_table.h"
#include "server/base/config/special_values.h"

namespace server {

std::vector<Option> cluster_options() {
  return {
      {.name = "cluster-enabled",
       .kind = OptionKind::kEnum,
       .default_text = "no",
       .choices = {"no", "yes", "emulated"},
       .mutability = Mutability::kImmutable},
      {.name = "cluster-announce-ip", .kind = OptionKind::kString, .parser = parse_announced_host},
      {.name = "cluster-announce-port",
       .kind = OptionKind::kInteger,
       .default_text = "0",
       .max = 65535},
      {.name = "cluster-announce-tls-port",
       .kind = OptionKind::kInteger,
       .default_text = "0",
       .max = 65535},
      {.name = "cluster-announce-hostname",
       .kind = OptionKind::kString,
       .parser = parse_announced_host},
      {.name = "cluster-preferred-endpoint-type",
       .kind = OptionKind::kEnum,
       .default_text = "ip",
       .choices = {"ip", "hostname", "unknown-endpoint"}},
      {.name = "cluster-write-acks",
       .kind = OptionKind::kEnum,
       .default_text = "leader",
       .choices = {"leader", "insync"},
       .mutability = Mutability::kImmutable},
      {.name = "cluster-node-timeout",
       .kind = OptionKind::kInteger,
       .default_text = "5000",
       .min = 500,
       .max = 600'000,
       .mutability = Mutability::kWithHook},
      {.name = "cluster-allow-reads-when-down", .kind = OptionKind::kBool, .default_text = "no"},
      {.name = "cluster-etcd",
       .kind = OptionKind::kList,
       .mutability = Mutability::kImmutable,
       .multi_argument = true},
      {.name = "cluster-etcd-user",
       .kind = OptionKind::kString,
       .mutability = Mutability::kImmutable},
      {.name = "cluster-etcd-password",
       .kind = OptionKind::kString,
       .mutability = Mutability::kImmutable,
       .sensitive = true},
      {.name = "cluster-etcd-ca-file",
       .kind = OptionKind::kString,
       .mutability = Mutability::kImmutable},
      {.name = "cluster-name",
       .kind = OptionKind::kString,
       .default_text = "bloomery",
       .mutability = Mutability::kImmutable,
       .parser = parse_cluster_name},
      {.name = "cluster-node-id",
       .kind = OptionKind::kString,
       .mutability = Mutability::kImmutable,
       .parser = parse_node_id},
  };
}

}  // namespace server
