// SPDX-License-Identifier: MIT
#include "server/commands/families.h"

#include <array>

namespace server {

CommandFamilies command_families() {
  static const std::array kFamilies{
      string_commands(),
      multi_string_commands(),
      compare_commands(),
      substring_commands(),
      counter_commands(),
      lcs_commands(),
      bitmap_commands(),
      bloom_commands(),
      bloom_chunk_commands(),
      bloom_insight_commands(),
      bloom_many_commands(),
      bloom_merge_commands(),
      bloom_deletion_commands(),
      bloom_window_commands(),
      key_commands(),
      dump_commands(),
      migrate_commands(),
      expiry_commands(),
      scan_commands(),
      filter_scan_commands(),
      object_commands(),
      database_commands(),
      transaction_commands(),
      connection_commands(),
      client_commands(),
      config_commands(),
      server_commands(),
      acl_commands(),
      memory_commands(),
      latency_commands(),
      observation_commands(),
      introspection_commands(),
      cluster_commands(),
      clusterx_commands(),
      persistence_commands(),
      debug_commands(),
      script_commands(),
      replica_commands(),
      replication_commands(),
      wait_commands(),
      pubsub_commands(),
  };
  return kFamilies;
}

}  // namespace server
