// SPDX-License-Identifier: MIT
#include "server/commands/families.h"

#include <deque>
#include <vector>

namespace server {
namespace {

const CommandFamily* const kFamilies[] = {
    &kStringCommands,        &kMultiStringCommands,  &kCompareCommands,     &kSubstringCommands,
    &kCounterCommands,       &kLcsCommands,          &kBitmapCommands,      &kBloomCommands,
    &kBloomChunkCommands,    &kBloomInsightCommands, &kBloomManyCommands,   &kBloomMergeCommands,
    &kBloomDeletionCommands, &kBloomWindowCommands,  &kKeyCommands,         &kDumpCommands,
    &kMigrateCommands,       &kExpiryCommands,       &kScanCommands,        &kFilterScanCommands,
    &kObjectCommands,        &kDatabaseCommands,     &kTransactionCommands, &kConnectionCommands,
    &kClientCommands,        &kConfigCommands,       &kServerCommands,      &kAclCommands,
    &kMemoryCommands,        &kLatencyCommands,      &kObservationCommands, &kIntrospectionCommands,
    &kClusterCommands,       &kClusterxCommands,     &kPersistenceCommands, &kDebugCommands,
    &kScriptCommands,        &kReplicaCommands,      &kReplicationCommands, &kWaitCommands,
    &kPubsubCommands,
};

// Returns copies of the rows, with the fields that they omit. The copies stay until the process
// ends.
std::span<const Command> completed(std::span<const Command> rows, const Command& common) {
  if (rows.empty()) return {};
  // The lists are never destroyed, and a deque never moves its elements.
  static auto& lists = *new std::deque<std::vector<Command>>;
  std::vector<Command>& list = lists.emplace_back(rows.begin(), rows.end());
  for (Command& row : list) {
    if (row.group.empty()) row.group = common.group;
    if (row.since.empty()) row.since = common.since;
    row.subcommands = completed(row.subcommands, common);
    if (row.handler == nullptr) {
      if (row.arity == 0) row.arity = -2;
      if (row.complexity.empty()) row.complexity = "Depends on subcommand";
      continue;
    }
    if (row.complexity.empty()) row.complexity = common.complexity;
    if (row.tips.empty()) row.tips = common.tips;
    if (row.flags == 0) row.flags = common.flags;
    if (row.keys[0].first == 0) row.keys = common.keys;
    if (row.categories == 0) row.categories = common.categories;
  }
  return list;
}

}  // namespace

CommandFamilies command_families() {
  static const auto families = [] {
    std::vector<std::span<const Command>> all;
    for (const CommandFamily* family : kFamilies) {
      all.push_back(completed(family->rows, family->common));
    }
    return all;
  }();
  return families;
}

}  // namespace server
