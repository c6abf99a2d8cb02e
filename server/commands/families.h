// SPDX-License-Identifier: MIT
//
// Declares the families of commands. A new family needs a line here and in families.cpp.
//
// Thread-safe: families are constants.
#pragma once

#include <span>

#include "server/dispatch/command.h"

namespace server {

// The rows of one family, and the fields that most of them share. A row that omits its group,
// since, complexity, tips, flags, keys or categories has the field of `common`. A container without
// a handler has only the group and since of `common`. Its arity is -2, and its complexity depends
// on the subcommand.
struct CommandFamily {
  Command common{};
  std::span<const Command> rows{};
};

extern const CommandFamily kBitmapCommands;
extern const CommandFamily kBloomCommands;
extern const CommandFamily kBloomChunkCommands;
extern const CommandFamily kBloomDeletionCommands;
extern const CommandFamily kBloomInsightCommands;
extern const CommandFamily kBloomManyCommands;
extern const CommandFamily kBloomMergeCommands;
extern const CommandFamily kBloomWindowCommands;
extern const CommandFamily kClientCommands;
extern const CommandFamily kClusterCommands;
extern const CommandFamily kClusterxCommands;
extern const CommandFamily kConfigCommands;
extern const CommandFamily kConnectionCommands;
extern const CommandFamily kIntrospectionCommands;
extern const CommandFamily kKeyCommands;
extern const CommandFamily kFilterScanCommands;
extern const CommandFamily kScanCommands;
extern const CommandFamily kDatabaseCommands;
extern const CommandFamily kDebugCommands;
extern const CommandFamily kDumpCommands;
extern const CommandFamily kExpiryCommands;
extern const CommandFamily kLatencyCommands;
extern const CommandFamily kObjectCommands;
extern const CommandFamily kObservationCommands;
extern const CommandFamily kMemoryCommands;
extern const CommandFamily kMigrateCommands;
extern const CommandFamily kPersistenceCommands;
extern const CommandFamily kPubsubCommands;
extern const CommandFamily kReplicaCommands;
extern const CommandFamily kReplicationCommands;
extern const CommandFamily kScriptCommands;
extern const CommandFamily kStringCommands;
extern const CommandFamily kMultiStringCommands;
extern const CommandFamily kSubstringCommands;
extern const CommandFamily kCompareCommands;
extern const CommandFamily kCounterCommands;
extern const CommandFamily kLcsCommands;
extern const CommandFamily kServerCommands;
extern const CommandFamily kAclCommands;
extern const CommandFamily kTransactionCommands;
extern const CommandFamily kWaitCommands;

// The handler of a command that shares `kFunction` with similar commands, which pass other
// arguments.
template <auto kFunction, auto... kArguments>
void calls(Context& ctx) {
  kFunction(ctx, kArguments...);
}

// Returns all families, in the order in which COMMAND lists them.
CommandFamilies command_families();

}  // namespace server
