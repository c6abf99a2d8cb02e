// SPDX-License-Identifier: MIT
//
// The commands that begin and end subscriptions (SUBSCRIBE, UNSUBSCRIBE …), PUBLISH, SPUBLISH and
// PUBSUB.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/cluster/view.h"
#include "server/commands/families.h"
#include "server/commands/services.h"
#include "server/dispatch/context.h"
#include "server/dispatch/key_routing.h"
#include "server/session/pubsub/pub_sub.h"

namespace server {
namespace {

using enum SubscriptionKind;

// Replies with the number of the client's subscriptions after a change. Shard channels are counted
// separately. Channels and patterns are counted together.
void answer_change(Context& ctx, SubscriptionKind kind, std::optional<std::string_view> name) {
  const Subscriptions& subscriptions = ctx.session.subscriptions;
  const size_t count = kind == kShardChannel
                           ? subscriptions.count(kShardChannel)
                           : subscriptions.count(kChannel) + subscriptions.count(kPattern);
  ctx.reply.push(3);
  ctx.reply.bulk(ctx.command->row->name);
  name ? ctx.reply.bulk(*name) : ctx.reply.null();
  ctx.reply.integer(static_cast<int64_t>(count));
}

// Returns whether this server is a node of a cluster of several servers. There, a message to an
// ordinary channel would reach only this server's subscribers. So commands on ordinary channels
// are rejected, except for subscriptions to local channels (see is_local_channel()).
bool is_cut_off(const Context& ctx) {
  return has_one_database(ctx) && !view_of(ctx).is_emulated();
}

// Returns whether the channel is for keyspace notifications or invalidations. As in Redis, a server
// sends these messages only to its own subscribers, also in a cluster.
bool is_local_channel(std::string_view name) {
  return name.starts_with("__key") || name.starts_with("__redis__:");
}

void refuse_cut_off(Context& ctx) {
  ctx.reply.error(fmt::format("ERR {} is not allowed in a cluster: use shard channels",
                              protocol::upper_case(ctx.command->full_name)));
}

/* SUBSCRIBE channel [channel ...] | PSUBSCRIBE pattern [pattern ...] |
   SSUBSCRIBE shardchannel [shardchannel ...] */
void subscribe(Context& ctx, SubscriptionKind kind) {
  Session& session = ctx.session;
  if (kind != kShardChannel && is_cut_off(ctx) &&
      !std::ranges::all_of(ctx.args.subspan(1), is_local_channel)) {
    return refuse_cut_off(ctx);
  }
  if (session.origin != CommandOrigin::kClient) {
    // A command from a journal is rejected, because it has no connection that could receive
    // messages.
    return ctx.reply.error(
        fmt::format("ERR {} isn't allowed for a DENY BLOCKING client", ctx.command->full_name));
  }
  for (const std::string_view name : ctx.args.subspan(1)) {
    if (!session.subscriptions.contains(kind, name)) {
      const uint64_t serial = ctx.services.pubsub.subscribe(
          kind, name, {session.client->id, session.client->thread_index},
          &session.client->subscriptions.names_bytes);
      session.subscriptions.add(kind, name, serial);
    }
    answer_change(ctx, kind, name);
  }
}

/* UNSUBSCRIBE [channel ...] | PUNSUBSCRIBE [pattern ...] | SUNSUBSCRIBE [shardchannel ...] */
void unsubscribe(Context& ctx, SubscriptionKind kind) {
  Subscriptions& subscriptions = ctx.session.subscriptions;
  const auto drop = [&](std::string_view name) {
    if (subscriptions.contains(kind, name)) {
      ctx.services.pubsub.unsubscribe(kind, name, ctx.client.id);
      subscriptions.remove(kind, name);
    }
    answer_change(ctx, kind, name);
  };
  if (ctx.args.size() > 1) {
    for (const std::string_view name : ctx.args.subspan(1)) drop(name);
    return;
  }
  const auto all = subscriptions.names(kind);
  for (const std::string& name : all) drop(name);
  if (all.empty()) answer_change(ctx, kind, std::nullopt);
}

/* PUBLISH channel message | SPUBLISH shardchannel message */
void publish(Context& ctx, SubscriptionKind kind) {
  if (kind != kShardChannel && is_cut_off(ctx)) return refuse_cut_off(ctx);
  // The message goes to replicas, which may have subscribers, but not to the append log.
  std::vector<std::string_view> scratch;
  const auto words = original_words(ctx, scratch);
  const auto to_replicas = [&] { ctx.services.journal.publish_to_replicas(words, ctx.database()); };
  const size_t receivers = ctx.services.pubsub.publish(kind, ctx.args[1], ctx.args[2], to_replicas);
  ctx.reply.integer(static_cast<int64_t>(receivers));
}

/* PUBSUB CHANNELS [pattern] | PUBSUB SHARDCHANNELS [pattern] */
void list_channels(Context& ctx, SubscriptionKind kind) {
  if (ctx.args.size() > 3) {
    return ctx.reply.error(protocol::wrong_subcommand(ctx.args[1], "PUBSUB"));
  }
  std::optional<std::string_view> pattern;
  if (ctx.args.size() == 3) pattern = ctx.args[2];
  const auto names = ctx.services.pubsub.names(kind, pattern);
  ctx.reply.array(names.size());
  for (const std::string& name : names) ctx.reply.bulk(name);
}

/* PUBSUB NUMSUB [channel ...] | PUBSUB SHARDNUMSUB [shardchannel ...] */
void count_subscribers(Context& ctx, SubscriptionKind kind) {
  const Arguments names = ctx.args.subspan(2);
  ctx.reply.array(names.size() * 2);
  for (const std::string_view name : names) {
    ctx.reply.bulk(name);
    ctx.reply.integer(static_cast<int64_t>(ctx.services.pubsub.subscriber_count(kind, name)));
  }
}

/* PUBSUB NUMPAT */
void pubsub_numpat(Context& ctx) {
  ctx.reply.integer(static_cast<int64_t>(ctx.services.pubsub.name_count(kPattern)));
}

constexpr uint32_t kAsking = kPubSub | kLoading | kStale;
constexpr uint32_t kListening = kAsking | kNoScript | kInSubscriberMode | kRepliesByPush;
constexpr uint32_t kSending = kAsking | kFast | kMayReplicate;

constexpr Command kPubsubSubcommands[] = {
    {.name = "channels",
     .arity = -2,
     .flags = kAsking,
     .since = "2.8.0",
     .summary = "Returns the channels that have subscribers",
     .complexity = "O(N) where N is the number of active channels, and assuming constant time "
                   "pattern matching (relatively short channels and patterns)",
     .syntax = "[pattern]",
     .handler = calls<list_channels, kChannel>},
    {.name = "numpat",
     .arity = 2,
     .flags = kAsking,
     .since = "2.8.0",
     .summary = "Returns the number of patterns that have subscribers",
     .complexity = "O(1)",
     .handler = pubsub_numpat},
    {.name = "numsub",
     .arity = -2,
     .flags = kAsking,
     .since = "2.8.0",
     .summary = "Returns how many subscribers channels have, not counting patterns",
     .complexity = "O(N) for the NUMSUB subcommand, where N is the number of requested channels",
     .syntax = "[channel ...]",
     .handler = calls<count_subscribers, kChannel>},
    {.name = "shardchannels",
     .arity = -2,
     .flags = kAsking,
     .since = "7.0.0",
     .summary = "Returns the shard channels that have subscribers",
     .complexity = "O(N) where N is the number of active shard channels, and assuming constant "
                   "time pattern matching (relatively short shard channels)",
     .syntax = "[pattern]",
     .handler = calls<list_channels, kShardChannel>},
    {.name = "shardnumsub",
     .arity = -2,
     .flags = kAsking,
     .since = "7.0.0",
     .summary = "Returns how many subscribers shard channels have",
     .complexity = "O(N) for the SHARDNUMSUB subcommand, where N is the number of "
                   "requested shard channels",
     .syntax = "[shardchannel ...]",
     .handler = calls<count_subscribers, kShardChannel>},
};

const Command kPubsubRows[] = {
    {.name = "psubscribe",
     .arity = -2,
     .since = "2.0.0",
     .summary = "Subscribes to all channels that match a pattern",
     .complexity = "O(N) where N is the number of patterns the client is already subscribed to",
     .syntax = "pattern ...",
     .handler = calls<subscribe, kPattern>,
     .channels = ChannelUse::kListensToPatterns},
    {.name = "publish",
     .arity = 3,
     .flags = kSending,
     .since = "2.0.0",
     .summary = "Sends a message to the channel's subscribers",
     .complexity = "O(N+M) for N subscribers of the channel and M patterns that any "
                   "client is subscribed to",
     .syntax = "channel message",
     .handler = calls<publish, kChannel>,
     .channels = ChannelUse::kPublishes},
    {.name = "pubsub",
     .since = "2.8.0",
     .summary = "Groups the commands about channels",
     .subcommands = kPubsubSubcommands},
    {.name = "punsubscribe",
     .arity = -1,
     .since = "2.0.0",
     .summary = "Unsubscribes from patterns, or from all patterns",
     .complexity =
         "O(N+M) for N patterns of the client and M patterns that any client is subscribed to",
     .syntax = "[pattern ...]",
     .handler = calls<unsubscribe, kPattern>},
    {.name = "spublish",
     .arity = 3,
     .flags = kSending,
     .keys = one_key(kNotAKey),
     .since = "7.0.0",
     .summary = "Sends a message to the shard channel's subscribers",
     .complexity =
         "O(N) where N is the number of clients subscribed to the receiving shard channel",
     .syntax = "shardchannel message",
     .handler = calls<publish, kShardChannel>,
     .channels = ChannelUse::kPublishes},
    {.name = "ssubscribe",
     .arity = -2,
     .keys = keys_to_end(1, 1, kNotAKey),
     .since = "7.0.0",
     .summary = "Subscribes to shard channels",
     .complexity = "O(N) where N is the number of shard channels to subscribe to",
     .syntax = "shardchannel ...",
     .handler = calls<subscribe, kShardChannel>,
     .channels = ChannelUse::kListens},
    {.name = "subscribe",
     .arity = -2,
     .since = "2.0.0",
     .summary = "Subscribes to channels",
     .complexity = "O(N) where N is the number of channels to subscribe to",
     .syntax = "channel ...",
     .handler = calls<subscribe, kChannel>,
     .channels = ChannelUse::kListens},
    {.name = "sunsubscribe",
     .arity = -1,
     .keys = keys_to_end(1, 1, kNotAKey),
     .since = "7.0.0",
     .summary = "Unsubscribes from shard channels, or from all of them",
     .complexity = "O(N) where N is the number of clients already subscribed to a shard channel",
     .syntax = "[shardchannel ...]",
     .handler = calls<unsubscribe, kShardChannel>},
    {.name = "unsubscribe",
     .arity = -1,
     .since = "2.0.0",
     .summary = "Unsubscribes from channels, or from all channels",
     .complexity = "O(N) where N is the number of clients already subscribed to a channel",
     .syntax = "[channel ...]",
     .handler = calls<unsubscribe, kChannel>},
};

}  // namespace

const CommandFamily kPubsubCommands{{.flags = kListening, .group = "pubsub"}, kPubsubRows};

}  // namespace server
