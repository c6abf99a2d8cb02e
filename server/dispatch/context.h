// SPDX-License-Identifier: MIT
//
// Context: what a handler sees of the command it runs: arguments, session, keyspace, reply.
//
// A handler parses all arguments, then locks, acts, and writes its reply:
//
//   /* STRLEN key */
//   void strlen(Context& ctx) {
//     const KeyRef key = ctx.key(1);
//     const auto lock = ctx.lock(key);
//     const auto entry = ctx.find_string(key);
//     if (!entry) return;  // WRONGTYPE was answered
//     ctx.reply.integer(*entry == nullptr ? 0 : (*entry)->string_size());
//   }
//
// Invariants: keys are reached under their stripe lock, whose mode the command's row decides;
// inside EXEC all locks are held already and lock…() take none.
// Thread safety: belongs to the thread that runs the command.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "core/number.h"
#include "persistence/journal.h"
#include "protocol/arguments.h"
#include "protocol/reply_writer.h"
#include "server/config/config.h"
#include "server/dispatch/command.h"
#include "server/dispatch/environment.h"
#include "server/process/server_state.h"
#include "server/process/statistics.h"
#include "server/session/session.h"

namespace server {

using core::Decimal;
using core::keyspace::Entry;
using core::keyspace::EntryPtr;
using core::keyspace::KeyRef;
using core::keyspace::StripeLock;
using core::keyspace::StripeMask;
using protocol::kNotAFloat;
using protocol::kNotAnInteger;
using protocol::kSyntaxError;

class Admission;
class Dispatcher;

// Reply texts that more than one family answers.
inline constexpr std::string_view kWrongType =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr std::string_view kBusyKey = "BUSYKEY Target key name already exists.";
inline constexpr std::string_view kNoSuchKey = "ERR no such key";

struct ExpiredKey {
  unsigned database;
  std::string name;
};

// Result of a lookup for one kind of value: the value, null if the key is missing, or false for a
// value of another kind. In the last case the error has been answered.
//
// A std::optional of a pointer could say the same. But g++ 12 writes it to memory in two pieces and
// reads it back as one. That waits for both: 5 ns, as long as the search itself.
template <class Value>
class Found {
 public:
  // Null: the key is missing.
  Found(Value* value) : value_(value) {}
  static Found other_kind() { return Found(nullptr, true); }

  explicit operator bool() const { return !is_other_kind_; }
  // REQUIRES: not of another kind.
  Value* operator*() const { return value_; }

 private:
  Found(Value* value, bool is_other_kind) : value_(value), is_other_kind_(is_other_kind) {}

  Value* value_;
  bool is_other_kind_ = false;
};

// Records that the command uses the entry.
void record_access(const Context& ctx, Entry& entry);
// Moves the bytes of a big argument that was received into memory of its own to `bytes`. The
// argument can then be read only as long as `bytes` exist and other threads do not reach them.
// False: it has no such memory, or it may be read when the command has ended.
bool take_argument(const Context& ctx, std::string_view argument,
                   core::keyspace::ByteBuffer& bytes);
// Journals the command's own words, as original_words() gives them.
void journal_command(const Context& ctx);

class Context {
 public:
  struct Parts {
    Environment& environment;
    ThreadStatistics& counters;
    Session& session;
    Dispatcher& dispatcher;
  };
  Context(const Parts& parts, const Request& from, protocol::ReplyWriter reply_writer,
          int64_t time_ms)
      : environment(parts.environment),
        services(parts.environment.services),
        counters(parts.counters),
        session(parts.session),
        dispatcher(parts.dispatcher),
        request(from),
        reply(reply_writer),
        now_ms(time_ms),
        expiry_now_ms(parts.session.origin == CommandOrigin::kClient
                          ? time_ms
                          : core::keyspace::kIgnoreExpiry),
        args(from.args) {}

  Environment& environment;
  Services& services;  // not for commands on data
  ThreadStatistics& counters;
  Session& session;
  Dispatcher& dispatcher;
  const Request& request;  // in EXEC that of EXEC
  protocol::ReplyWriter reply;
  const int64_t now_ms;  // wall clock, one value for all commands of a read batch
  // Time for expiry checks. A journal holds a DEL for each expired key, so its replay ignores it.
  const int64_t expiry_now_ms;
  Arguments args;
  const RegisteredCommand* command = nullptr;
  bool in_exec = false;  // all locks are held
  bool is_journalled = false;
  // Met by reads under a shared lock, which cannot delete them; null while there are none.
  std::unique_ptr<std::vector<ExpiredKey>> expired_keys;

  const Config& config() const { return environment.config; }
  core::keyspace::Keyspace& keyspace() const { return environment.keyspace; }
  // Clients of a cluster know one database.
  bool has_one_database() const {
    return session.origin == CommandOrigin::kClient && environment.state.is_in_cluster();
  }
  // Memory admission for this command.
  Admission admission() const;
  unsigned database() const { return static_cast<unsigned>(session.database); }
  KeyRef key(size_t argument_index) const {
    const std::string_view name = args[argument_index];
    // The same word, not only an equal one: in EXEC the words are others than the request's. An
    // empty word of an inline request may begin where the next one does.
    if (request.key.data() == name.data() && request.key.size() == name.size() &&
        name.data() != nullptr) {
      return {name, request.key_hash};
    }
    return environment.keyspace.ref(name);
  }

  core::keyspace::LockMode lock_mode() const {
    return command->has(kWrite) ? core::keyspace::LockMode::kExclusive
                                : core::keyspace::LockMode::kShared;
  }
  [[nodiscard]] StripeLock lock(const KeyRef& key) const {
    return in_exec ? StripeLock{}
                   : environment.keyspace.lock(core::keyspace::Keyspace::mask_of(key), lock_mode());
  }
  // The stripes of every key that the command names.
  [[nodiscard]] StripeLock lock_keys() const;
  [[nodiscard]] StripeLock lock_everything() const {
    return in_exec ? StripeLock{}
                   : environment.keyspace.lock(core::keyspace::kAllStripes, lock_mode());
  }
  core::keyspace::Locking locking() const {
    return in_exec ? core::keyspace::Locking::kHeld : core::keyspace::Locking::kTake;
  }

  // The live entry or null. Under a write command an expired one is deleted; under a read command
  // hits and misses are counted. REQUIRES: the key's lock.
  Entry* find(const KeyRef& key);
  // As find() under a read command, but leaves the access time alone.
  Entry* peek(const KeyRef& key) {
    Entry* entry = environment.keyspace.find(database(), key, expiry_now_ms);
    (entry != nullptr ? counters.keyspace_hits : counters.keyspace_misses).add();
    if (entry == nullptr && environment.state.listeners.any()) [[unlikely]]
      notify_miss(key);
    return entry;
  }
  // For write commands that answer what the key held: find() counts only under read commands.
  void count_lookup(const KeyRef& key, bool hit) const {
    (hit ? counters.keyspace_hits : counters.keyspace_misses).add();
    if (!hit) notify(KeyEvent::kMiss, database(), key);
  }
  // A new entry holding the empty string. REQUIRES: the key's lock, and that it is absent.
  Entry& insert(const KeyRef& key) {
    Entry& entry = environment.keyspace.insert(database(), key);
    entry.touch(access_clock_s());
    notify(KeyEvent::kNew, database(), key);
    return entry;
  }
  // As find(); a value of another kind answers WRONGTYPE.
  Found<Entry> find_string(const KeyRef& key) {
    Entry* entry = find(key);
    if (entry == nullptr || entry->is_string()) return entry;
    reply.error(kWrongType);
    return Found<Entry>::other_kind();
  }
  // The same, and the lookup counts as GET's does whatever the row says.
  Found<Entry> find_string_to_read(const KeyRef& key) {
    const auto found = find_string(key);
    if (command->has(kWrite)) count_lookup(key, !found || *found != nullptr);
    return found;
  }

  // Must be called for every key that a command changed, under its lock. It notifies watchers and
  // listeners, counts, and with the first change journals the command's own words. Rows of kEffects
  // journal nothing here.
  void changed(const KeyRef& key, KeyEvent event) { changed(database(), key, event); }
  void changed(unsigned in_database, const KeyRef& key, KeyEvent event) {
    environment.keyspace.notify_modified(in_database, key);
    if (environment.state.listeners.any()) [[unlikely]]
      notify_change(event, in_database, key);
    grew_only();
  }
  // Publishes a keyspace event without marking the key as modified. REQUIRES: the key's lock.
  void notify(KeyEvent event, unsigned in_database, const KeyRef& key) const {
    if (environment.state.listeners.any()) [[unlikely]]
      notify_event(event, in_database, key);
  }
  // As changed(), but watchers are not notified.
  void grew_only() {
    count_changes(1);
    if (command->row->journalled == Journalled::kVerbatim && !is_journalled) {
      journal_command(*this);
      is_journalled = true;
    }
  }
  // Journals commands that repeat the change, for rows of kEffects: absolute times, settings
  // spelled out, nothing that had no effect. REQUIRES: the locks of the changed keys.
  void journal(Arguments arguments) const {
    if (is_own_change()) [[unlikely]]
      record_own_change();
    environment.journal.append(database(), arguments);
  }
  void journal(std::initializer_list<std::string_view> arguments) const {
    journal(Arguments(arguments.begin(), arguments.size()));
  }
  // Returns whether the append log or a replica needs the journal.
  bool is_journal_active() const { return environment.journal.is_active(); }
  // For changes that changed() does not count.
  void count_changes(uint64_t count) const {
    environment.state.changes.fetch_add(count, std::memory_order_relaxed);
  }
  // Whether a child may still read arrays that it shares with this process. REQUIRES: a stripe's
  // lock, under which the answer holds.
  bool may_have_child() const { return environment.state.may_have_child; }
  // Answers at once if that is possible, else the connection asks again until it is.
  void await(std::unique_ptr<AwaitedReply> awaited);

  // Deletes the expired keys that reads have met while listeners existed, as Redis does on lookup.
  // REQUIRES: no locks.
  void expire_seen() {
    if (expired_keys != nullptr) [[unlikely]]
      expire_keys();
  }

  // Seconds, for the uses of keys.
  uint32_t access_clock_s() const { return static_cast<uint32_t>(now_ms / 1000); }

 private:
  // A client of a replica made the change: the leader does not have it.
  bool is_own_change() const {
    return session.origin == CommandOrigin::kClient &&
           environment.state.is_replica.load(std::memory_order_acquire);
  }
  void notify_miss(const KeyRef& key);
  void expire_keys();
  void notify_change(KeyEvent event, unsigned in_database, const KeyRef& key) const;
  void notify_event(KeyEvent event, unsigned in_database, const KeyRef& key) const;
  void record_own_change() const;
};

// The command's words under its original name, which replayers look up whatever the renames are.
// Returns a view of `ctx.args` or of `scratch`.
Arguments original_words(const Context& ctx, std::vector<std::string_view>& scratch);
// Journals other words in place of the command's own, for a row of kVerbatim. Must be called before
// Context::changed().
void journal_instead(Context& ctx, std::initializer_list<std::string_view> arguments);

// For sessions that track keys. Remembers those that the command reads; to be called before it
// does.
void remember_keys(const Context& ctx);
// CLIENT CACHING was for the command that has ended.
void end_caching(const Context& ctx);

}  // namespace server
