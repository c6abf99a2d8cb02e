// SPDX-License-Identifier: MIT
//
// Context: the environment of a command's handler: arguments, session, keyspace, reply.
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
// A handler that changes a key calls commit() before it unlocks the key.
//
// Invariants: keys are accessed under their stripe lock, whose mode the command's row determines.
// Inside EXEC all locks are already held, and the lock functions do nothing.
// Thread safety: belongs to the thread that runs the command.
#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/keyspace/keyspace.h"
#include "core/number.h"
#include "persistence/journal.h"
#include "protocol/arguments.h"
#include "protocol/reply_writer.h"
#include "server/base/config/config.h"
#include "server/base/metrics/statistics.h"
#include "server/base/process/server_state.h"
#include "server/dispatch/command.h"
#include "server/dispatch/environment.h"
#include "server/session/command_result.h"
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

// The error texts that several command families use.
inline constexpr std::string_view kWrongType =
    "WRONGTYPE Operation against a key holding the wrong kind of value";
inline constexpr std::string_view kBusyKey = "BUSYKEY Target key name already exists.";
inline constexpr std::string_view kNoSuchKey = "ERR no such key";

struct ExpiredKey {
  unsigned database;
  std::string name;
};

// Result of a lookup for one kind of value: the value, or null if the key is missing. If the key
// holds another kind, the result converts to false, and the error reply was written.
//
// A std::optional of a pointer would be slower: g++ 12 writes the std::optional to memory in two
// pieces and reads it in one piece. The read waits 5 ns for both writes, which is as long as the
// search itself takes.
template <class Value>
class Found {
 public:
  // A null value means that the key is missing.
  Found(Value* value) : value_(value) {}
  static Found other_kind() { return Found(nullptr, true); }

  explicit operator bool() const { return !is_other_kind_; }
  // Returns the value; null if the key is missing. REQUIRES: the key does not hold another kind of
  // value.
  Value* operator*() const { return value_; }

 private:
  Found(Value* value, bool is_other_kind) : value_(value), is_other_kind_(is_other_kind) {}

  Value* value_;
  bool is_other_kind_ = false;
};

// Records that the command uses the entry, for eviction.
void record_access(const Context& ctx, Entry& entry);
// Moves the bytes of a big argument that has memory of its own into `bytes`. From then on the
// argument is readable only while `bytes` exist and no other thread can access them. Returns false
// if the argument has no such memory, or must stay readable after the command.
bool take_argument(const Context& ctx, std::string_view argument,
                   core::keyspace::ByteBuffer& bytes);
// Journals the running command with the arguments that original_words() returns.
void journal_command(Context& ctx);

// CommitRecord: what a command has committed. In debug builds, CommitCheck compares the record with
// the changes that the command has made.
#ifdef NDEBUG
class CommitRecord {
 public:
  void begin() { is_journalled = false; }
  void add_mark(std::string_view, const persistence::Journal&) {}
  void end_marks() {}
  void add_journalled(const persistence::Journal&) {}

  bool is_journalled = false;
};
#else
class CommitRecord {
 public:
  // Must be called before a command runs. Removes the commits of an earlier command.
  void begin() {
    is_journalled = false;
    marked_keys_.clear();
    unjournalled_marks_ = 0;
    journalled_ = 0;
  }
  // Records that a key was marked as changed. While the journal is inactive, the change need not be
  // journalled.
  void add_mark(std::string_view key, const persistence::Journal& journal) {
    marked_keys_.emplace_back(key);
    if (journal.is_active()) ++unjournalled_marks_;
  }
  // Records that the journal contains the changes of all keys that were marked until now.
  void end_marks() { unjournalled_marks_ = 0; }
  // Records that the command has appended to the journal.
  void add_journalled(const persistence::Journal& journal) {
    if (journal.is_active()) ++journalled_;
    end_marks();
  }

  bool has_unjournalled_marks() const { return unjournalled_marks_ > 0; }
  bool has_marked(std::string_view key) const {
    return std::ranges::find(marked_keys_, key) != marked_keys_.end();
  }
  // Returns how often the command has appended to the journal.
  uint64_t journalled() const { return journalled_; }

  bool is_journalled = false;  // true if the journal contains the command with its arguments

 private:
  std::vector<std::string> marked_keys_;
  uint64_t unjournalled_marks_ = 0;
  uint64_t journalled_ = 0;
};
#endif

// Effect: the words of a command that repeats a change. Its arguments contain absolute times and
// all options, even those that have their defaults. Items that changed nothing are left out.
class Effect {
 public:
  Effect(Arguments words) : words_(words) {}
  Effect(std::initializer_list<std::string_view> words) : words_(words.begin(), words.size()) {}
  Arguments words() const { return words_; }

 private:
  Arguments words_;
};

class Context {
 public:
  struct Parts {
    Environment& environment;
    ThreadStatistics& counters;
    Session& session;
    Dispatcher& dispatcher;
  };
  Context(const Parts& parts, const Request& from, protocol::ReplyWriter reply_writer,
          int64_t time_ms, CommandResult& command_result)
      : environment(parts.environment),
        services(parts.environment.services),
        counters(parts.counters),
        session(parts.session),
        client(*parts.session.client),
        dispatcher(parts.dispatcher),
        request(from),
        reply(reply_writer),
        result(command_result),
        now_ms(time_ms),
        expiry_now_ms(parts.session.origin == CommandOrigin::kClient
                          ? time_ms
                          : core::keyspace::kIgnoreExpiry),
        args(from.args) {}

  Environment& environment;
  Services& services;  // services of the whole server, which commands on data must not use
  ThreadStatistics& counters;
  Session& session;
  Client& client;  // the part of the session that other threads may use
  Dispatcher& dispatcher;
  const Request& request;  // the running request; inside EXEC it is the request of EXEC itself
  protocol::ReplyWriter reply;
  CommandResult& result;  // the result that execute() will return
  const int64_t now_ms;   // wall-clock time, at most a millisecond old when the command begins

  // The time with which expiries are compared. It is kIgnoreExpiry if the command comes from a
  // journal, because the journal contains a DEL for each key that has expired.
  const int64_t expiry_now_ms;
  Arguments args;
  const RegisteredCommand* command = nullptr;
  bool in_exec = false;  // true inside EXEC, which already holds the locks that the command needs
  CommitRecord commits;
  // Expired keys found by reads under a shared lock, which cannot delete keys. Null if none was
  // found.
  std::unique_ptr<std::vector<ExpiredKey>> expired_keys;

  const Config& config() const { return environment.config; }
  core::keyspace::Keyspace& keyspace() const { return environment.keyspace; }
  // Returns the limits on memory that apply to this command.
  Admission admission() const;
  unsigned database() const { return static_cast<unsigned>(client.database); }
  KeyRef key(size_t argument_index) const {
    const std::string_view name = args[argument_index];
    // The hash of the request's first key is used if `name` is that key. Addresses are compared
    // rather than texts, because queued commands in EXEC have other arguments than the request. An
    // empty argument of an inline request may have the address of the next argument, so the sizes
    // are compared, too.
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
  // Locks the stripes of all keys that the command names.
  [[nodiscard]] StripeLock lock_keys() const;
  [[nodiscard]] StripeLock lock_everything() const {
    return in_exec ? StripeLock{}
                   : environment.keyspace.lock(core::keyspace::kAllStripes, lock_mode());
  }
  core::keyspace::Locking locking() const {
    return in_exec ? core::keyspace::Locking::kHeld : core::keyspace::Locking::kTake;
  }

  // Returns the live entry or null. A write command deletes an expired entry. A read command counts
  // hits and misses. REQUIRES: the key's lock.
  Entry* find(const KeyRef& key);
  // Finds the entry as find() does for a read command, but does not change the entry's
  // access time.
  Entry* peek(const KeyRef& key) {
    Entry* entry = environment.keyspace.find(database(), key, expiry_now_ms);
    (entry != nullptr ? counters.keyspace_hits : counters.keyspace_misses).add();
    if (entry == nullptr && environment.state.listeners.any()) [[unlikely]]
      notify_miss(key);
    return entry;
  }
  // Counts a hit or a miss. Used for write commands that reply with the old value, because find()
  // counts hits and misses only for read commands.
  void count_lookup(const KeyRef& key, bool hit) const {
    (hit ? counters.keyspace_hits : counters.keyspace_misses).add();
    if (!hit) notify(KeyEvent::kMiss, database(), key);
  }
  // Creates an entry with the empty string. REQUIRES: the key's lock; the key is absent.
  Entry& insert(const KeyRef& key) {
    Entry& entry = environment.keyspace.insert(database(), key);
    entry.touch(access_clock_s());
    notify(KeyEvent::kNew, database(), key);
    return entry;
  }
  // Finds the entry as find() does, but replies with WRONGTYPE if the key holds another kind of
  // value.
  Found<Entry> find_string(const KeyRef& key) {
    Entry* entry = find(key);
    if (entry == nullptr || entry->is_string()) return entry;
    reply.error(kWrongType);
    return Found<Entry>::other_kind();
  }
  // Finds the string as find_string() does, but always counts the lookup as GET does, regardless of
  // the command's flags.
  Found<Entry> find_string_to_read(const KeyRef& key) {
    const auto found = find_string(key);
    if (command->has(kWrite)) count_lookup(key, !found || *found != nullptr);
    return found;
  }

  // Commits the change of a key: marks the key for watchers, notifies listeners, counts the change
  // and journals it, in this order. Other commands see no step before the last one, because the key
  // is locked. Must be called for every changed key. REQUIRES: the key's exclusive
  // lock.
  //
  // Without an effect, the command's row must have Journalled::kVerbatim. The first commit then
  // journals the command with its arguments.
  void commit(const KeyRef& key, KeyEvent event) {
    mark_changed(database(), key, event);
    journal_once();
  }
  // Journals the effect in place of the running command.
  void commit(const KeyRef& key, KeyEvent event, Effect effect) {
    mark_changed(database(), key, event);
    journal(effect);
  }
  // mark_changed(), journal() and journal_once() are the steps of commit(). Only helpers call them
  // that journal several commands for one change, or one command for several keys. Handlers call
  // commit() or such a helper. mark_changed() must precede the other step.
  void mark_changed(unsigned in_database, const KeyRef& key, KeyEvent event) {
    environment.keyspace.notify_modified(in_database, key);
    if (environment.state.listeners.any()) [[unlikely]]
      notify_change(event, in_database, key);
    count_changes(1);
    commits.add_mark(key.name, environment.journal);
  }
  // REQUIRES: the locks of the changed keys.
  void journal(Effect effect) {
    if (is_own_change()) [[unlikely]]
      record_own_change();
    environment.journal.append(database(), effect.words());
    commits.add_journalled(environment.journal);
  }
  // Journals a command whose row has kVerbatim, unless an earlier change has journalled it.
  void journal_once() {
    if (command->row->journalled != Journalled::kVerbatim) return;
    if (!commits.is_journalled) {
      journal_command(*this);
      commits.is_journalled = true;
    }
    commits.end_marks();
  }
  // Publishes a keyspace event without marking the key as modified. REQUIRES: the key's lock.
  void notify(KeyEvent event, unsigned in_database, const KeyRef& key) const {
    if (environment.state.listeners.any()) [[unlikely]]
      notify_event(event, in_database, key);
  }
  // Returns whether the append log or a replica needs the journal.
  bool is_journal_active() const { return environment.journal.is_active(); }
  // Increases the number of changes since the last save. Called for changes that commit() does not
  // count, such as those of FLUSHALL.
  void count_changes(uint64_t count) const {
    environment.state.changes.fetch_add(count, std::memory_order_relaxed);
  }
  // Returns whether a child process may still read arrays that it shares with this process.
  // REQUIRES: the lock of at least one stripe. The answer stays valid while the lock is held.
  bool may_have_child() const { return environment.state.may_have_child; }
  // Replies at once if the awaited event has happened, and returns false. Otherwise returns true:
  // the connection checks repeatedly whether the event has happened, and then replies.
  bool await(std::unique_ptr<AwaitedReply> awaited);
  // Makes the connection close when the replies to this command and to earlier ones are sent.
  void close_after_reply() { result.outcome = Outcome::kClose; }

  // Returns the present time in seconds. A key stores this time when it is accessed.
  uint32_t access_clock_s() const { return static_cast<uint32_t>(now_ms / 1000); }

 private:
  // Returns whether this server is a replica and one of its own clients made the change. The leader
  // of the replica does not have such a change.
  bool is_own_change() const {
    return session.origin == CommandOrigin::kClient &&
           environment.state.is_replica.load(std::memory_order_acquire);
  }
  void notify_miss(const KeyRef& key);
  void notify_change(KeyEvent event, unsigned in_database, const KeyRef& key) const;
  void notify_event(KeyEvent event, unsigned in_database, const KeyRef& key) const;
  void record_own_change() const;
};

// Returns true for a client of a cluster node. Such a client knows only one database.
inline bool has_one_database(const Context& ctx) {
  return ctx.session.origin == CommandOrigin::kClient && ctx.environment.state.is_in_cluster();
}

// Commits a change as Context::commit() does, in a database that the client need not have selected.
inline void commit_in(Context& ctx, unsigned database, const KeyRef& key, KeyEvent event) {
  ctx.mark_changed(database, key, event);
  ctx.journal_once();
}
// Commits the growth of a string, but notifies no watchers and no listeners. Called if a BITFIELD
// has extended the string but all its writes have failed by overflow. Redis sends no notification
// then either.
inline void commit_growth(Context& ctx, const KeyRef& key) {
  ctx.commits.add_mark(key.name, ctx.environment.journal);
  ctx.count_changes(1);
  ctx.journal_once();
}
// Commits a change that the caller has already journalled.
inline void commit_journalled(Context& ctx, const KeyRef& key, KeyEvent event) {
  ctx.mark_changed(ctx.database(), key, event);
  ctx.commits.end_marks();
}

// Deletes the keys in `ctx.expired_keys`, as Redis deletes expired keys on lookup, and publishes
// `keymiss` for them. Such keys are recorded only while clients listen to key events or track keys.
// REQUIRES: the caller holds no locks; `ctx.expired_keys` is not null.
void expire_seen(Context& ctx);

// Returns the command's words under its original name, so that replay does not depend on renames.
// The result is a view of `ctx.args` or of `scratch`.
Arguments original_words(const Context& ctx, std::vector<std::string_view>& scratch);

// Records the keys that the command reads, for a session that tracks keys. Must be called before
// the command reads them.
void remember_keys(const Context& ctx);
// Ends the effect of CLIENT CACHING, which covers one command only.
void end_caching(const Context& ctx);

}  // namespace server
