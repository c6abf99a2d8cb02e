// SPDX-License-Identifier: MIT
//
// The rows of the options on clusters.
#include "server/base/config/option_rows.h"
#include "server/base/config/option_table.h"
#include "server/base/config/special_values.h"

namespace server {

std::vector<Option> cluster_options() {
  using namespace rows;
  return {
      choice("cluster-enabled", "no", {"no", "yes", "emulated"}, {.mutability = kImmutable}),
      text("cluster-announce-ip", {.parser = parse_announced_host}),
      integer("cluster-announce-port", "0", 0, 65535),
      integer("cluster-announce-tls-port", "0", 0, 65535),
      text("cluster-announce-hostname", {.parser = parse_announced_host}),
      choice("cluster-preferred-endpoint-type", "ip", {"ip", "hostname", "unknown-endpoint"}),
      choice("cluster-write-acks", "leader", {"leader", "insync"}, {.mutability = kImmutable}),
      integer("cluster-node-timeout", "5000", 500, 600'000, {.mutability = kWithHook}),
      flag("cluster-allow-reads-when-down", "no"),
      list("cluster-etcd", {.mutability = kImmutable}),
      text("cluster-etcd-user", {.mutability = kImmutable}),
      text("cluster-etcd-password", {.mutability = kImmutable, .sensitive = true}),
      text("cluster-etcd-ca-file", {.mutability = kImmutable}),
      text("cluster-etcd-cert-file", {.mutability = kImmutable}),
      text("cluster-etcd-key-file", {.mutability = kImmutable}),
      text("cluster-name",
           {.default_text = "bloomery", .mutability = kImmutable, .parser = parse_cluster_name}),
      text("cluster-node-id", {.mutability = kImmutable, .parser = parse_node_id}),
  };
}

}  // namespace server
