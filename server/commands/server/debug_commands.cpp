// SPDX-License-Identifier: MIT
//
// DEBUG has subcommands for tests. It needs the option enable-debug-command.
#include "server/commands/server/debug_commands.h"

#include <fmt/format.h>

#include <chrono>
#include <string>
#include <thread>

#include "core/glob.h"
#include "core/keyspace/key_use.h"
#include "core/number.h"
#include "persistence/bytes/byte_codec.h"
#include "server/base/log/log.h"
#include "server/commands/families.h"
#include "server/commands/replication/replica_role.h"
#include "server/commands/server/digest.h"
#include "server/commands/server/rewrite_command.h"
#include "server/commands/services.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"
#include "server/dispatch/help.h"
#include "server/dispatch/pause_gate.h"
#include "server/durability/durability.h"
#include "server/durability/loading/data_loader.h"
#include "server/session/deferred_reply.h"

namespace server {
namespace {

constexpr std::string_view kNotAllowed =
    "ERR DEBUG command not allowed. If the enable-debug-command option is set to \"local\", you "
    "can "
    "run it from a local connection, otherwise you need to set this option in the configuration "
    "file, and then restart the server.";

void write_bulk_after_attribute(protocol::ReplyWriter& reply) {
  if (reply.version() == protocol::RespVersion::kResp3) {
    reply.attribute(1);
    reply.bulk("key-popularity");
    reply.array(2);
    reply.bulk("key:123");
    reply.integer(90);
  }
  reply.bulk("Some real reply following the attribute");
}

void write_push(protocol::ReplyWriter& reply) {
  if (reply.version() != protocol::RespVersion::kResp3) {
    return reply.error("ERR RESP2 is not supported by this command");
  }
  reply.push(2);
  reply.bulk("server-cpu-usage");
  reply.integer(42);
  reply.bulk("Some real reply following the push reply");
}

void write_three(protocol::ReplyWriter& reply, void (protocol::ReplyWriter::*header)(size_t)) {
  (reply.*header)(3);
  for (int64_t i = 0; i < 3; ++i) reply.integer(i);
}

// A sample of one type of reply. Clients must be able to read all types. The values are those of
// Redis.
struct SampleReply {
  std::string_view type;
  void (*write)(protocol::ReplyWriter&);
};
using Reply = protocol::ReplyWriter;
constexpr SampleReply kSampleReplies[] = {
    {"string", [](Reply& reply) { reply.bulk("Hello World"); }},
    {"integer", [](Reply& reply) { reply.integer(12345); }},
    {"double", [](Reply& reply) { reply.shortest_number(3.141); }},
    {"bignum", [](Reply& reply) { reply.big_number("1234567999999999999999999999999999999"); }},
    {"null", [](Reply& reply) { reply.null(); }},
    {"array", [](Reply& reply) { write_three(reply, &Reply::array); }},
    {"set", [](Reply& reply) { write_three(reply, &Reply::set); }},
    {"map",
     [](Reply& reply) {
       reply.map(3);
       for (int64_t i = 0; i < 3; ++i) {
         reply.integer(i);
         reply.boolean(i == 1);
       }
     }},
    {"attrib", write_bulk_after_attribute},
    {"push", write_push},
    {"verbatim", [](Reply& reply) { reply.verbatim("This is a verbatim\nstring", "txt"); }},
    {"true", [](Reply& reply) { reply.boolean(true); }},
    {"false", [](Reply& reply) { reply.boolean(false); }},
};

// Returns the value that DEBUG POPULATE stores in key number `number`: "value:" and the number. If
// `size_bytes` is not 0, the value is cut or padded with zero bytes to this size.
std::string populated_value(uint64_t number, uint64_t size_bytes) {
  std::string value = fmt::format("value:{}", number);
  if (size_bytes > 0) value.resize(size_bytes, '\0');
  return value;
}

/* DEBUG DIGEST */
void debug_digest(Context& ctx) {
  const auto lock = ctx.lock_everything();
  ctx.reply.simple(to_text(keyspace_digest(ctx.keyspace())));
}

/* DEBUG DIGEST-VALUE key [key ...] */
void debug_digest_value(Context& ctx) {
  const auto lock = ctx.lock_everything();
  ctx.reply.array(ctx.args.size() - 2);
  for (size_t i = 2; i < ctx.args.size(); ++i) {
    const Entry* entry = ctx.keyspace().find(ctx.database(), ctx.key(i), ctx.expiry_now_ms);
    ctx.reply.simple(entry == nullptr ? std::string(40, '0') : to_text(value_digest(*entry)));
  }
}

/* DEBUG ERROR message */
void debug_error(Context& ctx) {
  ctx.reply.error(ctx.args[2]);
}

/* DEBUG LOG message */
void debug_log(Context& ctx) {
  log_warning("DEBUG LOG: {}", ctx.args[2]);
  ctx.reply.ok();
}

/* DEBUG PROTOCOL type */
void debug_protocol(Context& ctx) {
  for (const SampleReply& sample : kSampleReplies) {
    if (protocol::equals_ignore_case(ctx.args[2], sample.type)) return sample.write(ctx.reply);
  }
  ctx.reply.error(
      "ERR Wrong protocol type name. Please use one of the following: "
      "string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false");
}

/* DEBUG SET-ACTIVE-EXPIRE 0|1, DEBUG PAUSE-CRON 0|1 */
void debug_switch(Context& ctx, std::atomic<bool> ServerState::*is_on) {
  ctx.environment.state.*is_on = core::parse_int64(ctx.args[2]).value_or(0) != 0;
  ctx.reply.ok();
}

/* DEBUG STRINGMATCH-LEN pattern string */
void debug_stringmatch(Context& ctx) {
  ctx.reply.integer(core::Glob(ctx.args[2]).matches(ctx.args[3]) ? 1 : 0);
}

/* DEBUG REPLYBUFFER PEAK-RESET-TIME milliseconds | NEVER | RESET
   DEBUG REPLYBUFFER RESIZING 0|1 */
void debug_replybuffer(Context& ctx) {
  // DEBUG REPLYBUFFER only checks its arguments, as Redis does. Its settings have no effect,
  // because reply buffers belong to threads and shrink when they are empty.
  if (protocol::equals_ignore_case(ctx.args[2], "peak-reset-time")) {
    const bool is_word = protocol::equals_ignore_case(ctx.args[3], "never") ||
                         protocol::equals_ignore_case(ctx.args[3], "reset");
    if (!is_word && !core::parse_int64(ctx.args[3])) return ctx.reply.error(kNotAnInteger);
    return ctx.reply.ok();
  }
  if (protocol::equals_ignore_case(ctx.args[2], "resizing")) return ctx.reply.ok();
  ctx.reply.error(kSyntaxError);
}

/* DEBUG OBJECT key */
void debug_object(Context& ctx) {
  const KeyRef key = ctx.key(2);
  const auto lock = ctx.lock(key);
  const Entry* entry = ctx.keyspace().find(ctx.database(), key, ctx.expiry_now_ms);
  if (entry == nullptr) return ctx.reply.error(kNoSuchKey);
  // DEBUG OBJECT replies with the size of the value in a snapshot. For a filter, it replies with
  // the size in memory, although a snapshot may compress the filter's bits.
  uint64_t serialized_bytes = 0;
  if (entry->is_filter()) {
    serialized_bytes = entry->memory_bytes();
  } else {
    std::string serialized;
    persistence::ByteWriter writer(serialized);
    core::keyspace::IntegerText scratch;
    writer.string(entry->text(scratch), persistence::Packing::kIfSmaller);
    serialized_bytes = serialized.size();
  }
  const core::keyspace::KeyUse use(*entry);
  ctx.reply.simple(fmt::format(
      "Value at:{} refcount:1 encoding:{} serializedlength:{} lru:{} lru_seconds_idle:{}",
      static_cast<const void*>(entry), entry->encoding(), serialized_bytes, use.clock_s(),
      use.idle_s(ctx.access_clock_s())));
}

/* DEBUG POPULATE count [prefix] [size] */
void debug_populate(Context& ctx) {
  if (ctx.args.size() > 5) return ctx.reply.error(kSyntaxError);
  const auto count = core::parse_int64(ctx.args[2]);
  const auto size = ctx.args.size() > 4 ? core::parse_int64(ctx.args[4]) : 0;
  if (!count || *count < 0 || !size || *size < 0) return ctx.reply.error(protocol::kNotPositive);
  const std::string_view prefix = ctx.args.size() > 3 ? ctx.args[3] : "key";
  const auto size_bytes = static_cast<uint64_t>(*size);
  if (!ctx.admission().allows_string(size_bytes)) return ctx.reply.error(kStringTooLong);
  constexpr uint64_t kEntryBytes = 100;
  constexpr uint64_t kMost = uint64_t{1} << 62;
  const auto keys = static_cast<uint64_t>(*count);
  const uint64_t bytes_per_key = kEntryBytes + prefix.size() + size_bytes;
  const uint64_t bytes = keys > kMost / bytes_per_key ? kMost : keys * bytes_per_key;
  if (!ctx.admission().memory_suffices(bytes))
    return ctx.reply.error(ctx.admission().memory_refusal());
  for (uint64_t i = 0; i < keys; ++i) {
    const std::string name = fmt::format("{}:{}", prefix, i);
    const KeyRef key = ctx.keyspace().ref(name);
    const auto lock = ctx.lock(key);
    if (ctx.find(key) != nullptr) continue;
    const std::string value = populated_value(i, size_bytes);
    if (!ctx.insert(key).set_string(value)) {
      ctx.keyspace().erase(ctx.database(), key);
      return ctx.reply.error(ctx.admission().memory_refusal());
    }
    // Unlike in Redis, replicas also receive the keys that DEBUG POPULATE creates.
    ctx.commit(key, KeyEvent::kSet, {"SET", name, value});
  }
  ctx.reply.ok();
}

/* DEBUG CHANGE-REPL-ID */
void debug_change_replication_id(Context& ctx) {
  log_notice("DEBUG CHANGE-REPL-ID gives the replication stream a new id");
  forget_replication_history(ctx);
  ctx.reply.ok();
}

// Blocks writes, waits until no command is running, and loads all keys again. Replies at the end.
template <class Load>
void reload_when_drained(Context& ctx, Load load) {
  Durability& durability = ctx.services.durability;
  if (auto begun = durability.loader.begin_reload(); !begun) {
    return ctx.reply.error(begun.error().message);
  }
  PauseGate& pause = ctx.services.pause;
  pause.hold_writes(PauseGate::Hold::kReload);
  DeferredReply reply = defer_reply(ctx.services.clients, ctx.client.id);
  pause.drain([&durability, &pause, load, end = reply.end] {
    const auto done = load(durability);
    durability.loader.end_reload([&pause] { pause.release_writes(PauseGate::Hold::kReload); });
    end(done);
  });
  ctx.await(std::move(reply.awaited));
}

/* DEBUG RELOAD [NOSAVE] */
void reload(Context& ctx) {
  bool saves = true;
  for (const std::string_view option : ctx.args.subspan(2)) {
    if (!protocol::equals_ignore_case(option, "NOSAVE")) return ctx.reply.error(kSyntaxError);
    saves = false;
  }
  reload_when_drained(
      ctx, [saves](Durability& durability) { return durability.loader.reload_snapshot(saves); });
}

/* DEBUG LOADAOF */
void loadaof(Context& ctx) {
  reload_when_drained(ctx, [](Durability& durability) { return durability.loader.reload_log(); });
}

/* DEBUG SLEEP seconds */
void sleep(Context& ctx) {
  constexpr double kLongestS = 3600;
  const auto seconds = core::parse_double(ctx.args[2]);
  if (!seconds || *seconds < 0 || *seconds > kLongestS) return ctx.reply.error(kNotAFloat);
  std::this_thread::sleep_for(std::chrono::duration<double>(*seconds));
  ctx.reply.ok();
}

// Runs the handler if enable-debug-command lets the client use DEBUG.
template <Handler kHandler>
void if_allowed(Context& ctx) {
  if (is_debug_allowed(ctx)) kHandler(ctx);
}

constexpr uint32_t kDebugFlags = kAdmin | kNoScript | kLoading | kStale;

constexpr Command kDebugSubcommands[] = {
    {.name = "digest",
     .arity = 2,
     .flags = kDebugFlags | kWholeKeyspace,
     .summary = "Returns a digest of all keys",
     .complexity = "O(N) where N is the size of all values",
     .handler = if_allowed<debug_digest>},
    {.name = "digest-value",
     .arity = -3,
     .flags = kDebugFlags | kWholeKeyspace,
     .summary = "Returns digests of values",
     .complexity = "O(N) where N is the size of the values named",
     .syntax = "key ...",
     .handler = if_allowed<debug_digest_value>},
    {.name = "reload",
     .arity = -2,
     .flags = kDebugFlags | kNoMulti,
     .summary = "Saves a snapshot, drops all keys and loads it",
     .complexity = "O(N) where N is the size of all values",
     .syntax = "[NOSAVE]",
     .handler = if_allowed<reload>},
    {.name = "loadaof",
     .arity = 2,
     .flags = kDebugFlags | kNoMulti,
     .summary = "Drops all keys and loads the append log",
     .complexity = "O(N) where N is the size of the append log",
     .handler = if_allowed<loadaof>},
    {.name = "change-repl-id",
     .arity = 2,
     .since = "5.0.0",
     .summary = "Gives the replication stream a new id",
     .handler = if_allowed<debug_change_replication_id>},
    {.name = "error",
     .arity = 3,
     .since = "3.0.0",
     .summary = "Answers with the message as an error",
     .syntax = "message",
     .handler = if_allowed<debug_error>},
    {.name = "log",
     .arity = 3,
     .since = "7.0.0",
     .summary = "Writes a message to the log",
     .syntax = "message",
     .handler = if_allowed<debug_log>},
    {.name = "object",
     .arity = 3,
     .flags = kDebugFlags | kWholeKeyspace,
     .summary = "Returns how the value of a key is stored",
     .complexity = "O(N) where N is the size of a string",
     .syntax = "key",
     .handler = if_allowed<debug_object>},
    {.name = "populate",
     .arity = -3,
     .flags = kDebugFlags | kWrite | kDenyOom | kWholeKeyspace,
     .since = "3.0.0",
     .summary = "Creates keys with strings",
     .complexity = "O(N) where N is the number of keys",
     .syntax = "count [prefix] [size]",
     .handler = if_allowed<debug_populate>,
     .journalled = Journalled::kEffects},
    {.name = "protocol",
     .arity = 3,
     .since = "6.0.0",
     .summary = "Answers with a sample of a type of reply",
     .syntax = "type",
     .handler = if_allowed<debug_protocol>},
    {.name = "replybuffer",
     .arity = 4,
     .since = "7.0.0",
     .summary = "Is accepted: reply buffers need no tuning",
     .syntax = "PEAK-RESET-TIME milliseconds | RESIZING flag",
     .handler = if_allowed<debug_replybuffer>},
    {.name = "set-active-expire",
     .arity = 3,
     .since = "3.0.0",
     .summary = "Switches the background deletion of expired keys",
     .syntax = "0 | 1",
     .handler = if_allowed<calls<debug_switch, &ServerState::expires_actively>>},
    {.name = "pause-cron",
     .arity = 3,
     .since = "7.0.0",
     .summary = "Stops the periodic tasks, and lets them go on",
     .syntax = "0 | 1",
     .handler = if_allowed<calls<debug_switch, &ServerState::is_cron_paused>>},
    {.name = "config-rewrite-force-all",
     .arity = 2,
     .since = "7.0.0",
     .summary = "Rewrites the configuration file with a line for every option",
     .complexity = "O(N) where N is the size of the file",
     .handler = if_allowed<calls<rewrite_config, Config::Extent::kAll>>},
    {.name = "help",
     .arity = 2,
     .since = "5.0.0",
     .summary = "Prints this help",
     .handler = if_allowed<container_help>},
    {.name = "stringmatch-len",
     .arity = 4,
     .since = "7.2.0",
     .summary = "Returns whether a pattern matches a string",
     .complexity = "O(N) where N is the size of the string",
     .syntax = "pattern string",
     .handler = if_allowed<debug_stringmatch>},
    {.name = "sleep",
     .arity = 3,
     .summary = "Keeps one I/O thread from serving for a while",
     .complexity = "O(1), but it takes the time asked for",
     .syntax = "seconds:double",
     .handler = if_allowed<sleep>},
};

const Command kDebugRows[] = {
    {.name = "debug",
     .flags = kDebugFlags,
     .summary = "A container for what tests ask of a server",
     .subcommands = kDebugSubcommands},
};

}  // namespace

bool is_debug_allowed(Context& ctx) {
  const DebugCommand allowed{ctx.services.config.integer(OptionId::kEnableDebugCommand)};
  const Client& client = ctx.client;
  const bool is_local = client.socket.is_unix || client.address.starts_with("127.") ||
                        client.address.starts_with("[::1]") || client.address.starts_with("::1");
  if (allowed == DebugCommand::kYes || (allowed == DebugCommand::kLocal && is_local)) return true;
  ctx.reply.error(kNotAllowed);
  return false;
}

const CommandFamily kDebugCommands{
    {.flags = kDebugFlags, .group = "server", .since = "1.0.0", .complexity = "O(1)"}, kDebugRows};

}  // namespace server
