// SPDX-License-Identifier: MIT
#include "server/dispatch/registry.h"
#include "server/commands/families.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace server {
namespace {

using Renames = std::vector<std::pair<std::string, std::string>>;

void handle(Context&) {}

Command sound_row() {
  return {.name = "word",
          .arity = 2,
          .flags = kReadOnly,
          .keys = one_key(kKeyRo),
          .group = "generic",
          .since = "1.0.0",
          .summary = "Does something",
          .syntax = "key",
          .handler = handle};
}

std::string fault_of(void (*change)(Command&)) {
  Command row = sound_row();
  change(row);
  return check_row(row);
}

std::string renamed(const Renames& renames, std::unique_ptr<Registry>& registry) {
  auto created = Registry::create(command_families(), renames);
  if (!created) return created.error().message;
  registry = std::move(*created);
  return "";
}

TEST(RegistryTest, FindsNamesInAnyCase) {
  const auto registry = *Registry::create(command_families(), {});
  ASSERT_NE(registry->find("get"), nullptr);
  EXPECT_EQ(registry->find("GeT"), registry->find("get"));
  EXPECT_EQ(registry->find("get")->full_name, "get");
  for (const std::string& name :
       {std::string(), std::string("nope"), std::string("get "), std::string("client|list"),
        std::string(1000, 'x'), std::string("get\0", 4)}) {
    EXPECT_EQ(registry->find(name), nullptr) << name;
  }
}

// A replica that runs Redis 7.0 must support all commands that are journalled verbatim. Filter
// commands are exempt, because only replicas with a module for filters receive them.
TEST(RegistryTest, NoVerbatimCommandIsNewerThanRedis7) {
  const auto registry = *Registry::create(command_families(), {});
  size_t count = 0;
  for (const RegisteredCommand* command : registry->commands()) {
    const bool is_verbatim = command->row->journalled == Journalled::kVerbatim;
    if (!command->has(kWrite) || !is_verbatim || command->row->group == "bf") continue;
    // A replica that does not know BF.MERGE gets a new snapshot instead of this command.
    if (command->full_name == "bf.merge") continue;
    ++count;
    EXPECT_LT(std::stod(std::string(command->row->since)), 7.1) << command->full_name;
  }
  EXPECT_GT(count, 10U);
}

TEST(RegistryTest, FollowsContainersToTheirSubcommands) {
  const auto registry = *Registry::create(command_families(), {});
  const RegisteredCommand* container = registry->find("CLIENT");
  ASSERT_NE(container, nullptr);
  const RegisteredCommand* list = registry->find_subcommand(*container, "LIST");
  ASSERT_NE(list, nullptr);
  EXPECT_EQ(list->full_name, "client|list");
  EXPECT_EQ(list->container, container);
  EXPECT_EQ(registry->find_subcommand(*container, "nope"), nullptr);
  const auto find = [&](std::vector<std::string_view> words) {
    return registry->find(Arguments(words));
  };
  EXPECT_EQ(find({"client", "list", "x"}), list);
  EXPECT_EQ(find({"client"}), container);
  EXPECT_EQ(find({"client", "nope"}), nullptr);
  EXPECT_EQ(find({"get", "list"}), registry->find("get"));
  EXPECT_EQ(find({}), nullptr);
}

TEST(RegistryTest, EveryContainerHasHelp) {
  const auto registry = *Registry::create(command_families(), {});
  for (const RegisteredCommand* command : registry->commands()) {
    if (command->subcommands.empty()) continue;
    EXPECT_NE(registry->find_subcommand(*command, "help"), nullptr) << command->full_name;
  }
}

TEST(RegistryTest, IndicesAreDenseAndNamesUnique) {
  const auto registry = *Registry::create(command_families(), {});
  std::set<std::string> names;
  for (size_t i = 0; i < registry->size(); ++i) {
    EXPECT_EQ(registry->at(i).index, i);
    names.insert(registry->at(i).full_name);
  }
  EXPECT_EQ(names.size(), registry->size());
  EXPECT_GT(registry->size(), registry->commands().size());
}

TEST(RegistryTest, ArityIsExactOrAtLeast) {
  const auto registry = *Registry::create(command_families(), {});
  const RegisteredCommand& get = *registry->find("get");
  EXPECT_TRUE(get.arity_fits(2));
  EXPECT_FALSE(get.arity_fits(1));
  EXPECT_FALSE(get.arity_fits(3));
  const RegisteredCommand& del = *registry->find("del");
  EXPECT_FALSE(del.arity_fits(1));
  EXPECT_TRUE(del.arity_fits(2));
  EXPECT_TRUE(del.arity_fits(1000));
}

TEST(RegistryTest, RenamedCommandsHaveOnlyTheirNewName) {
  std::unique_ptr<Registry> registry;
  ASSERT_EQ(renamed({{"FlushAll", ""}, {"GET", "Fetch"}}, registry), "");
  EXPECT_EQ(registry->find("flushall"), nullptr);
  EXPECT_EQ(registry->find("get"), nullptr);
  ASSERT_NE(registry->find("FETCH"), nullptr);
  EXPECT_EQ(registry->find("fetch")->row->name, "get");
  // After GET was renamed, SET may be renamed to "get".
  ASSERT_EQ(renamed({{"get", "fetch"}, {"set", "get"}}, registry), "");
  EXPECT_EQ(registry->find("get")->row->name, "set");
}

TEST(RegistryTest, ReplayedCommandsKeepTheirOriginalNames) {
  std::unique_ptr<Registry> registry;
  ASSERT_EQ(renamed({{"FlushAll", ""}, {"get", "fetch"}, {"set", "get"}}, registry), "");
  for (const std::string& name :
       {std::string("flushall"), std::string("get"), std::string("set"), std::string("del")}) {
    const RegisteredCommand* const command = registry->find_replayed(name);
    ASSERT_NE(command, nullptr) << name;
    EXPECT_EQ(command->row->name, name);
  }
  // Redis journals a command by the new name that rename-command gave it.
  EXPECT_EQ(registry->find_replayed("FETCH"), registry->find_replayed("get"));
  EXPECT_EQ(registry->find_replayed("nope"), nullptr);
  EXPECT_EQ(registry->find_replayed("client|list"), nullptr);
}

TEST(RegistryTest, RenamesThatCannotBeAreRefused) {
  std::unique_ptr<Registry> registry;
  EXPECT_EQ(renamed({{"nope", "x"}}, registry), "No such command in rename-command: 'nope'");
  EXPECT_EQ(renamed({{"client|list", "x"}}, registry),
            "No such command in rename-command: 'client|list'");
  const std::string target(kInvalidRenameTarget);
  EXPECT_EQ(renamed({{"get", "set"}}, registry), target + "set");
  EXPECT_EQ(renamed({{"get", std::string(49, 'x')}}, registry), target + std::string(49, 'x'));
  EXPECT_EQ(renamed({{"get", std::string(48, 'x')}}, registry), "");
}

TEST(CheckRowTest, ASoundRowHasNoFault) {
  EXPECT_EQ(check_row(sound_row()), "");
}

TEST(CheckRowTest, EveryFaultIsNamed) {
  EXPECT_EQ(fault_of([](Command& row) { row.name = "Word"; }), row_fault::kNotLowerCase);
  EXPECT_EQ(fault_of([](Command& row) { row.name = ""; }), row_fault::kNotLowerCase);
  EXPECT_EQ(fault_of([](Command& row) { row.name = "a|b"; }), row_fault::kNotLowerCase);
  EXPECT_EQ(fault_of([](Command& row) {
              row.name = "a-name-of-far-more-than-forty-eight-characters-is";
            }),
            row_fault::kLongName);
  EXPECT_EQ(fault_of([](Command& row) { row.summary = "Does it."; }), row_fault::kSummary);
  EXPECT_EQ(fault_of([](Command& row) { row.since = ""; }), row_fault::kNoGroup);
  EXPECT_EQ(fault_of([](Command& row) { row.handler = nullptr; }), row_fault::kNoHandler);
  EXPECT_EQ(fault_of([](Command& row) { row.flags = kWrite | kReadOnly; }),
            row_fault::kReadsAndWrites);
  EXPECT_EQ(fault_of([](Command& row) {
              row.arity = 0;
              row.keys = {};
            }),
            row_fault::kZeroArity);
  EXPECT_EQ(fault_of([](Command& row) { row.syntax = "key ["; }), "syntax: brackets do not match");
}

TEST(CheckRowTest, KeysMustLieInsideTheArguments) {
  EXPECT_EQ(fault_of([](Command& row) { row.keys[0].first = -1; }),
            row_fault::kKeysBeforeArguments);
  EXPECT_EQ(fault_of([](Command& row) { row.keys[0].step = 0; }), row_fault::kKeysBeforeArguments);
  EXPECT_EQ(fault_of([](Command& row) {
              row.keys[0] = {2, 2, 1, kKeyRo};
            }),
            row_fault::kKeysBeyondArity);
  EXPECT_EQ(fault_of([](Command& row) {
              row.arity = -4;
              row.keys[0] = {3, 2, 1, kKeyRo};
            }),
            row_fault::kKeysEndEarly);
  EXPECT_EQ(
      fault_of([](Command& row) { row.keys[0] = {.first = 1, .use = kKeyRo, .count_at = 1}; }),
      row_fault::kKeysBeforeCount);
  EXPECT_EQ(fault_of([](Command& row) { row.keys[0].use = 0; }), row_fault::kKeysWithoutUse);
  EXPECT_EQ(fault_of([](Command& row) { row.keys[0].use = kKeyRw; }),
            row_fault::kChangesWithoutWrite);
}

// Inside EXEC a handler takes no lock, so EXEC must find the keys in the row.
TEST(CheckRowTest, ExecMustLockTheKeysOfTheSyntax) {
  const auto fault_with = [](uint32_t flags, std::string_view syntax) {
    Command row = sound_row();
    row.keys = {};
    row.flags = flags;
    row.syntax = syntax;
    return check_row(row);
  };
  EXPECT_EQ(fault_with(0, "key"), row_fault::kKeysNotLocked);
  EXPECT_EQ(fault_with(0, "[KEYS (numkeys key ...)]"), row_fault::kKeysNotLocked);
  EXPECT_EQ(fault_with(kWholeKeyspace, "key"), "");
  EXPECT_EQ(fault_with(kNoMulti, "key"), "");
  EXPECT_EQ(fault_with(0, "key:string"), "");
}

TEST(CheckRowTest, ContainersTakeAnyNumberOfArguments) {
  static const Command kInner[] = {sound_row()};
  Command row = sound_row();
  row.keys = {};
  row.syntax = "";
  row.subcommands = kInner;
  EXPECT_EQ(check_row(row), row_fault::kContainerArity);
  row.arity = -1;
  EXPECT_EQ(check_row(row), "");
  row.handler = nullptr;
  row.arity = -2;
  EXPECT_EQ(check_row(row), "");
}

}  // namespace
}  // namespace server
