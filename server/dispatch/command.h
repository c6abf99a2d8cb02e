// SPDX-License-Identifier: MIT
//
// Command: one row of the command table, all that the server knows of a command.
//
// A family file (`*_commands.cpp`) defines its handlers and, at its end, its rows; registry.cpp
// lists the families. Arity, authentication, memory and pause checks, locking in EXEC, COMMAND,
// HELP, statistics and docs/commands.md read the row; nothing else names a command.
//
// Invariants: checked by Registry when the server starts; a wrong row ends the process there.
// Thread safety: rows are constants.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace core::keyspace {
class Entry;
}

namespace server {

class Context;

// REQUIRES: the row's arity holds for the arguments.
using Handler = void (*)(Context&);

// Facts that dispatch needs. COMMAND reports the first group to clients, under Redis' names.
enum Flag : uint32_t {
  kWrite = 1U << 0,     // may change keys: exclusive locks, refused while writes are paused
  kReadOnly = 1U << 1,  // reads keys: shared locks
  kDenyOom = 1U << 2,   // refused when memory is above maxmemory
  kAdmin = 1U << 3,
  kPubSub = 1U << 4,
  kNoScript = 1U << 5,
  kBlocking = 1U << 6,
  kLoading = 1U << 7,  // allowed while data is being loaded
  kStale = 1U << 8,    // allowed on a replica without its leader
  kSkipMonitor = 1U << 9,
  kSkipSlowlog = 1U << 10,
  kFast = 1U << 11,
  kNoAuth = 1U << 12,   // allowed before authentication
  kNoMulti = 1U << 14,  // refused inside MULTI
  kAllowBusy = 1U << 15,
  kNoAsyncLoading = 1U << 16,  // not while a replica loads beside the data it serves
  // Not reported to clients:
  kInJournal = 1U << 23,      // a journal or a stream may hold it although it changes no key itself
  kImmediate = 1U << 24,      // runs at once inside MULTI instead of being queued
  kWholeKeyspace = 1U << 25,  // reaches keys it does not name: EXEC locks every stripe
  kNotPaused = 1U << 26,      // runs during CLIENT PAUSE ALL
  kRunsQueue = 1U << 27,      // has the flags of the queued commands as well
  kReportsMisconf = 1U << 28,  // also answers MISCONF when writes do (PING)
  kMayReplicate = 1U << 29,    // reaches replicas though it changes no key: paused with the writes
  kInSubscriberMode = 1U << 30,  // allowed to a subscriber that speaks RESP2
  kRepliesByPush = 1U << 31,     // its replies are messages, which CLIENT REPLY does not silence
};

// ACL categories beyond those that follow from the flags (@read @write @fast @slow @admin
// @dangerous @pubsub @blocking), in the order in which Redis prints them.
enum Category : uint32_t {
  kKeyspace = 1U << 0,
  kSet = 1U << 3,
  kString = 1U << 7,
  kBitmap = 1U << 8,
  kDangerous = 1U << 16,
  kConnection = 1U << 17,
  kTransaction = 1U << 18,
  kScripting = 1U << 19,
  kBloom = 1U << 20,
  kAdministrative = 1U << 21,  // @admin without the flag of that name
};

// How a command uses the keys of one range, under the names of COMMAND's key specifications.
enum KeyUse : uint16_t {
  kKeyRo = 1U << 0,
  kKeyRw = 1U << 1,
  kKeyOw = 1U << 2,
  kKeyRm = 1U << 3,
  kKeyAccess = 1U << 4,
  kKeyUpdate = 1U << 5,
  kKeyInsert = 1U << 6,
  kKeyDelete = 1U << 7,
  kNotAKey = 1U << 8,
  kKeyIncomplete = 1U << 10,  // a client that knows only key specifications may miss some keys
  kKeyVariable = 1U << 11,
};

// Keys at arguments first, first + step … last; the command name is argument 0. A negative last
// counts from the end: -1 is the last argument.
struct KeyRange {
  int first = 0;
  int last = 0;
  int step = 1;
  uint16_t use = 0;
  std::string_view note{};  // why the use is what it is, where that is not plain
  // The argument that holds the number of keys; then `last` is unused.
  int count_at = 0;
  // An option that may follow the last key, in upper case; it is not a key.
  std::string_view option{};
  // The word, upper case, that the keys follow; the search for it begins at `first`. Without the
  // word the range has no keys.
  std::string_view keyword{};
  // If that keyword comes later, an empty argument is not a key: the keys follow the keyword.
  std::string_view empty_before{};
};

using Arguments = std::span<const std::string_view>;

// Index of the first key of the range, if it has one.
int first_key_behind_keyword(const KeyRange& range, Arguments args);
inline int first_key_of(const KeyRange& range, Arguments args) {
  return range.keyword.empty() ? range.first : first_key_behind_keyword(range, args);
}
// Index of the last key of the range, below first_key_of() when there is none. That is also so if
// the argument that counts the keys is no such count.
int last_key_of(const KeyRange& range, Arguments args);

// The words that the journal holds of a command that changed something.
enum class Journalled : uint8_t {
  kVerbatim,  // its own words: repeating them changes the same
  kEffects,   // what the handler gives to Context::journal
};

// Which arguments are channels that a user must be allowed to use.
enum class ChannelUse : uint8_t {
  kNone,
  kPublishes,          // the first argument
  kListens,            // all arguments
  kListensToPatterns,  // all arguments, each of them a pattern
};

// Result of a row's prefetch, for its handler. The family gives `kind` a meaning; 0: nothing.
struct Preview {
  uint64_t kind = 0;
  std::array<uint64_t, 2> words{};
};

struct Command {
  std::string_view name{};  // lower case, without its container's name
  int arity = 0;            // counts the name (and the subcommand's); -n means n or more
  uint32_t flags = 0;
  std::array<KeyRange, 2> keys{};  // unused ranges have first == 0
  uint32_t categories = 0;
  // One of Redis' groups: string, bitmap, generic, server…; otherwise bf or bloom-ext.
  std::string_view group{};
  std::string_view since{};       // first Redis (or module) version with this command
  std::string_view summary{};     // one sentence; no full stop at its end
  std::string_view complexity{};  // no full stop at its end
  // Notation of docs/commands.md for arguments. Lower-case words are values, upper-case ones are
  // literal. [x] is optional, a | b a choice, `...` repeats the item before it.
  std::string_view syntax{};
  // For proxies and cluster clients: Redis' command tips, with a space between two.
  std::string_view tips{};
  Handler handler = nullptr;  // in a container: of its bare name, or null when that is an error
  std::span<const Command> subcommands{};
  // Prefetches the cache lines, beyond the value's first, that the handler will touch in a big
  // value. Called under the key's shared lock while a pipeline's earlier commands still wait.
  void (*prefetch)(const core::keyspace::Entry&, Arguments, Preview&) = nullptr;
  // The exact use of the keys where it depends on the arguments (SET … GET, BITFIELD … GET).
  uint16_t (*key_use)(Arguments) = nullptr;
  Journalled journalled = Journalled::kVerbatim;
  // Whether the argument at an index is a secret, which SLOWLOG and MONITOR hide.
  bool (*hides)(Arguments, size_t index) = nullptr;
  ChannelUse channels = ChannelUse::kNone;
};

// Calls visit(argument index, use) for every key that `args` names according to the row.
template <class Visit>
void for_each_key(const Command& row, Arguments args, Visit&& visit) {
  for (const KeyRange& range : row.keys) {
    if (range.first == 0) continue;
    const int last = last_key_of(range, args);
    for (int i = first_key_of(range, args); i <= last; i += range.step) {
      visit(static_cast<size_t>(i), range.use);
    }
  }
}

// Whether keys lie in one slot, as clients of a cluster have it. Channels of shards count as keys.
class SlotUnion {
 public:
  void add(unsigned slot) {
    if (first_.value_or(slot) != slot) is_one_ = false;
    if (!first_) first_ = slot;
  }
  bool is_one() const { return is_one_; }
  // Slot of the first key; nullopt without keys.
  const std::optional<unsigned>& first() const { return first_; }

 private:
  std::optional<unsigned> first_;
  bool is_one_ = true;
};

// The tip of commands whose reply depends on more than their keys' values.
inline constexpr std::string_view kVaryingOutput = "nondeterministic_output";

// The permissions that a user needs beyond the command itself, in the cases that are this simple.
struct Needs {
  enum Kind : uint8_t { kNothing, kFirstArgument, kMore };
  Kind kind = kMore;
  uint8_t access = 0;  // bits of acl::Access to the key that is the first argument; or more of them
};

// A row in the Registry, which owns it for the life of the process.
struct RegisteredCommand {
  // Every request reads this field, so it comes first.
  const Command* row = nullptr;
  std::vector<const RegisteredCommand*> subcommands;
  size_t index = 0;  // dense, for statistics
  Needs needs{};
  std::string full_name;                         // "get", "client|list"
  const RegisteredCommand* container = nullptr;  // of a subcommand

  // The first word, unless rename-command gave clients another one.
  std::string_view first_word() const {
    return container == nullptr ? row->name : container->row->name;
  }
  bool has(uint32_t flags) const { return (row->flags & flags) != 0; }
  bool arity_fits(size_t argument_count) const {
    const auto count = static_cast<int>(argument_count);
    return row->arity >= 0 ? count == row->arity : count >= -row->arity;
  }
};

// One command that a client has sent, with the results of Dispatcher::look_ahead, so that its
// execution repeats no lookup or hash. Everything but `args` follows from the words alone, so it
// holds whatever other commands do meanwhile.
struct Request {
  Arguments args{};
  const RegisteredCommand* command = nullptr;  // of the first word; null: not looked up, or unknown
  std::string_view key{};                      // the first key; no bytes, not even none: not hashed
  uint64_t key_hash = 0;
  Preview preview{};
};

// Shorthands for the common shapes of `keys`.
constexpr std::array<KeyRange, 2> one_key(uint16_t use, std::string_view note = {}) {
  return {{{1, 1, 1, use, note}, {}}};
}
// numkeys key [key ...], numkeys being argument `count_at`.
constexpr std::array<KeyRange, 2> counted_keys(int count_at, uint16_t use) {
  return {{{.first = count_at + 1, .use = use, .count_at = count_at}, {}}};
}
constexpr std::array<KeyRange, 2> keys_to_end(int first, int step, uint16_t use) {
  return {{{first, -1, step, use}, {}}};
}

}  // namespace server
