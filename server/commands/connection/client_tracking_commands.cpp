// SPDX-License-Identifier: MIT
#include "server/commands/connection/client_tracking_commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "server/commands/services.h"
#include "server/dispatch/context.h"
#include "server/session/clients.h"
#include "server/session/pubsub/tracking.h"

namespace server {
namespace {

using protocol::equals_ignore_case;

struct TrackingRequest {
  ClientTracking wanted;  // the requested options, without the prefixes
  std::vector<std::string_view> prefixes;
};

// Parses the options after ON or OFF. Errors: the error reply.
core::Result<TrackingRequest> parse_options(const Context& ctx) {
  TrackingRequest request;
  ClientTracking& wanted = request.wanted;
  protocol::ArgumentCursor cursor(ctx.args.subspan(3));
  while (!cursor.done()) {
    if (cursor.remaining() >= 2 && cursor.eat_keyword("REDIRECT")) {
      if (wanted.redirect != 0) {
        return core::Error{"ERR A client can only redirect to a single other client"};
      }
      const auto id = core::parse_int64(cursor.next());
      if (!id) return core::Error{std::string(kNotAnInteger)};
      wanted.redirect = static_cast<uint64_t>(*id);
      if (ctx.services.clients.find(wanted.redirect) == nullptr) {
        return core::Error{"ERR The client ID you want redirect to does not exist"};
      }
    } else if (cursor.eat_keyword("BCAST")) {
      wanted.is_broadcast = true;
    } else if (cursor.eat_keyword("OPTIN")) {
      wanted.opts_in = true;
    } else if (cursor.eat_keyword("OPTOUT")) {
      wanted.opts_out = true;
    } else if (cursor.eat_keyword("NOLOOP")) {
      wanted.no_loop = true;
    } else if (cursor.remaining() >= 2 && cursor.eat_keyword("PREFIX")) {
      request.prefixes.push_back(cursor.next());
    } else {
      return core::Error{std::string(kSyntaxError)};
    }
  }
  return request;
}

// Returns the first element of `existing` that overlaps with `prefix`, or null if none does.
// REQUIRES: no element of `existing` is a prefix of another element. The empty prefix is exempt,
// because BCAST adds it without a check.
const std::string* find_overlap(const std::set<std::string, std::less<>>& existing,
                                std::string_view prefix) {
  if (!existing.empty() && existing.begin()->empty()) return &*existing.begin();
  const auto next = existing.lower_bound(prefix);
  if (next != existing.begin()) {
    const std::string& before = *std::prev(next);
    if (prefix.starts_with(before)) return &before;
  }
  return next != existing.end() && next->starts_with(prefix) ? &*next : nullptr;
}

// Returns the positions in the request of two overlapping prefixes; nullopt if no two overlap. If
// several pairs overlap, returns the pair with the lowest first position, then the lowest second
// position. After sorting, the time is linear in the number of bytes.
std::optional<std::pair<size_t, size_t>> first_overlap(
    const std::vector<std::string_view>& prefixes) {
  std::vector<size_t> places(prefixes.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::ranges::sort(places, {}, [&](size_t place) { return std::pair(prefixes[place], place); });
  std::optional<std::pair<size_t, size_t>> first;
  // The loop visits the prefixes in sorted order. The stack `open` holds the visited prefixes with
  // which the current prefix begins, so each of them overlaps the current prefix. Only the one with
  // the lowest position in the request matters, because the function returns the lowest pair.
  struct Open {
    size_t place;   // position of this prefix in the request
    size_t lowest;  // lowest `place` of this entry and of all entries below it on the stack
  };
  std::vector<Open> open;
  for (const size_t place : places) {
    while (!open.empty() && !prefixes[place].starts_with(prefixes[open.back().place]))
      open.pop_back();
    size_t lowest = place;
    if (!open.empty()) {
      const size_t other = open.back().lowest;
      const std::pair found(std::min(place, other), std::max(place, other));
      first = std::min(first.value_or(found), found);
      lowest = found.first;
    }
    open.push_back({place, lowest});
  }
  return first;
}

// Returns the error text if a requested prefix overlaps another requested prefix or one that the
// client already tracks. Returns an empty text otherwise.
std::string overlap_text(const ClientTracking* current, const TrackingRequest& request) {
  const auto& prefixes = request.prefixes;
  const auto pair = first_overlap(prefixes);
  const size_t end = pair ? pair->first + 1 : prefixes.size();
  for (size_t i = 0; current != nullptr && i < end; ++i) {
    const std::string* const existing = find_overlap(current->prefixes, prefixes[i]);
    if (existing != nullptr) return overlap_error(prefixes[i], "an existing", *existing);
  }
  return pair ? overlap_error(prefixes[pair->first], "another provided", prefixes[pair->second])
              : "";
}

// Returns why the requested options conflict with each other or with the client's present options;
// an empty text if there is no conflict. Redis makes the checks in the same order.
std::string conflict(const ClientTracking* current, const TrackingRequest& request) {
  const ClientTracking& wanted = request.wanted;
  if (!wanted.is_broadcast && !request.prefixes.empty()) {
    return "ERR PREFIX option requires BCAST mode to be enabled";
  }
  if (current != nullptr && current->is_broadcast != wanted.is_broadcast) {
    return "ERR You can't switch BCAST mode on/off before disabling tracking for this client, and "
           "then re-enabling it with a different mode.";
  }
  if (wanted.is_broadcast && (wanted.opts_in || wanted.opts_out)) {
    return "ERR OPTIN and OPTOUT are not compatible with BCAST";
  }
  if (wanted.opts_in && wanted.opts_out) {
    return "ERR You can't specify both OPTIN mode and OPTOUT mode";
  }
  if (current != nullptr &&
      ((wanted.opts_in && current->opts_out) || (wanted.opts_out && current->opts_in))) {
    return "ERR You can't switch OPTIN/OPTOUT mode before disabling tracking for this client, and "
           "then re-enabling it with a different mode.";
  }
  return wanted.is_broadcast ? overlap_text(current, request) : "";
}

void start_tracking(Context& ctx, TrackingRequest& request) {
  Subscriptions& subscriptions = ctx.session.subscriptions;
  auto tracking = std::make_unique<ClientTracking>(std::move(request.wanted));
  if (ClientTracking* current = subscriptions.tracking()) {
    tracking->prefixes = std::move(current->prefixes);
    tracking->caching_family = current->caching_family;
  }
  Tracking& table = ctx.services.tracking;
  table.begin({ctx.client.id, ctx.client.thread_index}, tracking->no_loop);
  if (tracking->is_broadcast && request.prefixes.empty()) request.prefixes.emplace_back();
  table.add_prefixes(request.prefixes, ctx.client.id);
  tracking->prefixes.insert(request.prefixes.begin(), request.prefixes.end());
  subscriptions.set_tracking(std::move(tracking));
}

}  // namespace

std::string overlap_error(std::string_view prefix, std::string_view kind, std::string_view other) {
  // As in Redis, the error shows each prefix only up to its first zero byte.
  return fmt::format(
      "ERR Prefix '{}' overlaps with {} prefix '{}'. Prefixes for a single client must not "
      "overlap.",
      prefix.substr(0, prefix.find('\0')), kind, other.substr(0, other.find('\0')));
}

/* CLIENT TRACKING ON | OFF [REDIRECT client-id] [PREFIX prefix [PREFIX prefix ...]] [BCAST] [OPTIN]
   [OPTOUT] [NOLOOP] */
void client_tracking(Context& ctx) {
  auto request = parse_options(ctx);
  if (!request) return ctx.reply.error(request.error().message);
  if (equals_ignore_case(ctx.args[2], "off")) {
    stop_tracking(ctx.services.tracking, ctx.session);
    return ctx.reply.ok();
  }
  if (!equals_ignore_case(ctx.args[2], "on")) return ctx.reply.error(kSyntaxError);
  const std::string text = conflict(ctx.session.subscriptions.tracking(), *request);
  if (!text.empty()) return ctx.reply.error(text);
  start_tracking(ctx, *request);
  ctx.reply.ok();
}

/* CLIENT CACHING YES | NO */
void client_caching(Context& ctx) {
  ClientTracking* const tracking = ctx.session.subscriptions.tracking();
  if (tracking == nullptr) {
    return ctx.reply.error(
        "ERR CLIENT CACHING can be called only when the client is in tracking mode with OPTIN or "
        "OPTOUT mode enabled");
  }
  const bool is_yes = equals_ignore_case(ctx.args[2], "yes");
  if (!is_yes && !equals_ignore_case(ctx.args[2], "no")) return ctx.reply.error(kSyntaxError);
  if (is_yes && !tracking->opts_in) {
    return ctx.reply.error(
        "ERR CLIENT CACHING YES is only valid when tracking is enabled in OPTIN mode.");
  }
  if (!is_yes && !tracking->opts_out) {
    return ctx.reply.error(
        "ERR CLIENT CACHING NO is only valid when tracking is enabled in OPTOUT mode.");
  }
  tracking->caching_family = ctx.command->container;
  ctx.reply.ok();
}

/* CLIENT TRACKINGINFO */
void client_trackinginfo(Context& ctx) {
  const ClientTracking* const tracking = ctx.session.subscriptions.tracking();
  const ClientTracking none;
  const ClientTracking& shown = tracking == nullptr ? none : *tracking;
  std::vector<std::string_view> flags{tracking == nullptr ? "off" : "on"};
  const auto add_if = [&](bool is_set, std::string_view flag) {
    if (is_set) flags.push_back(flag);
  };
  const bool is_caching_given = shown.caching_family != nullptr;
  add_if(shown.is_broadcast, "bcast");
  add_if(shown.opts_in, "optin");
  add_if(shown.opts_in && is_caching_given, "caching-yes");
  add_if(shown.opts_out, "optout");
  add_if(shown.opts_out && is_caching_given, "caching-no");
  add_if(shown.no_loop, "noloop");
  add_if(shown.is_broken, "broken_redirect");
  ctx.reply.map(3);
  ctx.reply.bulk("flags");
  ctx.reply.set(flags.size());
  for (const std::string_view flag : flags) ctx.reply.bulk(flag);
  ctx.reply.bulk("redirect");
  client_getredir(ctx);
  ctx.reply.bulk("prefixes");
  ctx.reply.array(shown.prefixes.size());
  for (const std::string& prefix : shown.prefixes) ctx.reply.bulk(prefix);
}

/* CLIENT GETREDIR */
void client_getredir(Context& ctx) {
  const ClientTracking* const tracking = ctx.session.subscriptions.tracking();
  ctx.reply.integer(tracking == nullptr ? -1 : static_cast<int64_t>(tracking->redirect));
}

}  // namespace server
