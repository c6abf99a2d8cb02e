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
#include "server/admin/figures/reply_json.h"
#include "server/commands/bloom/bloom_options.h"
#include "server/commands/services.h"
#include "server/config/config.h"

namespace server::admin {
namespace {

namespace json = boost::json;

constexpr std::string_view kFiltersPerPage = "1000";
constexpr std::string_view kUsualWindowS = "86400";

HttpResponse json_response(const json::value& value) {
  HttpResponse response;
  response.content_type = "application/json";
  response.body = json::serialize(value);
  return response;
}

HttpResponse json_error(unsigned status, std::string_view text) {
  HttpResponse response = json_response(json::object{{"error", text}});
  response.status = status;
  return response;
}

// "NOPERM …" is a 403, what may pass a 503. Other refusals, of a filter that has gone or of a
// number half typed, are what was asked for, and no error in a browser's console.
HttpResponse error_response(const protocol::Reply& reply) {
  const std::string_view text = reply.text;
  const std::string_view code = text.substr(0, text.find(' '));
  unsigned status = 200;
  if (code == "NOPERM" || code == "NOAUTH") status = 403;
  if (code == "LOADING" || code == "MASTERDOWN" || code == "BUSY") status = 503;
  HttpResponse response = json_response(json::object{{"error", to_json(reply)}});
  response.status = status;
  return response;
}

// The name of a filter as it is in an address, for JSON has no bytes.
void add_ids(const protocol::Reply& list, json::array& filters) {
  for (size_t i = 0; i < filters.size() && i < list.elements.size(); ++i) {
    const auto& pairs = list.elements[i].elements;
    for (size_t at = 0; at + 1 < pairs.size(); at += 2) {
      if (pairs[at].text != "key") continue;
      filters[i].as_object()["id"] = encode_url(pairs[at + 1].text);
    }
  }
}

}  // namespace

protocol::Reply Api::call(const Question& question, std::span<const std::string_view> words) {
  const auto database = core::parse_int64(question.request.parameter("db").value_or("0"));
  if (!database || *database < 0 || *database >= services_.config.database_count()) {
    protocol::Reply reply;
    reply.type = protocol::Reply::Type::kError;
    reply.text = "ERR DB index is out of range";
    return reply;
  }
  return caller_.call({question.user, question.address, static_cast<int>(*database)}, words);
}

HttpResponse Api::overview() {
  return json_response(overview_of(services_));
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
  if (!key) return json_error(400, "the parameter key is missing");
  const std::vector<std::string_view> words = {"bf.stats", *key};
  const protocol::Reply reply = call(question, words);
  return reply.is_error() ? error_response(reply) : json_response(to_json(reply));
}

HttpResponse Api::plan(const Question& question) {
  const HttpRequest& request = question.request;
  const auto error_rate = request.parameter("error_rate").value_or("");
  const auto capacity = request.parameter("capacity").value_or("");
  const auto kind = request.parameter("kind").value_or("plain");
  const auto window = request.parameter("window").value_or(kUsualWindowS);
  std::vector<std::string_view> words = {"bf.plan", error_rate, capacity};
  if (kind == "deletable") {
    words.emplace_back("DELETABLE");
  } else if (kind == "windowed") {
    words.insert(words.end(), {"WINDOW", window});
  } else if (kind != "plain") {
    return json_error(400, "kind is plain, deletable or windowed");
  }
  const protocol::Reply reply = call(question, words);
  if (reply.is_error()) return error_response(reply);
  const auto parameters = parse_plan(services_.config, words);
  if (!parameters) return json_error(400, parameters.error().message);
  json::array curve;
  for (const auto& [items, rate] : plan_curve(*parameters)) {
    curve.push_back(json::array{items, rate});
  }
  return json_response(json::object{{"plan", to_json(reply)}, {"curve", std::move(curve)}});
}

}  // namespace server::admin
