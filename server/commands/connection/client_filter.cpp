// SPDX-License-Identifier: MIT
#include "server/commands/connection/client_filter.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "core/clock.h"
#include "core/number.h"
#include "protocol/arguments.h"

namespace server {
namespace {

using protocol::equals_ignore_case;

// Returns the client type that the word names; nullopt for any other word.
std::optional<ClientType> parse_client_type(std::string_view word) {
  if (equals_ignore_case(word, "normal")) return ClientType::kNormal;
  if (equals_ignore_case(word, "master")) return ClientType::kMaster;
  if (equals_ignore_case(word, "primary")) return ClientType::kMaster;
  if (equals_ignore_case(word, "replica")) return ClientType::kReplica;
  if (equals_ignore_case(word, "slave")) return ClientType::kReplica;
  if (equals_ignore_case(word, "pubsub")) return ClientType::kPubSub;
  return std::nullopt;
}

ClientType type_of(const Client& client) {
  const Peer peer = client.peer;
  if (peer == Peer::kLeader) return ClientType::kMaster;
  if (peer == Peer::kReplica) return ClientType::kReplica;
  return client.subscriptions.any() ? ClientType::kPubSub : ClientType::kNormal;
}

// As in Redis, an empty `wanted` matches no client. It does not match the link to a leader either,
// although the local address of that link is empty.
bool has_address(const std::optional<std::string_view>& wanted, std::string_view address) {
  return !wanted || (!wanted->empty() && *wanted == address);
}

core::Result<> read_age(std::string_view value, ClientFilter& filter) {
  const auto seconds = core::parse_int64(value);
  if (!seconds) return core::Error{"ERR maxage is not an integer or out of range"};
  if (*seconds <= 0) return core::Error{"ERR maxage should be greater than 0"};
  filter.age_min_s = *seconds;
  return {};
}

core::Result<> read_skip(std::string_view value, ClientFilter& filter) {
  const bool skips = equals_ignore_case(value, "yes");
  if (!skips && !equals_ignore_case(value, "no")) return core::Error{std::string(kSyntaxError)};
  filter.skips_self = skips;
  return {};
}

core::Result<> read_type(std::string_view value, ClientFilter& filter) {
  filter.type = parse_client_type(value);
  if (filter.type) return {};
  return core::Error{fmt::format("ERR Unknown client type '{}'", value)};
}

core::Result<> read_user(std::string_view value, const acl::Users& users, ClientFilter& filter) {
  if (users.find(value) == nullptr) return core::Error{fmt::format("ERR No such user '{}'", value)};
  filter.user = value;
  return {};
}

// Reads an option that has one value. Every option except ID has one value.
core::Result<> read_option(std::string_view option, std::string_view value, const acl::Users& users,
                           ClientFilter& filter) {
  if (equals_ignore_case(option, "maxage")) return read_age(value, filter);
  if (equals_ignore_case(option, "skipme")) return read_skip(value, filter);
  if (equals_ignore_case(option, "type")) return read_type(value, filter);
  if (equals_ignore_case(option, "user")) return read_user(value, users, filter);
  if (equals_ignore_case(option, "addr")) {
    filter.address = value;
  } else if (equals_ignore_case(option, "laddr")) {
    filter.local_address = value;
  } else {
    return core::Error{std::string(kSyntaxError)};
  }
  return {};
}

bool is_option(std::string_view word) {
  constexpr std::string_view kOptions[] = {"id",    "type",   "user",  "addr",
                                           "laddr", "skipme", "maxage"};
  return std::ranges::any_of(
      kOptions, [word](std::string_view option) { return equals_ignore_case(word, option); });
}

}  // namespace

bool ClientFilter::accepts(const Client& client, const Client& self, int64_t now_us) const {
  return (!type || type_of(client) == *type) &&
         (ids.empty() || std::ranges::find(ids, client.id) != ids.end()) &&
         has_address(address, client.address) && has_address(local_address, client.local_address) &&
         (!user || client.names.get().user == *user) &&
         (now_us - client.created_us) / core::kSecondUs >= age_min_s &&
         !(skips_self && client.id == self.id);
}

bool is_client_filter(Arguments options) {
  for (size_t next = 0; next < options.size();) {
    const bool takes_several = equals_ignore_case(options[next], "id");
    if (!is_option(options[next]) || next + 1 == options.size()) return false;
    next += 2;
    while (takes_several && next < options.size() && !is_option(options[next])) ++next;
  }
  return true;
}

core::Result<> read_client_filter(Arguments options, const acl::Users& users,
                                  const ClientIdRule& id_rule, ClientFilter& filter) {
  size_t next = 0;
  while (next < options.size()) {
    const std::string_view option = options[next++];
    if (next == options.size()) return core::Error{std::string(kSyntaxError)};
    if (!equals_ignore_case(option, "id")) {
      if (auto read = read_option(option, options[next++], users, filter); !read) return read;
      continue;
    }
    const size_t first = next;
    for (; next < options.size() && !is_option(options[next]); ++next) {
      const auto id = core::parse_int64(options[next]);
      const bool is_id = id && *id >= id_rule.min;
      if (!is_id && next > first && !id_rule.takes_ids_only) break;
      if (!is_id) return core::Error{std::string(id_rule.error)};
      filter.ids.push_back(static_cast<uint64_t>(*id));
    }
    // If the name of another option follows ID directly, the client gave no id, which is an error.
    if (next == first) return core::Error{std::string(id_rule.error)};
  }
  return {};
}

}  // namespace server
