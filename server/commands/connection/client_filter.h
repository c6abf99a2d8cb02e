// SPDX-License-Identifier: MIT
//
// ClientFilter: which clients CLIENT LIST and CLIENT KILL mean.
//
// Invariants: a filter without options accepts all clients but, with `skips_self`, the caller.
// Thread safety: accepts() reads only what a session shares.
// Source: https://redis.io/docs/latest/commands/client-kill/ and the same page of Valkey 8.1, where
// both commands take the same options and ID takes several ids.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/acl/users.h"
#include "server/dispatch/context.h"
#include "server/session/session.h"

namespace server {

enum class ClientType : uint8_t { kNormal, kMaster, kReplica, kPubSub };

struct ClientFilter {
  std::vector<uint64_t> ids{};  // in the order given; empty: any
  std::optional<std::string_view> address{};
  std::optional<std::string_view> local_address{};
  std::optional<std::string_view> user{};
  std::optional<ClientType> type{};
  int64_t age_min_s = 0;
  bool skips_self = false;

  // `now_us` is monotonic.
  bool accepts(const Session& session, const Session& self, int64_t now_us) const;
};

// The ids that a command takes, and its reply to others.
struct ClientIdRule {
  int64_t min;
  std::string_view error;
  // Whether a word after the first id may be another id only: else it may also begin an option.
  bool takes_ids_only;
};
// No client has an id below 1: CLIENT LIST shows none then.
inline constexpr ClientIdRule kListedIds{std::numeric_limits<int64_t>::min(),
                                         "ERR Invalid client ID", true};
inline constexpr ClientIdRule kKilledIds{1, "ERR client-id should be greater than 0", false};

// Whether the words are known options with values. CLIENT LIST asks this first, as in Redis.
bool is_client_filter(Arguments options);
// Reads `option value` pairs into the filter. Errors: the reply.
core::Result<> read_client_filter(Arguments options, const acl::Users& users,
                                  const ClientIdRule& id_rule, ClientFilter& filter);

}  // namespace server
