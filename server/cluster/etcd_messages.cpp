// SPDX-License-Identifier: MIT
#include "server/cluster/etcd_messages.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/json.hpp>
#include <limits>
#include <optional>
#include <utility>

#include "core/base64.h"
#include "core/number.h"
#include "core/printable.h"

namespace server::cluster {
namespace {

namespace json = boost::json;

constexpr size_t kMessageBytesMax = 300;

// Exception that is thrown and caught in this file only. With it, the functions that read nested
// values need not return errors.
struct BadReply {
  std::string text;
};

[[noreturn]] void refuse(std::string_view name, std::string_view wanted) {
  throw BadReply{fmt::format("'{}' is no {}", name, wanted)};
}

// Returns null if the object has no such member. etcd omits members whose value is zero.
const json::value* find_in(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

const json::object* object_in(const json::object& object, std::string_view name) {
  const json::value* value = find_in(object, name);
  if (value == nullptr) return nullptr;
  if (const json::object* inner = value->if_object()) return inner;
  refuse(name, "object");
}

const json::array* array_in(const json::object& object, std::string_view name) {
  const json::value* value = find_in(object, name);
  if (value == nullptr) return nullptr;
  if (const json::array* items = value->if_array()) return items;
  refuse(name, "array");
}

std::string_view text_in(const json::object& object, std::string_view name) {
  const json::value* value = find_in(object, name);
  if (value == nullptr) return {};
  if (const json::string* text = value->if_string()) return {text->data(), text->size()};
  refuse(name, "string");
}

std::string bytes_in(const json::object& object, std::string_view name) {
  if (auto bytes = core::decode_base64(text_in(object, name))) return *std::move(bytes);
  refuse(name, "base64");
}

bool flag_in(const json::object& object, std::string_view name) {
  const json::value* value = find_in(object, name);
  if (value == nullptr) return false;
  if (const bool* flag = value->if_bool()) return *flag;
  refuse(name, "boolean");
}

// The JSON form of protobuf writes 64-bit numbers as text, but a plain number is also accepted.
uint64_t number_in(const json::object& object, std::string_view name) {
  const json::value* value = find_in(object, name);
  if (value == nullptr) return 0;
  std::optional<int64_t> number;
  if (const json::string* text = value->if_string()) {
    number = core::parse_int64({text->data(), text->size()});
  } else if (const int64_t* plain = value->if_int64()) {
    number = *plain;
  }
  if (!number || *number < 0) refuse(name, "number from 0 to 2^63-1");
  return static_cast<uint64_t>(*number);
}

uint64_t revision_of(const json::object& reply) {
  const json::object* header = object_in(reply, "header");
  return header == nullptr ? 0 : number_in(*header, "revision");
}

const json::object& as_item(const json::value& value, std::string_view name) {
  if (const json::object* object = value.if_object()) return *object;
  refuse(name, "array of objects");
}

EtcdKeyValue key_value(const json::object& object) {
  EtcdKeyValue kv;
  kv.key = bytes_in(object, "key");
  kv.value = bytes_in(object, "value");
  kv.create_revision = number_in(object, "create_revision");
  kv.mod_revision = number_in(object, "mod_revision");
  kv.lease = number_in(object, "lease");
  return kv;
}

EtcdRangeReply range_reply(const json::object& object) {
  EtcdRangeReply reply;
  reply.revision = revision_of(object);
  reply.count = number_in(object, "count");
  if (const json::array* kvs = array_in(object, "kvs")) {
    for (const json::value& kv : *kvs) reply.kvs.push_back(key_value(as_item(kv, "kvs")));
  }
  return reply;
}

EtcdRangeReply operation_reply(const json::object& object) {
  if (const json::object* range = object_in(object, "response_range")) return range_reply(*range);
  EtcdRangeReply reply;
  if (const json::object* put = object_in(object, "response_put")) {
    reply.revision = revision_of(*put);
  }
  return reply;
}

EtcdTxnReply txn_reply(const json::object& object) {
  EtcdTxnReply reply;
  if (const json::object* header = object_in(object, "header")) {
    reply.cluster_id = text_in(*header, "cluster_id");
  }
  reply.revision = revision_of(object);
  reply.succeeded = flag_in(object, "succeeded");
  if (const json::array* responses = array_in(object, "responses")) {
    for (const json::value& response : *responses) {
      reply.responses.push_back(operation_reply(as_item(response, "responses")));
    }
  }
  return reply;
}

EtcdLeaseReply lease_reply(const json::object& object) {
  return {number_in(object, "ID"), number_in(object, "TTL")};
}

EtcdEvent event_of(const json::object& object) {
  EtcdEvent event;
  const std::string_view type = text_in(object, "type");
  event.deleted = type == "DELETE";
  if (!event.deleted && !type.empty() && type != "PUT") refuse("type", "PUT or DELETE");
  const json::object* kv = object_in(object, "kv");
  if (kv == nullptr) refuse("kv", "object");
  event.kv = key_value(*kv);
  return event;
}

EtcdWatchReply watch_reply(const json::object& object) {
  EtcdWatchReply reply;
  reply.revision = revision_of(object);
  reply.created = flag_in(object, "created");
  reply.canceled = flag_in(object, "canceled");
  reply.compact_revision = number_in(object, "compact_revision");
  reply.cancel_reason =
      core::printable(text_in(object, "cancel_reason").substr(0, kMessageBytesMax));
  if (const json::array* events = array_in(object, "events")) {
    for (const json::value& event : *events) {
      reply.events.push_back(event_of(as_item(event, "events")));
    }
  }
  return reply;
}

// In an error of a stream, `error` is an object with the code and the message. In other errors,
// `error` is a text, and the code is a member of the reply itself.
EtcdError error_of(const json::object& reply) {
  const json::value* nested = find_in(reply, "error");
  const json::object& object =
      nested != nullptr && nested->is_object() ? nested->get_object() : reply;
  const json::value* code = find_in(object, "code");
  if (code == nullptr) code = find_in(object, "grpc_code");
  const int64_t* number = code == nullptr ? nullptr : code->if_int64();
  constexpr int64_t kLastCode = 16;
  EtcdError error{EtcdCode::kUnknown, {}};
  if (number != nullptr && *number > 0 && *number <= kLastCode) {
    error.code = static_cast<EtcdCode>(*number);
  }
  error.message = core::printable(text_in(object, "message").substr(0, kMessageBytesMax));
  return error;
}

// Parses a JSON object with the function `read`. Errors: the errors that `read` throws, and a text
// that is no JSON object.
template <class Read>
auto parse_reply(std::string_view text, Read read)
    -> core::Result<decltype(read(std::declval<const json::object&>()))> {
  const auto refusal = [](std::string_view fault) {
    return core::Error{fmt::format("ERR etcd's reply: {}", fault)};
  };
  if (text.size() > kEtcdReplyBytesMax) return refusal("too large");
  boost::system::error_code failed;
  const json::value value = json::parse(text, failed);
  if (failed) return refusal("not JSON: " + failed.message());
  const json::object* object = value.if_object();
  if (object == nullptr) return refusal("no JSON object");
  try {
    return {boost::system::in_place_value, read(*object)};
  } catch (const BadReply& bad) {
    return refusal(bad.text);
  }
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
  add_number(object, "min_mod_revision", range.min_mod_revision);
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
    if (const auto* put = std::get_if<EtcdPut>(&operation)) {
      items.push_back(json::object{{"request_put", put_object(*put)}});
    } else {
      items.push_back(
          json::object{{"request_range", range_object(std::get<EtcdRange>(operation))}});
    }
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

EtcdCompare EtcdCompare::unchanged(std::string key, uint64_t mod_revision) {
  return {std::move(key), Target::kModRevision, mod_revision};
}

EtcdCompare EtcdCompare::absent(std::string key) {
  return {std::move(key), Target::kCreateRevision, 0};
}

std::string etcd_range_json(const EtcdRange& range) {
  return json::serialize(range_object(range));
}

std::string etcd_put_json(const EtcdPut& put) {
  return json::serialize(put_object(put));
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

core::Result<EtcdPutReply> parse_etcd_put(std::string_view json) {
  return parse_reply(json,
                     [](const json::object& reply) { return EtcdPutReply{revision_of(reply)}; });
}

core::Result<EtcdTxnReply> parse_etcd_txn(std::string_view json) {
  return parse_reply(json, txn_reply);
}

core::Result<EtcdLeaseReply> parse_etcd_grant(std::string_view json) {
  return parse_reply(json, [](const json::object& reply) {
    const EtcdLeaseReply granted = lease_reply(reply);
    if (granted.lease == 0) refuse("ID", "lease");
    return granted;
  });
}

core::Result<EtcdLeaseReply> parse_etcd_keep_alive(std::string_view json) {
  return parse_reply(json, [](const json::object& reply) {
    const json::object* result = object_in(reply, "result");
    if (result == nullptr) refuse("result", "object");
    return lease_reply(*result);
  });
}

core::Result<EtcdRevokeReply> parse_etcd_revoke(std::string_view json) {
  return parse_reply(json,
                     [](const json::object& reply) { return EtcdRevokeReply{revision_of(reply)}; });
}

core::Result<std::string> parse_etcd_token(std::string_view json) {
  return parse_reply(json, [](const json::object& reply) {
    const std::string_view token = text_in(reply, "token");
    // The token must be printable, because it becomes a line of an HTTP header.
    if (token.empty() || std::ranges::any_of(token, [](char c) { return c <= ' ' || c > '~'; })) {
      refuse("token", "token");
    }
    return std::string(token);
  });
}

core::Result<std::variant<EtcdWatchReply, EtcdError>> parse_etcd_watch(std::string_view json) {
  return parse_reply(json, [](const json::object& reply) {
    using Message = std::variant<EtcdWatchReply, EtcdError>;
    if (find_in(reply, "error") != nullptr) return Message(error_of(reply));
    const json::object* result = object_in(reply, "result");
    if (result == nullptr) refuse("result", "object");
    return Message(watch_reply(*result));
  });
}

bool is_refusal(EtcdCode code) {
  switch (code) {
    case EtcdCode::kInvalidArgument:
    case EtcdCode::kNotFound:
    case EtcdCode::kPermissionDenied:
    case EtcdCode::kResourceExhausted:
    case EtcdCode::kFailedPrecondition:
    case EtcdCode::kOutOfRange:
    case EtcdCode::kUnauthenticated:
      return true;
    default:
      return false;
  }
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
