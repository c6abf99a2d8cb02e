// SPDX-License-Identifier: MIT
#include "server/commands/server/debug_words.h"

#include <fmt/format.h>

#include <string>

#include "core/glob.h"
#include "core/keyspace/key_use.h"
#include "core/number.h"
#include "persistence/bytes/byte_codec.h"
#include "server/base/log/log.h"
#include "server/commands/replication/replica_role.h"
#include "server/commands/server/digest.h"
#include "server/commands/server/rewrite_command.h"
#include "server/commands/services.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"
#include "server/dispatch/help.h"

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

void write_three(protocol::ReplyWriter& reply) {
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
    {"array",
     [](Reply& reply) {
       reply.array(3);
       write_three(reply);
     }},
    {"set",
     [](Reply& reply) {
       reply.set(3);
       write_three(reply);
     }},
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

/* DEBUG DIGEST */
void debug_digest(Context& ctx) {
  if (!is_debug_allowed(ctx)) return;
  const auto lock = ctx.lock_everything();
  ctx.reply.simple(to_text(keyspace_digest(ctx.keyspace())));
}

/* DEBUG DIGEST-VALUE key [key ...] */
void debug_digest_value(Context& ctx) {
  if (!is_debug_allowed(ctx)) return;
  const auto lock = ctx.lock_everything();
  ctx.reply.array(ctx.args.size() - 2);
  for (size_t i = 2; i < ctx.args.size(); ++i) {
    const Entry* entry = ctx.keyspace().find(ctx.database(), ctx.key(i), ctx.expiry_now_ms);
    ctx.reply.simple(entry == nullptr ? std::string(40, '0') : to_text(value_digest(*entry)));
  }
}

/* DEBUG ERROR message */
void debug_error(Context& ctx) {
  if (is_debug_allowed(ctx)) ctx.reply.error(ctx.args[2]);
}

/* DEBUG LOG message */
void debug_log(Context& ctx) {
  if (!is_debug_allowed(ctx)) return;
  log_warning("DEBUG LOG: {}", ctx.args[2]);
  ctx.reply.ok();
}

/* DEBUG PROTOCOL type */
void debug_protocol(Context& ctx) {
  if (!is_debug_allowed(ctx)) return;
  for (const SampleReply& sample : kSampleReplies) {
    if (protocol::equals_ignore_case(ctx.args[2], sample.type)) return sample.write(ctx.reply);
  }
  ctx.reply.error(
      "ERR Wrong protocol type name. Please use one of the following: "
      "string|integer|double|bignum|null|array|set|map|attrib|push|verbatim|true|false");
}

/* DEBUG SET-ACTIVE-EXPIRE 0|1 */
void debug_set_active_expire(Context& ctx) {
  if (!is_debug_allowed(ctx)) return;
  ctx.environment.state.expires_actively = core::parse_int64(ctx.args[2]).value_or(0) != 0;
  ctx.reply.ok();
}

/* DEBUG PAUSE-CRON 0|1 */
void debug_pause_cron(Context& ctx) {
  if (!is_debug_allowed(ctx)) return;
  ctx.environment.state.is_cron_paused = core::parse_int64(ctx.args[2]).value_or(0) != 0;
  ctx.reply.ok();
}

/* DEBUG CONFIG-REWRITE-FORCE-ALL */
void debug_rewrite_config(Context& ctx) {
  if (is_debug_allowed(ctx)) rewrite_config(ctx, Config::Extent::kAll);
}

/* DEBUG HELP */
void debug_help(Context& ctx) {
  if (is_debug_allowed(ctx)) container_help(ctx);
}

/* DEBUG STRINGMATCH-LEN pattern string */
void debug_stringmatch(Context& ctx) {
  if (!is_debug_allowed(ctx)) return;
  ctx.reply.integer(core::Glob(ctx.args[2]).matches(ctx.args[3]) ? 1 : 0);
}

/* DEBUG REPLYBUFFER PEAK-RESET-TIME milliseconds | NEVER | RESET
   DEBUG REPLYBUFFER RESIZING 0|1 */
void debug_replybuffer(Context& ctx) {
  if (!is_debug_allowed(ctx)) return;
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
  if (!is_debug_allowed(ctx)) return;
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
  if (!is_debug_allowed(ctx)) return;
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
  if (!ctx.admission().memory_suffices(bytes)) return ctx.reply.error(kOutOfMemory);
  for (uint64_t i = 0; i < keys; ++i) {
    const std::string name = fmt::format("{}:{}", prefix, i);
    const KeyRef key = ctx.keyspace().ref(name);
    const auto lock = ctx.lock(key);
    if (ctx.find(key) != nullptr) continue;
    const std::string value = populated_value(i, size_bytes);
    if (!ctx.insert(key).set_string(value)) return ctx.reply.error(kOutOfMemory);
    // Unlike in Redis, replicas also receive the keys that DEBUG POPULATE creates.
    ctx.commit(key, KeyEvent::kSet, {"SET", name, value});
  }
  ctx.reply.ok();
}

/* DEBUG CHANGE-REPL-ID */
void debug_change_replication_id(Context& ctx) {
  if (!is_debug_allowed(ctx)) return;
  log_notice("DEBUG CHANGE-REPL-ID gives the replication stream a new id");
  forget_replication_history(ctx);
  ctx.reply.ok();
}

}  // namespace server
