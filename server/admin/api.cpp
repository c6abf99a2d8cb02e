// SPDX-License-Identifier: MIT
#include "server/admin/api.h"

#include <algorithm>
#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>
#include <vector>

#include "core/number.h"
#include "server/admin/figures/overview.h"
#include "server/admin/figures/plan_curve.h"
#include "server/admin/figures/readable.h"
#include "server/admin/figures/reply_json.h"
#include "server/admin/history/history_json.h"
#include "server/base/config/config.h"
#include "server/base/log/recent_warnings.h"
#include "server/commands/bloom/bloom_options.h"
#include "server/commands/keys/database_index.h"
#include "server/commands/services.h"
#include "server/session/acl/user.h"

namespace server::admin {
namespace {

namespace json = boost::json;

constexpr std::string_view kFiltersPerPage = "1000";
constexpr std::string_view kUsualWindowS = "86400";
constexpr std::string_view kKeyMissing = "the parameter key is missing";
constexpr std::string_view kItemMissing = "the parameter item is missing";
constexpr std::string_view kItemCount = "exactly one parameter item is needed";
// The dashboard's planner shows the curve of this filter layout for comparison.
constexpr std::string_view kPeer = "redisbloom";
constexpr std::string_view kSlowCommandsMax = "128";

HttpResponse json_response(const json::value& value, unsigned status = 200) {
  return {.status = status, .content_type = "application/json", .body = json::serialize(value)};
}

HttpResponse json_error(unsigned status, std::string_view text) {
  return json_response(json::object{{"error", text}}, status);
}

// Maps an error reply to an HTTP status: NOPERM and NOAUTH give 403, a temporary error gives 503.
// Other errors, such as those for a deleted filter or a half-typed number, give 200. The page
// expects such errors, and any other status would appear in the browser's console.
HttpResponse error_response(const protocol::Reply& reply) {
  const std::string_view text = reply.text;
  const std::string_view code = text.substr(0, text.find(' '));
  unsigned status = 200;
  if (code == "NOPERM" || code == "NOAUTH") status = 403;
  if (code == "LOADING" || code == "MASTERDOWN" || code == "BUSY") status = 503;
  return json_response(json::object{{"error", to_json(reply)}}, status);
}

// Adds the URL-encoded name of each filter, because JSON cannot hold arbitrary bytes.
void add_ids(const protocol::Reply& list, json::array& filters) {
  for (size_t i = 0; i < filters.size() && i < list.elements.size(); ++i) {
    const auto& pairs = list.elements[i].elements;
    for (size_t at = 0; at + 1 < pairs.size(); at += 2) {
      if (pairs[at].text != "key") continue;
      filters[i].as_object()["id"] = encode_url(pairs[at + 1].text);
    }
  }
}

// Returns the items of a request, in the order of its parameters.
std::vector<std::string_view> items_of(const HttpRequest& request) {
  std::vector<std::string_view> items;
  for (const auto& [name, value] : request.query) {
    if (name == "item") items.emplace_back(value);
  }
  return items;
}

json::array points_of(const std::vector<PlanPoint>& curve) {
  json::array points;
  for (const PlanPoint& point : curve) {
    points.push_back(json::array{point.items, point.error_rate, point.bytes});
  }
  return points;
}

}  // namespace

core::Result<CommandCaller::Caller> Api::caller_of(const Question& question) const {
  const auto database = core::parse_int64(question.request.parameter("db").value_or("0"));
  if (!database || *database < 0 || *database >= services_.config.database_count()) {
    return core::Error{std::string(kNotADatabase)};
  }
  return CommandCaller::Caller{question.user, question.address, static_cast<int>(*database)};
}

protocol::Reply Api::call(const Question& question, std::span<const std::string_view> words) {
  const auto caller = caller_of(question);
  return caller ? caller_.call(*caller, words) : error_reply(caller.error().message);
}

HttpResponse Api::answer(const Question& question, std::span<const std::string_view> words) {
  const protocol::Reply reply = call(question, words);
  return reply.is_error() ? error_response(reply) : json_response(to_json(reply));
}

HttpResponse Api::overview(const Question& /*question*/) {
  return json_response(overview_of(services_));
}

HttpResponse Api::history(const Question& question) {
  const auto after_ms = core::parse_int64(question.request.parameter("after").value_or("0"));
  if (!after_ms) return json_error(400, "after is milliseconds since 1970");
  return json_response(history_json(sampler_.history(), *after_ms));
}

HttpResponse Api::commands(const Question& /*question*/) {
  return json_response(command_history_json(sampler_.history(), services_.registry));
}

HttpResponse Api::filters(const Question& question) {
  const HttpRequest& request = question.request;
  const std::vector<std::string_view> words = {"bf.scan", request.parameter("cursor").value_or("0"),
                                               "MATCH",   request.parameter("match").value_or("*"),
                                               "COUNT",   kFiltersPerPage};
  const protocol::Reply reply = call(question, words);
  if (reply.is_error()) return error_response(reply);
  if (reply.elements.size() != 2) return json_error(503, "unexpected reply");
  json::value filters = to_json(reply.elements[1]);
  if (auto* const array = filters.if_array()) add_ids(reply.elements[1], *array);
  return json_response(
      json::object{{"cursor", to_json(reply.elements[0])}, {"filters", std::move(filters)}});
}

HttpResponse Api::filter(const Question& question) {
  const auto key = question.request.parameter("key");
  if (!key) return json_error(400, kKeyMissing);
  const protocol::Reply reply = call(question, std::vector<std::string_view>{"bf.stats", *key});
  if (reply.is_error()) return error_response(reply);
  json::value stats = to_json(reply);
  stats.as_object()["key"] = readable(*key);
  return json_response(stats);
}

HttpResponse Api::exists(const Question& question) {
  const auto key = question.request.parameter("key");
  const std::vector<std::string_view> items = items_of(question.request);
  if (!key) return json_error(400, kKeyMissing);
  if (items.empty()) return json_error(400, kItemMissing);
  std::vector<std::string_view> words = {items.size() == 1 ? "bf.exists" : "bf.mexists", *key};
  words.insert(words.end(), items.begin(), items.end());
  const protocol::Reply reply = call(question, words);
  if (reply.is_error()) return error_response(reply);
  json::array found;
  if (items.size() == 1) found.push_back(to_json(reply));
  for (const protocol::Reply& element : reply.elements) found.push_back(to_json(element));
  return json_response(json::object{{"found", std::move(found)}});
}

HttpResponse Api::add(const Question& question) {
  const auto key = question.request.parameter("key");
  const std::vector<std::string_view> items = items_of(question.request);
  if (!key) return json_error(400, kKeyMissing);
  if (items.size() != 1) return json_error(400, kItemCount);
  const auto caller = caller_of(question);
  if (!caller) return json_error(400, caller.error().message);
  HttpResponse response;
  // The key may have been deleted since the user has seen it. A filter that this call created would
  // have none of the former filter's settings.
  std::vector<std::string> words = {"bf.insert", std::string(*key), "NOCREATE", "ITEMS",
                                    std::string(items[0])};
  // The lambda copies its values, because the HTTP request is destroyed before the write ends.
  response.later = [this, user = caller->user, address = std::string(caller->address),
                    database = caller->database,
                    words = std::move(words)](const HttpResponse::Deliver& deliver) {
    writes_.call({user, address, database}, words, [deliver](const protocol::Reply& reply) {
      const protocol::Reply& answer = reply.elements.empty() ? reply : reply.elements.front();
      deliver(answer.is_error() ? error_response(answer)
                                : json_response(json::object{{"added", to_json(answer)}}));
    });
  };
  return response;
}

HttpResponse Api::plan(const Question& question) {
  const HttpRequest& request = question.request;
  const auto error_rate = request.parameter("error_rate").value_or("");
  const auto capacity = request.parameter("capacity").value_or("");
  const auto kind = request.parameter("kind").value_or("plain");
  const auto window = request.parameter("window").value_or(kUsualWindowS);
  const std::vector<std::string_view> plain = {"bf.plan", error_rate, capacity};
  const auto with = [&plain](std::initializer_list<std::string_view> more) {
    std::vector<std::string_view> words = plain;
    words.insert(words.end(), more);
    return words;
  };
  const std::pair<std::string_view, std::vector<std::string_view>> kinds[] = {
      {"plain", plain},
      {"deletable", with({"DELETABLE"})},
      {"windowed", with({"WINDOW", window})},
      {kPeer, with({"LAYOUT", kPeer})}};
  const auto* const wanted = std::ranges::find(
      kinds, kind, &std::pair<std::string_view, std::vector<std::string_view>>::first);
  if (wanted == std::end(kinds) || kind == kPeer) {
    return json_error(400, "kind is plain, deletable or windowed");
  }
  const protocol::Reply reply = call(question, wanted->second);
  if (reply.is_error()) return error_response(reply);
  json::object curves;
  for (const auto& [name, words] : kinds) {
    // The response has no curve for a kind of filter that does not support the requested settings.
    const auto parameters = parse_plan(services_.config, words);
    if (parameters) curves[name] = points_of(plan_curve(*parameters));
  }
  return json_response(json::object{{"plan", to_json(reply)}, {"curves", std::move(curves)}});
}

HttpResponse Api::clients(const Question& question) {
  return answer(question, std::vector<std::string_view>{"client", "list"});
}

HttpResponse Api::slow_log(const Question& question) {
  return answer(question, std::vector<std::string_view>{"slowlog", "get", kSlowCommandsMax});
}

HttpResponse Api::log(const Question& /*question*/) {
  json::array lines;
  for (const std::string& line : recent_warnings()) lines.emplace_back(readable(line));
  return json_response(lines);
}

HttpResponse Api::nodes(const Question& question) {
  return answer(question, std::vector<std::string_view>{"cluster", "nodes"});
}

HttpResponse Api::user(const Question& question) {
  const std::string_view key = question.request.parameter("key").value_or("");
  const std::pair<std::string_view, std::vector<std::string_view>> actions[] = {
      {"info", {"info"}},
      {"filters", {"bf.scan", "0"}},
      {"filter", {"bf.stats", key}},
      {"exists", {"bf.exists", key, "x"}},
      {"add", {"bf.insert", key, "NOCREATE", "ITEMS", "x"}},
      {"plan", {"bf.plan", "0.01", "1"}},
      {"clients", {"client", "list"}},
      {"slowlog", {"slowlog", "get"}}};
  json::object may;
  for (const auto& [name, words] : actions) may[name] = access_.allows(*question.user, words);
  return json_response(
      json::object{{"name", readable(question.user->name())}, {"may", std::move(may)}});
}

}  // namespace server::admin
