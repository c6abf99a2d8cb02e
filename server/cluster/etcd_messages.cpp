// SPDX-License-Identifier: MIT
#include "server/cluster/etcd_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <iterator>

#include "core/base64.h"
#include "core/number.h"
#include "core/printable.h"
#include "server/cluster/json_fields.h"

namespace server::cluster {
namespace {

namespace json = boost::json;

constexpr size_t kMessageBytesMax = 300;

// etcd omits JSON fields whose value is zero or empty, so the functions below accept a missing
// field.
std::string text_in(const json::object& object, std::string_view name) {
  return JsonField(object, name).text_or("");
}

std::string bytes_in(const json::object& object, std::string_view name) {
  if (auto bytes = core::decode_base64(text_in(object, name))) return *std::move(bytes);
  refuse_json(name, "base64");
}

// The JSON form of protobuf writes 64-bit numbers as text, but a plain number is also accepted.
uint64_t number_in(const json::object& object, std::string_view name) {
  const JsonField field(object, name);
  if (!field.exists() || !field.value().is_string()) return field.number_or(0);
  const auto number = core::parse_int64(field.text());
  if (!number || *number < 0) refuse_json(name, "number from 0 to 2^63-1");
  return static_cast<uint64_t>(*number);
}

// Reads each object of an array.
template <class Item>
std::vector<Item> items_in(const json::object& object, std::string_view name,
                           Item (*read)(const json::object&)) {
  std::vector<Item> items;
  const JsonField field(object, name);
  if (!field.exists()) return items;
  for (const json::value& item : field.array()) {
    items.push_back(read(JsonField(item, name).object()));
  }
  return items;
}

uint64_t revision_of(const json::object& reply) {
  const JsonField header(reply, "header");
  return header.exists() ? number_in(header.object(), "revision") : 0;
}

EtcdKeyValue key_value(const json::object& object) {
  return {bytes_in(object, "key"), bytes_in(object, "value"), number_in(object, "mod_revision"),
          number_in(object, "lease")};
}

EtcdRangeReply range_reply(const json::object& object) {
  return {revision_of(object), items_in(object, "kvs", key_value)};
}

EtcdRangeReply operation_reply(const json::object& object) {
  const JsonField range(object, "response_range");
  if (range.exists()) return range_reply(range.object());
  const JsonField put(object, "response_put");
  return {put.exists() ? revision_of(put.object()) : 0, {}};
}

EtcdTxnReply txn_reply(const json::object& object) {
  const JsonField header(object, "header");
  return {header.exists() ? text_in(header.object(), "cluster_id") : "", revision_of(object),
          JsonField(object, "succeeded").flag_or(false),
          items_in(object, "responses", operation_reply)};
}

EtcdLeaseReply lease_reply(const json::object& object) {
  return {number_in(object, "ID"), number_in(object, "TTL")};
}

EtcdEvent event_of(const json::object& object) {
  EtcdEvent event;
  const std::string type = text_in(object, "type");
  event.deleted = type == "DELETE";
  if (!event.deleted && !type.empty() && type != "PUT") refuse_json("type", "PUT or DELETE");
  event.kv = key_value(JsonField(object, "kv").object());
  return event;
}

EtcdWatchReply watch_reply(const json::object& object) {
  return {.revision = revision_of(object),
          .created = JsonField(object, "created").flag_or(false),
          .canceled = JsonField(object, "canceled").flag_or(false),
          .compact_revision = number_in(object, "compact_revision"),
          .cancel_reason =
              core::printable(text_in(object, "cancel_reason").substr(0, kMessageBytesMax)),
          .events = items_in(object, "events", event_of)};
}

// In an error of a stream, `error` is an object with the code and the message. In other errors,
// `error` is a text, and the code is a member of the reply itself.
EtcdError error_of(const json::object& reply) {
  const JsonField nested(reply, "error");
  const bool is_nested = nested.exists() && nested.value().is_object();
  const json::object& object = is_nested ? nested.object() : reply;
  JsonField code(object, "code");
  if (!code.exists()) code = JsonField(object, "grpc_code");
  const int64_t* number = code.exists() ? code.value().if_int64() : nullptr;
  constexpr int64_t kLastCode = 16;
  EtcdError error{EtcdCode::kUnknown, {}};
  if (number != nullptr && *number > 0 && *number <= kLastCode) {
    error.code = static_cast<EtcdCode>(*number);
  }
  error.message = core::printable(text_in(object, "message").substr(0, kMessageBytesMax));
  return error;
}

template <class Read>
auto parse_reply(std::string_view text, Read read) {
  return parse_json("etcd's reply", text, kEtcdReplyBytesMax, read);
}

json::string base64(std::string_view bytes) {
  return json::string(core::encode_base64(bytes));
}

void add_number(json::object& object, std::string_view name, uint64_t number) {
  if (number != 0) object[name] = fmt::to_string(number);
}

json::object range_object(const EtcdRange& range) {
  json::object object{{"key", base64(range.key)}};
  if (!range.range_end.empty()) object["range_end"] = base64(range.range_end);
  return object;
}

json::object put_object(const EtcdPut& put) {
  json::object object{{"key", base64(put.key)}, {"value", base64(put.value)}};
  add_number(object, "lease", put.lease);
  return object;
}

json::object compare_object(const EtcdCompare& compare) {
  const bool created = compare.target == EtcdCompare::Target::kCreateRevision;
  return {{"key", base64(compare.key)},
          {"target", created ? "CREATE" : "MOD"},
          {"result", "EQUAL"},
          {created ? "create_revision" : "mod_revision", fmt::to_string(compare.equals)}};
}

json::array operations_array(const std::vector<EtcdOperation>& operations) {
  json::array items;
  for (const EtcdOperation& operation : operations) {
    const auto* const put = std::get_if<EtcdPut>(&operation);
    items.push_back(put != nullptr ? json::object{{"request_put", put_object(*put)}}
                                   : json::object{{"request_range",
                                                   range_object(std::get<EtcdRange>(operation))}});
  }
  return items;
}

}  // namespace

EtcdRange EtcdRange::prefix(std::string_view prefix) {
  std::string end(prefix);
  // The end of the range is the successor of the prefix. A byte 0xff has no successor, so the byte
  // before it is increased.
  while (!end.empty() && end.back() == '\xff') end.pop_back();
  // The prefix has no successor, so the range ends at the last key.
  if (end.empty()) return {std::string(prefix), std::string(1, '\0')};
  ++end.back();
  return {std::string(prefix), std::move(end)};
}

const EtcdKeyValue* EtcdRangeReply::find(std::string_view key) const {
  const auto found = std::ranges::find(kvs, key, &EtcdKeyValue::key);
  return found == kvs.end() ? nullptr : &*found;
}

std::string etcd_range_json(const EtcdRange& range) {
  return json::serialize(range_object(range));
}

std::string etcd_txn_json(const EtcdTxn& txn) {
  json::array compares;
  for (const EtcdCompare& compare : txn.compares) compares.push_back(compare_object(compare));
  return json::serialize(json::object{{"compare", std::move(compares)},
                                      {"success", operations_array(txn.success)},
                                      {"failure", operations_array(txn.failure)}});
}

std::string etcd_grant_json(uint64_t ttl_s) {
  return json::serialize(json::object{{"TTL", fmt::to_string(ttl_s)}});
}

std::string etcd_lease_json(uint64_t lease) {
  return json::serialize(json::object{{"ID", fmt::to_string(lease)}});
}

std::string etcd_watch_json(const EtcdWatch& watch) {
  json::object create = range_object({watch.key, watch.range_end});
  add_number(create, "start_revision", watch.start_revision);
  create["progress_notify"] = true;
  return json::serialize(json::object{{"create_request", std::move(create)}});
}

std::string etcd_authenticate_json(std::string_view user, std::string_view password) {
  return json::serialize(json::object{{"name", user}, {"password", password}});
}

core::Result<EtcdRangeReply> parse_etcd_range(std::string_view json) {
  return parse_reply(json, range_reply);
}

core::Result<EtcdTxnReply> parse_etcd_txn(std::string_view json) {
  return parse_reply(json, txn_reply);
}

core::Result<EtcdLeaseReply> parse_etcd_grant(std::string_view json) {
  return parse_reply(json, [](const json::object& reply) {
    const EtcdLeaseReply granted = lease_reply(reply);
    if (granted.lease == 0) refuse_json("ID", "lease");
    return granted;
  });
}

core::Result<EtcdLeaseReply> parse_etcd_keep_alive(std::string_view json) {
  return parse_reply(json, [](const json::object& reply) {
    return lease_reply(JsonField(reply, "result").object());
  });
}

core::Result<EtcdRevokeReply> parse_etcd_revoke(std::string_view json) {
  return parse_reply(json,
                     [](const json::object& reply) { return EtcdRevokeReply{revision_of(reply)}; });
}

core::Result<std::string> parse_etcd_token(std::string_view json) {
  return parse_reply(json, [](const json::object& reply) {
    std::string token = text_in(reply, "token");
    // The token must be printable, because it becomes a line of an HTTP header.
    if (token.empty() || std::ranges::any_of(token, [](char c) { return c <= ' ' || c > '~'; })) {
      refuse_json("token", "token");
    }
    return token;
  });
}

core::Result<std::variant<EtcdWatchReply, EtcdError>> parse_etcd_watch(std::string_view json) {
  return parse_reply(json, [](const json::object& reply) {
    using Message = std::variant<EtcdWatchReply, EtcdError>;
    if (JsonField(reply, "error").exists()) return Message(error_of(reply));
    return Message(watch_reply(JsonField(reply, "result").object()));
  });
}

bool is_refusal(EtcdCode code) {
  using enum EtcdCode;
  constexpr EtcdCode kRefusals[] = {kInvalidArgument,   kNotFound,   kPermissionDenied,
                                    kResourceExhausted, kOutOfRange, kUnauthenticated,
                                    kFailedPrecondition};
  return std::ranges::find(kRefusals, code) != std::end(kRefusals);
}

EtcdError parse_etcd_error(unsigned http_status, std::string_view json) {
  const auto parsed = parse_reply(json, error_of);
  EtcdError error = parsed ? *parsed : EtcdError{EtcdCode::kUnknown, {}};
  constexpr unsigned kUnauthorized = 401;
  constexpr unsigned kServerErrors = 500;
  if (!parsed && http_status == kUnauthorized) error.code = EtcdCode::kUnauthenticated;
  if (!parsed && http_status >= kServerErrors) error.code = EtcdCode::kUnavailable;
  if (error.message.empty()) error.message = fmt::format("HTTP status {}", http_status);
  return error;
}

}  // namespace server::cluster
