// SPDX-License-Identifier: MIT
//
// MIGRATE: moves keys to another server, or copies them there.
//
// The I/O thread dumps the keys, another thread sends them, and the I/O thread deletes the keys
// that the target has stored. Other clients are served during the transfer. A key that has changed
// after its dump is not deleted. Such a key is dumped and sent again, and replaces the target's
// copy.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/keyspace/reclaimer.h"
#include "core/keyspace/watch.h"
#include "server/commands/families.h"
#include "server/commands/keys/dump_value.h"
#include "server/commands/replication/key_transfer.h"
#include "server/commands/services.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"
#include "server/dispatch/pause_gate.h"
#include "server/session/awaited_reply.h"

namespace server {
namespace {

constexpr size_t kOptionsBegin = 6;  // index of the first argument that may be an option
constexpr std::chrono::milliseconds kUsualTimeout{1000};

struct MigrateOptions {
  TransferTarget target;
  std::vector<std::string> keys;
  bool copies = false;
  bool replaces = false;
};

std::vector<std::string> texts_of(Arguments arguments) {
  return {arguments.begin(), arguments.end()};
}

core::Result<MigrateOptions> parse_migrate(Arguments args) {
  MigrateOptions options;
  protocol::ArgumentCursor cursor(args.subspan(1));
  options.target.host = cursor.next();
  constexpr std::string_view kBadPort = "ERR Invalid port: a number from 1 to 65535 is needed";
  options.target.port = static_cast<uint16_t>(cursor.take_int64_between(1, 65535, kBadPort));
  options.keys = texts_of(std::span(&args[3], 1));
  (void)cursor.next();
  options.target.database = cursor.take_int64();
  const int64_t timeout_ms = cursor.take_int64_between(std::numeric_limits<int64_t>::min(),
                                                       std::numeric_limits<int32_t>::max());
  options.target.timeout = timeout_ms > 0 ? std::chrono::milliseconds(timeout_ms) : kUsualTimeout;
  while (!cursor.done()) {
    if (cursor.eat_keyword("COPY")) {
      options.copies = true;
    } else if (cursor.eat_keyword("REPLACE")) {
      options.replaces = true;
    } else if (cursor.eat_keyword("AUTH")) {
      options.target.login = {"AUTH", std::string(cursor.next())};
    } else if (cursor.eat_keyword("AUTH2")) {
      const std::string user(cursor.next());
      options.target.login = {"AUTH", user, std::string(cursor.next())};
    } else if (cursor.eat_keyword("KEYS")) {
      if (!args[3].empty()) {
        cursor.fail(
            "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string");
        break;
      }
      options.keys = texts_of(cursor.rest());
      break;
    } else {
      cursor.fail(kSyntaxError);
    }
  }
  if (!cursor.ok()) return core::Error{std::string(cursor.error())};
  return options;
}

class AwaitedMigration final : public AwaitedReply {
 public:
  AwaitedMigration(const Context& ctx, MigrateOptions options)
      : parts_{ctx.environment, ctx.counters, ctx.session, ctx.dispatcher},
        services_(ctx.services),
        command_(ctx.command),
        database_(ctx.database()),
        options_(std::move(options)) {}
  ~AwaitedMigration() override {
    transfer_.reset();
    for (const Key& key : keys_) unwatch(key);
  }

  // Starts to send the keys that exist. Returns false if no key exists. Errors: out of memory.
  core::Result<bool> start() { return send(std::exchange(options_.keys, {}), options_.replaces); }

  bool try_answer(protocol::ReplyWriter& reply, bool /*is_late*/) override {
    if (!transfer_->has_ended()) return false;
    std::vector<std::string> changed;
    if (!options_.copies) {
      const int64_t now_ms = services_.clock.wall_ms();
      if (services_.pause.holds_back(kWrite, now_ms)) return false;
      if (std::string refusal = write_refusal(); !refusal.empty()) {
        reply.error(refusal);
        return true;
      }
      changed = delete_stored(now_ms);
    }
    if (const std::string& error = transfer_->outcome().error; !error.empty()) {
      reply.error(error);
      return true;
    }
    if (changed.empty()) {
      reply.ok();
      return true;
    }
    return !send_again(std::move(changed), reply);
  }
  bool has_written() const override { return has_written_; }

 private:
  struct Key {
    std::string name;
    core::keyspace::WatchFlagPtr flag;
  };

  // Limit on how often a key that changes during the transfer is sent.
  static constexpr int kAttemptsMax = 16;

  core::keyspace::Keyspace& keyspace() const { return services_.keyspace; }

  void unwatch(const Key& key) const {
    const KeyRef ref = keyspace().ref(key.name);
    const auto lock = keyspace().lock_exclusive(ref);
    keyspace().unwatch(database_, ref, key.flag);
  }

  // Dumps the keys that exist and begins to send them. Each key is watched before it is dumped.
  core::Result<bool> send(std::vector<std::string> names, bool replaces) {
    std::vector<DumpedKey> dumped;
    for (std::string& name : names) {
      keys_.push_back({std::move(name), std::make_shared<core::keyspace::WatchFlag>()});
      auto key = dump(keys_.back());
      if (!key) return key.error();
      if (key->payload.empty()) {
        unwatch(keys_.back());
        keys_.pop_back();
        continue;
      }
      key->replaces = replaces;
      dumped.push_back(std::move(*key));
    }
    if (dumped.empty()) return false;
    transfer_ = std::make_unique<KeyTransfer>(options_.target, std::move(dumped),
                                              parts_.session.client->wake);
    ++attempts_;
    return true;
  }

  // Dumps one key. The result has no payload if the key is missing.
  core::Result<DumpedKey> dump(const Key& key) const {
    const KeyRef ref = keyspace().ref(key.name);
    const int64_t now_ms = services_.clock.wall_ms();
    {
      const auto lock = keyspace().lock_exclusive(ref);
      keyspace().watch(database_, ref, key.flag, now_ms);
    }
    const auto lock =
        keyspace().lock(core::keyspace::Keyspace::mask_of(ref), core::keyspace::LockMode::kShared);
    const Entry* const entry = keyspace().find(database_, ref, now_ms);
    DumpedKey dumped{.name = key.name};
    if (entry == nullptr) return dumped;
    const Admission admission(services_.config, services_.memory, CommandOrigin::kClient);
    // The payload and the buffer that compresses it may each need as much memory as the value.
    if (!admission.memory_suffices(2 * entry->memory_bytes())) {
      return admission.out_of_memory();
    }
    if (entry->has_expiry()) dumped.ttl_ms = std::max<int64_t>(1, entry->expires_at_ms() - now_ms);
    dumped.payload = dump_of(*entry);
    return dumped;
  }

  // Returns the error reply if keys may no longer be deleted on this server, otherwise an empty
  // text.
  std::string write_refusal() const {
    const Availability& availability = services_.state.availability;
    if (availability.has(Availability::kReadOnlyReplica)) {
      return "READONLY The server has become a replica: the keys were copied and not deleted.";
    }
    return availability.write_refusal(stops_writes_on_snapshot_error(services_.config));
  }

  // Deletes the keys that the target has stored and that have not changed since they were dumped.
  // Returns the keys that have changed. Ends all watches.
  std::vector<std::string> delete_stored(int64_t now_ms) {
    std::vector<std::string> changed;
    const std::vector<bool>& stored = transfer_->outcome().stored;
    const Request request;
    protocol::OutputBuffer unused;
    CommandResult result;
    Context ctx(parts_, request, protocol::ReplyWriter(unused, parts_.session.client->resp), now_ms,
                result);
    ctx.command = command_;
    for (size_t i = 0; i < keys_.size(); ++i) {
      const Key& key = keys_[i];
      const KeyRef ref = keyspace().ref(key.name);
      EntryPtr entry;
      {
        const auto lock = keyspace().lock_exclusive(ref);
        keyspace().unwatch(database_, ref, key.flag);
        if (!stored[i]) continue;
        if (key.flag->dirty.load(std::memory_order_acquire)) {
          changed.push_back(key.name);
          continue;
        }
        if (keyspace().find_for_write(database_, ref, now_ms) == nullptr) continue;
        entry = keyspace().erase(database_, ref);
        ctx.commit(ref, KeyEvent::kDel, {"DEL", key.name});
      }
      has_written_ = true;
      services_.reclaimer.drop(std::move(entry));
    }
    keys_.clear();
    return changed;
  }

  // Begins to send the changed keys again, and returns true. If there is nothing to send or sending
  // fails, replies to the client and returns false.
  bool send_again(std::vector<std::string> names, protocol::ReplyWriter& reply) {
    if (attempts_ == kAttemptsMax) {
      reply.error(fmt::format(
          "ERR Keys were copied and not deleted: they changed during each of {} attempts",
          kAttemptsMax));
      return false;
    }
    const auto sent = send(std::move(names), true);
    if (sent && *sent) return true;
    sent ? reply.ok() : reply.error(sent.error().message);
    return false;
  }

  const Context::Parts parts_;
  Services& services_;
  const RegisteredCommand* const command_;
  const unsigned database_;
  MigrateOptions options_;
  std::vector<Key> keys_;
  std::unique_ptr<KeyTransfer> transfer_;
  int attempts_ = 0;
  bool has_written_ = false;
};

/* MIGRATE host port key destination-db timeout [COPY] [REPLACE]
   [AUTH password | AUTH2 username password] [KEYS key [key ...]] */
void migrate(Context& ctx) {
  auto options = parse_migrate(ctx.args);
  if (!options) return ctx.reply.error(options.error().message);
  if (ctx.in_exec) {
    return ctx.reply.error("ERR MIGRATE waits for another server, which EXEC cannot do");
  }
  if (ctx.session.origin != CommandOrigin::kClient) {
    return ctx.reply.error("ERR MIGRATE is a client's command: a journal holds DEL instead");
  }
  if (ctx.config().flag(OptionId::kTlsReplication)) {
    return ctx.reply.error(
        "ERR MIGRATE sends keys without encryption, which tls-replication forbids");
  }
  auto migration = std::make_unique<AwaitedMigration>(ctx, std::move(*options));
  const auto started = migration->start();
  if (!started) return ctx.reply.error(started.error().message);
  if (!*started) return ctx.reply.simple("NOKEY");
  ctx.await(std::move(migration));
}

// Returns whether the argument is a part of the option AUTH or AUTH2.
bool migrate_hides(Arguments args, size_t index) {
  for (size_t i = kOptionsBegin; i < index; ++i) {
    if (protocol::equals_ignore_case(args[i], "KEYS")) return false;
    const bool has_user = protocol::equals_ignore_case(args[i], "AUTH2");
    if (!has_user && !protocol::equals_ignore_case(args[i], "AUTH")) continue;
    const size_t secrets = has_user ? 2 : 1;
    if (index - i <= secrets) return true;
    i += secrets;
  }
  return false;
}

constexpr uint16_t kMovedKey = kKeyRw | kKeyAccess | kKeyDelete;

const Command kMigrateRows[] = {
    {.name = "migrate",
     .arity = -6,
     .flags = kWrite,
     .keys = {{{.first = 3, .last = 3, .use = kMovedKey, .empty_before = "KEYS"},
               {.first = static_cast<int>(kOptionsBegin),
                .last = -1,
                .use = kMovedKey | kKeyIncomplete,
                .keyword = "KEYS"}}},
     .categories = kKeyspace | kDangerous,
     .group = "generic",
     .since = "2.6.0",
     .summary = "Moves keys to another server",
     .complexity = "O(N) where N is the size of the values",
     .syntax = "host port:integer key destination-db:integer timeout [COPY] [REPLACE] "
               "[AUTH password | AUTH2 username password] [KEYS key ...]",
     .tips = kVaryingOutput,
     .handler = migrate,
     .journalled = Journalled::kEffects,
     .hides = migrate_hides},
};

}  // namespace

const CommandFamily kMigrateCommands{{}, kMigrateRows};

}  // namespace server
