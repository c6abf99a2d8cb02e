// SPDX-License-Identifier: MIT
#include "server/dispatch/command_reply.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <utility>

#include "protocol/arguments.h"
#include "server/base/config/words.h"
#include "server/dispatch/syntax.h"

namespace server {
namespace {

using protocol::ReplyWriter;
using FlagName = std::pair<uint32_t, std::string_view>;

// The names of the flags, in the order in which Redis prints them.
constexpr FlagName kFlagNames[] = {
    {kWrite, "write"},
    {kReadOnly, "readonly"},
    {kDenyOom, "denyoom"},
    {kAdmin, "admin"},
    {kPubSub, "pubsub"},
    {kNoScript, "noscript"},
    {kBlocking, "blocking"},
    {kLoading, "loading"},
    {kStale, "stale"},
    {kSkipMonitor, "skip_monitor"},
    {kSkipSlowlog, "skip_slowlog"},
    {kClusterAsking, "asking"},
    {kFast, "fast"},
    {kNoAuth, "no_auth"},
    {kNoAsyncLoading, "no_async_loading"},
    {kNoMulti, "no_multi"},
    {kAllowBusy, "allow_busy"},
};

constexpr FlagName kKeyUseNames[] = {
    {kKeyRo, "RO"},
    {kKeyRw, "RW"},
    {kKeyOw, "OW"},
    {kKeyRm, "RM"},
    {kKeyAccess, "access"},
    {kKeyUpdate, "update"},
    {kKeyInsert, "insert"},
    {kKeyDelete, "delete"},
    {kNotAKey, "not_key"},
    {kKeyIncomplete, "incomplete"},
    {kKeyVariable, "variable_flags"},
};

struct CategoryRule {
  std::string_view name;
  uint32_t category;  // the category's bit in rows of the command table; 0 if there is no such bit
  uint32_t flags;     // flags that imply the category
};

constexpr std::string_view kSlow = "@slow";

// The names of the categories, in the order in which Redis prints them. @slow holds the commands
// that are not @fast. Some categories belong to data types that this server does not have.
constexpr CategoryRule kCategories[] = {
    {"@keyspace", kKeyspace, 0},
    {"@read", 0, kReadOnly},
    {"@write", 0, kWrite},
    {"@set", 0, 0},
    {"@sortedset", 0, 0},
    {"@list", 0, 0},
    {"@hash", 0, 0},
    {"@string", kString, 0},
    {"@bitmap", kBitmap, 0},
    {"@hyperloglog", 0, 0},
    {"@geo", 0, 0},
    {"@stream", 0, 0},
    {"@pubsub", 0, kPubSub},
    {"@admin", kAdministrative, kAdmin},
    {"@fast", 0, kFast},
    {kSlow, 0, 0},
    {"@blocking", 0, kBlocking},
    {"@dangerous", kDangerous, kAdmin},
    {"@connection", kConnection, 0},
    {"@transaction", kTransaction, 0},
    {"@scripting", kScripting, 0},
    {"@bloom", kBloom, 0},
};

std::vector<std::string_view> names_of(uint32_t flags, std::span<const FlagName> table) {
  std::vector<std::string_view> names;
  for (const auto& [flag, name] : table) {
    if ((flags & flag) != 0) names.push_back(name);
  }
  return names;
}

void write_simple_set(ReplyWriter& reply, const std::vector<std::string_view>& names) {
  reply.set(names.size());
  for (const std::string_view name : names) reply.simple(name);
}

// Returns whether a client needs more than first, last and step to find all keys of the command.
bool has_movable_keys(const Command& row) {
  return std::ranges::any_of(row.keys, [](const KeyRange& range) {
    return range.count_at != 0 || !range.option.empty() || !range.keyword.empty();
  });
}

size_t range_count(const Command& row) {
  return static_cast<size_t>(std::count_if(row.keys.begin(), row.keys.end(),
                                           [](const KeyRange& range) { return range.first != 0; }));
}

// Returns the range of the command's keys (first, last, step) for clients that know no key
// specifications. Adjacent ranges are joined.
KeyRange joined_range(const Command& row) {
  KeyRange joined = row.keys[0];
  if (joined.first == 0 || joined.count_at != 0) return {.step = 0};
  const KeyRange& second = row.keys[1];
  const bool is_plain = second.first != 0 && second.count_at == 0 && second.keyword.empty();
  if (is_plain && joined.step == second.step) joined.last = second.last;
  return joined;
}

void write_field(ReplyWriter& reply, std::string_view name, std::string_view value) {
  reply.bulk(name);
  reply.bulk(value);
}

void write_tips(ReplyWriter& reply, std::string_view tips) {
  const auto words = split_at_spaces(tips);
  reply.set(words.size());
  for (const std::string& word : words) reply.bulk(word);
}

void write_number(ReplyWriter& reply, std::string_view name, int value) {
  reply.bulk(name);
  reply.integer(value);
}

// Writes find_keys, whose positions count from the index or keyword of begin_search.
void write_find_keys(const KeyRange& range, ReplyWriter& reply) {
  const bool is_counted = range.count_at != 0;
  reply.bulk("find_keys");
  reply.map(2);
  write_field(reply, "type", is_counted ? "keynum" : "range");
  reply.bulk("spec");
  reply.map(3);
  if (is_counted) {
    write_number(reply, "keynumidx", 0);
    write_number(reply, "firstkey", range.first - range.count_at);
    return write_number(reply, "keystep", range.step);
  }
  // In this reply, the index of the last key is relative to the first key.
  write_number(reply, "lastkey", range.last < 0 ? range.last : range.last - range.first);
  write_number(reply, "keystep", range.step);
  write_number(reply, "limit", 0);
}

// Writes begin_search: the index of the first key, or the keyword before it.
void write_begin_search(const KeyRange& range, ReplyWriter& reply) {
  const bool has_keyword = !range.keyword.empty();
  reply.bulk("begin_search");
  reply.map(2);
  write_field(reply, "type", has_keyword ? "keyword" : "index");
  reply.bulk("spec");
  if (has_keyword) {
    reply.map(2);
    write_field(reply, "keyword", range.keyword);
    // As in Redis, the client searches backwards for the keyword, from the second-to-last argument.
    return write_number(reply, "startfrom", -2);
  }
  reply.map(1);
  write_number(reply, "index", range.count_at != 0 ? range.count_at : range.first);
}

void write_key_specification(const KeyRange& range, ReplyWriter& reply) {
  reply.map(3 + size_t{!range.note.empty()});
  if (!range.note.empty()) write_field(reply, "notes", range.note);
  reply.bulk("flags");
  write_simple_set(reply, key_use_names(range.use));
  write_begin_search(range, reply);
  write_find_keys(range, reply);
}

// Writes the argument tree of one command, and counts the keys in it.
class ArgumentWriter {
 public:
  ArgumentWriter(ReplyWriter& reply, size_t key_range_count)
      : reply_(reply), key_range_count_(key_range_count) {}

  void write(std::span<const Syntax> arguments) {
    reply_.array(arguments.size());
    for (const Syntax& argument : arguments) write(argument);
  }

 private:
  void write(const Syntax& argument) {
    const bool is_key = argument.kind == Syntax::Kind::kKey && key_range_count_ > 0;
    const bool has_parts = !argument.parts.empty();
    const bool has_flags = argument.optional || argument.multiple;
    reply_.map(2 + size_t{is_key} + size_t{!argument.token.empty()} + size_t{has_flags} +
               size_t{has_parts});
    write_field(reply_, "name", argument.name);
    write_field(reply_, "type", kind_name(argument.kind));
    if (is_key) {
      reply_.bulk("key_spec_index");
      reply_.integer(static_cast<int64_t>(std::min(key_index_++, key_range_count_ - 1)));
    }
    if (!argument.token.empty()) write_field(reply_, "token", argument.token);
    if (has_flags) {
      reply_.bulk("flags");
      reply_.set(size_t{argument.optional} + size_t{argument.multiple});
      if (argument.optional) reply_.simple("optional");
      if (argument.multiple) reply_.simple("multiple");
    }
    if (has_parts) {
      reply_.bulk("arguments");
      write(argument.parts);
    }
  }

  ReplyWriter& reply_;
  const size_t key_range_count_;
  size_t key_index_ = 0;
};

bool is_in_category(const Command& row, const CategoryRule& rule) {
  const bool is_slow = rule.name == kSlow && (row.flags & kFast) == 0;
  return is_slow || (row.categories & rule.category) != 0 || (row.flags & rule.flags) != 0;
}

}  // namespace

bool is_module_command(const Command& row) {
  return row.group == "bf" || row.group == "bloom-ext";
}

std::vector<std::string_view> category_names(const Command& row) {
  std::vector<std::string_view> names;
  for (const CategoryRule& rule : kCategories) {
    if (is_in_category(row, rule)) names.push_back(rule.name);
  }
  return names;
}

bool has_category(const Command& row, std::string_view category) {
  return std::any_of(std::begin(kCategories), std::end(kCategories), [&](const CategoryRule& rule) {
    return is_in_category(row, rule) && protocol::equals_ignore_case(rule.name.substr(1), category);
  });
}

std::vector<std::string_view> all_categories() {
  std::vector<std::string_view> names;
  for (const CategoryRule& rule : kCategories) names.push_back(rule.name.substr(1));
  return names;
}

std::vector<std::string_view> key_use_names(uint16_t use) {
  return names_of(use, kKeyUseNames);
}

void write_command_info(const RegisteredCommand& command, ReplyWriter& reply) {
  const Command& row = *command.row;
  const KeyRange keys = joined_range(row);
  auto flags = names_of(row.flags, kFlagNames);
  if (has_movable_keys(row)) flags.emplace_back("movablekeys");
  if (is_module_command(row)) flags.emplace_back("module");
  reply.array(10);
  reply.bulk(command.full_name);
  reply.integer(row.arity);
  write_simple_set(reply, flags);
  reply.integer(keys.first);
  reply.integer(keys.last);
  reply.integer(keys.step);
  write_simple_set(reply, category_names(row));
  write_tips(reply, row.tips);
  reply.set(range_count(row));
  for (const KeyRange& range : row.keys) {
    if (range.first != 0) write_key_specification(range, reply);
  }
  // As in Redis, the list of subcommands is an empty set for a command without subcommands, and an
  // array for a container.
  if (command.subcommands.empty()) return reply.set(0);
  reply.array(command.subcommands.size());
  for (const RegisteredCommand* subcommand : command.subcommands) {
    write_command_info(*subcommand, reply);
  }
}

void write_command_docs(const RegisteredCommand& command, ReplyWriter& reply) {
  const Command& row = *command.row;
  const bool in_module = is_module_command(row);
  const auto syntax = parse_syntax(row.syntax);
  const bool has_arguments = syntax && !syntax->empty();
  const bool has_subcommands = !command.subcommands.empty();
  reply.bulk(command.full_name);
  reply.map(4 + size_t{in_module} + size_t{has_arguments} + size_t{has_subcommands});
  write_field(reply, "summary", row.summary);
  write_field(reply, "since", row.since);
  // As in Redis, the commands of modules such as RedisBloom are in the group `module`.
  write_field(reply, "group", row.group == "bf" ? "module" : row.group);
  write_field(reply, "complexity", row.complexity);
  if (in_module) write_field(reply, "module", "bf");
  if (has_arguments) {
    reply.bulk("arguments");
    ArgumentWriter(reply, range_count(row)).write(*syntax);
  }
  if (has_subcommands) {
    reply.bulk("subcommands");
    reply.map(command.subcommands.size());
    for (const RegisteredCommand* subcommand : command.subcommands) {
      write_command_docs(*subcommand, reply);
    }
  }
}

}  // namespace server
