// SPDX-License-Identifier: MIT
//
// Declares the functions that return the rows of each command family. A new family needs a function
// here and a line in families.cpp.
#pragma once

#include <span>

#include "server/dispatch/command.h"

namespace server {

std::span<const Command> bitmap_commands();
std::span<const Command> bloom_commands();
std::span<const Command> bloom_chunk_commands();
std::span<const Command> bloom_deletion_commands();
std::span<const Command> bloom_insight_commands();
std::span<const Command> bloom_many_commands();
std::span<const Command> bloom_merge_commands();
std::span<const Command> bloom_window_commands();
std::span<const Command> client_commands();
std::span<const Command> cluster_commands();
std::span<const Command> clusterx_commands();
std::span<const Command> config_commands();
std::span<const Command> connection_commands();
std::span<const Command> introspection_commands();
std::span<const Command> key_commands();
std::span<const Command> filter_scan_commands();
std::span<const Command> scan_commands();
std::span<const Command> database_commands();
std::span<const Command> debug_commands();
std::span<const Command> dump_commands();
std::span<const Command> expiry_commands();
std::span<const Command> latency_commands();
std::span<const Command> object_commands();
std::span<const Command> observation_commands();
std::span<const Command> memory_commands();
std::span<const Command> migrate_commands();
std::span<const Command> persistence_commands();
std::span<const Command> pubsub_commands();
std::span<const Command> replica_commands();
std::span<const Command> replication_commands();
std::span<const Command> script_commands();
std::span<const Command> string_commands();
std::span<const Command> multi_string_commands();
std::span<const Command> substring_commands();
std::span<const Command> compare_commands();
std::span<const Command> counter_commands();
std::span<const Command> lcs_commands();
std::span<const Command> server_commands();
std::span<const Command> acl_commands();
std::span<const Command> transaction_commands();
std::span<const Command> wait_commands();

// Returns all families, in the order in which COMMAND lists them.
CommandFamilies command_families();

}  // namespace server
