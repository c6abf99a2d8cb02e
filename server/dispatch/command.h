// SPDX-License-Identifier: MIT
//
// Command: one row of the command table, which describes one command completely.
//
// The file of a command family defines the family's handlers and, at its end, the family's rows.
// families.cpp lists the families. The checks of arity, authentication, memory and pauses read a
// command's row. So do the locking in EXEC, the replies of COMMAND and HELP, the statistics, and
// the generator of docs/commands.md. None of this code names a command.
//
// Invariants: Registry checks all rows when the server starts. A wrong row ends the process.
// Thread-safe: rows are constants.
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

class BigArgument;
class Context;
struct Request;

// Runs the command. REQUIRES: the number of arguments fits the row's arity.
using Handler = void (*)(Context&);

// Flags of a command. COMMAND reports the first group of flags to clients, under Redis' names.
// Flags marked "only reported" do not change how the server runs a command.
enum Flag : uint32_t {
  // The command may change keys: it takes exclusive locks, and waits while writes are paused.
  kWrite = 1U << 0,
  kReadOnly = 1U << 1,  // the command reads keys: it takes shared locks
  kDenyOom = 1U << 2,   // the command is rejected while used memory exceeds maxmemory
  kAdmin = 1U << 3,
  kPubSub = 1U << 4,    // only reported, also as the category @pubsub
  kNoScript = 1U << 5,  // only reported: this server runs no scripts
  kBlocking = 1U << 6,  // only reported, also as the category @blocking
  kLoading = 1U << 7,   // the command is allowed while data are being loaded
  kStale = 1U << 8,     // the command is allowed on a replica that has lost its leader
  kSkipMonitor = 1U << 9,
  kSkipSlowlog = 1U << 10,
  kFast = 1U << 11,
  kNoAuth = 1U << 12,         // clients that are not authenticated may send the command
  kClusterAsking = 1U << 13,  // only reported: a Redis Cluster that moves a slot sends the command
  kNoMulti = 1U << 14,        // the command is rejected inside MULTI
  kAllowBusy = 1U << 15,      // only reported: this server runs no scripts
  // Only reported: Redis rejects the command during an asynchronous load. This server has no such
  // load.
  kNoAsyncLoading = 1U << 16,
  // COMMAND does not report the flags below to clients.
  kInJournal = 1U << 23,  // journals and streams may contain the command although it changes no key
  kImmediate = 1U << 24,  // the command runs at once inside MULTI instead of being queued

  // The command accesses keys that are not among its arguments, so EXEC locks all stripes.
  kWholeKeyspace = 1U << 25,
  kNotPaused = 1U << 26,       // the command runs during CLIENT PAUSE ALL
  kRunsQueue = 1U << 27,       // the flags of the queued commands also apply to the command (EXEC)
  kReportsMisconf = 1U << 28,  // the command fails with MISCONF while writes fail (PING)

  // Replicas receive the command although it changes no key (PUBLISH, SPUBLISH). So pauses of write
  // commands, such as CLIENT PAUSE WRITE, also apply to this command.
  kMayReplicate = 1U << 29,
  kInSubscriberMode = 1U << 30,  // a RESP2 client with subscriptions may send the command
  kRepliesByPush = 1U << 31,  // the replies are push messages, which CLIENT REPLY does not silence
};

// ACL categories that a row states. Other categories follow from the flags (@read @write @fast
// @slow @admin @dangerous @pubsub @blocking). The categories are in the order in which Redis prints
// them.
enum Category : uint32_t {
  kKeyspace = 1U << 0,
  kString = 1U << 7,
  kBitmap = 1U << 8,
  kDangerous = 1U << 16,
  kConnection = 1U << 17,
  kTransaction = 1U << 18,
  kScripting = 1U << 19,
  kBloom = 1U << 20,
  kAdministrative = 1U << 21,  // puts a command without the flag kAdmin into the category @admin
};

// Bits that describe how a command uses the keys of one range. Their names are those of COMMAND's
// key specifications.
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

// The keys are the arguments first, first + step … last; argument 0 is the command's name. A
// negative `last` counts from the end: -1 is the last argument.
struct KeyRange {
  int first = 0;
  int last = 0;
  int step = 1;
  uint16_t use = 0;
  std::string_view note{};  // the field "notes" of COMMAND, which explains `use`; usually empty

  // Index of the argument that holds the number of keys; 0 if there is none. If it is not 0, `last`
  // is unused.
  int count_at = 0;
  // The upper-case name of an option that may follow the last key. The option is not a key.
  std::string_view option{};
  // The upper-case keyword that precedes the keys. The search starts at argument `first`. Without
  // the keyword the range has no keys.
  std::string_view keyword{};
  // A keyword such as KEYS of MIGRATE. If the argument at `first` is empty and the keyword follows
  // later in the command, the empty argument is not a key. The keys are then those after the
  // keyword, which the command's second key range describes.
  std::string_view empty_before{};
};

using Arguments = std::span<const std::string_view>;

// Returns whether the argument at `index` is a secret, which SLOWLOG and MONITOR hide.
using HidesArgument = bool (*)(Arguments, size_t index);

// Returns the index of the first key, which is the argument after the keyword. Without the keyword,
// the result is beyond the last argument.
int first_key_behind_keyword(const KeyRange& range, Arguments args, HidesArgument hides);
inline int first_key_of(const KeyRange& range, Arguments args, HidesArgument hides = nullptr) {
  return range.keyword.empty() ? range.first : first_key_behind_keyword(range, args, hides);
}
// Returns the index of the last key of the range. Returns an index below first_key_of() if the
// range has no key, or if the argument with the number of keys is invalid.
int last_key_of(const KeyRange& range, Arguments args, HidesArgument hides = nullptr);

// States which commands the journal stores after a command has changed data.
enum class Journalled : uint8_t {
  // The journal stores the command with its arguments, because replaying it gives the same result.
  kVerbatim,
  kEffects,  // the journal stores the effects that the handler passes to Context::commit
};

// States which arguments of a command are channels. The user needs permission for these channels.
enum class ChannelUse : uint8_t {
  kNone,
  kPublishes,          // the first argument is a channel to which the command publishes
  kListens,            // all arguments are channels to which the client subscribes
  kListensToPatterns,  // all arguments are patterns of channels to which the client subscribes
};

// Result of a row's prefetch function, which is passed to the handler. The command family defines
// the meaning of `kind`; 0 means no result.
struct Preview {
  uint64_t kind = 0;
  std::array<uint64_t, 2> words{};
};

struct Command {
  std::string_view name{};  // lower-case name; the name of CONFIG GET is "get"

  // Number of arguments including the name (and the subcommand's name); -n means n or more.
  int arity = 0;
  uint32_t flags = 0;
  std::array<KeyRange, 2> keys{};  // positions of the keys; an unused range has first == 0
  uint32_t categories = 0;
  // Group of the command: one of Redis' groups (string, bitmap, generic, server…), bf or bloom-ext.
  std::string_view group{};
  std::string_view since{};       // first version of Redis (or of the module) that has this command
  std::string_view summary{};     // summary of the command: one sentence without a full stop
  std::string_view complexity{};  // time complexity, without a full stop

  // Notation of docs/commands.md for arguments. Lower-case words are values, upper-case ones are
  // literal. [x] is optional, a | b a choice, `...` repeats the item before it.
  std::string_view syntax{};
  // Redis' command tips for proxies and cluster clients, separated by spaces.
  std::string_view tips{};
  // Handler of the command. For a command with subcommands, it handles requests without a
  // subcommand; null if such a request is an error.
  Handler handler = nullptr;
  std::span<const Command> subcommands{};
  // Prefetches the cache lines of a big value that the handlers of the requests will touch, except
  // the value's first cache line. Called under the key's shared lock while a pipeline's earlier
  // commands still wait. REQUIRES: at most kLookAheadMax requests, each with a valid arity.
  void (*prefetch)(const core::keyspace::Entry&, std::span<Request* const>) = nullptr;
  // Returns the exact use of the keys if the use depends on the arguments (SET … GET, BITFIELD …
  // GET).
  uint16_t (*key_use)(Arguments) = nullptr;
  Journalled journalled = Journalled::kVerbatim;
  HidesArgument hides = nullptr;  // null if no argument is a secret
  ChannelUse channels = ChannelUse::kNone;
};

// Calls visit(argument index, use) for every key that `args` names according to the row.
template <class Visit>
void for_each_key(const Command& row, Arguments args, Visit&& visit) {
  for (const KeyRange& range : row.keys) {
    if (range.first == 0) continue;
    const int last = last_key_of(range, args, row.hides);
    for (int i = first_key_of(range, args, row.hides); i <= last; i += range.step) {
      visit(static_cast<size_t>(i), range.use);
    }
  }
}

// Determines whether all keys of a command are in one slot. Shard channels count as keys.
class SlotUnion {
 public:
  void add(unsigned slot) {
    if (first_.value_or(slot) != slot) is_one_ = false;
    if (!first_) first_ = slot;
  }
  bool is_one() const { return is_one_; }
  // Returns the slot of the first key; nullopt if no key was added.
  const std::optional<unsigned>& first() const { return first_; }

 private:
  std::optional<unsigned> first_;
  bool is_one_ = true;
};

// The command table, as a list of families. Each family is a list of rows.
using CommandFamilies = std::span<const std::span<const Command>>;

// The command tip of commands whose replies may differ although the values of their keys are
// equal.
inline constexpr std::string_view kVaryingOutput = "nondeterministic_output";

// The permissions on keys and channels that a user needs in addition to the permission to run the
// command. They are computed once from the row. With kMore, the fast check has_plain_rights()
// cannot decide and returns false. The caller then needs has_rights().
struct Needs {
  enum Kind : uint8_t { kNothing, kFirstArgument, kMore };
  Kind kind = kMore;
  // Bits of acl::Access that the user needs for the key in the first argument. If the needed bits
  // depend on the arguments, all bits that may be needed are set.
  uint8_t access = 0;
};

// A registered row of the command table. Owned by the Registry until the process ends.
struct RegisteredCommand {
  // `row` is the first field of the struct, because every request reads it.
  const Command* row = nullptr;
  std::vector<const RegisteredCommand*> subcommands;
  size_t index = 0;  // index for statistics; the indices of all commands have no gaps
  Needs needs{};
  std::string full_name;                         // full name, such as "get" or "client|list"
  const RegisteredCommand* container = nullptr;  // the container of a subcommand; otherwise null

  // Returns the original first word of the command, before rename-command.
  std::string_view first_word() const {
    return container == nullptr ? row->name : container->row->name;
  }
  bool has(uint32_t flags) const { return (row->flags & flags) != 0; }
  bool arity_fits(size_t argument_count) const {
    const auto count = static_cast<int>(argument_count);
    return row->arity >= 0 ? count == row->arity : count >= -row->arity;
  }
};

// Maximum number of requests for which Dispatcher::look_ahead prefetches memory together.
inline constexpr size_t kLookAheadMax = 16;

// A command that a client has sent, with the results of Dispatcher::look_ahead, so that execution
// does not repeat the lookup and the hash. The results depend only on the words, so other commands
// cannot invalidate them.
struct Request {
  Arguments args{};
  // The command that the first word names; null if unknown or not looked up yet.
  const RegisteredCommand* command = nullptr;
  // The first key of the command; its data pointer is null if no hash was computed.
  std::string_view key{};
  uint64_t key_hash = 0;
  Preview preview{};
  // The word of the request that has memory of its own; null if there is no such word.
  BigArgument* big_argument = nullptr;
  // Offset in the thread's output buffer at which the unsent replies to this client begin.
  size_t replies_begin = 0;
};

// Returns the key ranges of a command whose only key is its first argument.
constexpr std::array<KeyRange, 2> one_key(uint16_t use, std::string_view note = {}) {
  return {{{1, 1, 1, use, note}, {}}};
}
// Returns the key ranges of a command with the arguments "numkeys key [key ...]". `count_at` is the
// index of numkeys.
constexpr std::array<KeyRange, 2> counted_keys(int count_at, uint16_t use) {
  return {{{.first = count_at + 1, .use = use, .count_at = count_at}, {}}};
}
constexpr std::array<KeyRange, 2> keys_to_end(int first, int step, uint16_t use) {
  return {{{first, -1, step, use}, {}}};
}

}  // namespace server
