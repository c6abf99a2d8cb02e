// SPDX-License-Identifier: MIT
//
// ClientFilter: the clients that CLIENT LIST and CLIENT KILL select.
//
// Invariants: a filter without options accepts all clients, except the caller if `skips_self` is
// set.
// Thread safety: accepts() may be called on any thread.
// Source: https://redis.io/docs/latest/commands/client-kill/ and Valkey 8.1's page on CLIENT KILL.
// In Valkey, CLIENT LIST and CLIENT KILL have the same options, and ID accepts several ids.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/dispatch/context.h"
#include "server/session/acl/users.h"
#include "server/session/client.h"

namespace server {

enum class ClientType : uint8_t { kNormal, kMaster, kReplica, kPubSub };

struct ClientFilter {
  // Ids that the client gave, in their order; empty selects all clients.
  std::vector<uint64_t> ids{};
  std::optional<std::string_view> address{};
  std::optional<std::string_view> local_address{};
  std::optional<std::string_view> user{};
  std::optional<ClientType> type{};
  int64_t age_min_s = 0;
  bool skips_self = false;

  // Returns whether the filter selects the client. `now_us` is monotonic.
  bool accepts(const Client& client, const Client& self, int64_t now_us) const;
};

// Describes which client ids CLIENT LIST or CLIENT KILL accepts, and its error text for other ids.
struct ClientIdRule {
  int64_t min;
  std::string_view error;
  // The error for a word after the first id that is neither an id nor an option: `error` if true,
  // else a syntax error.
  bool takes_ids_only;
};
// The rule of CLIENT LIST: it accepts ids below 1, which no client has.
inline constexpr ClientIdRule kListedIds{std::numeric_limits<int64_t>::min(),
                                         "ERR Invalid client ID", true};
inline constexpr ClientIdRule kKilledIds{1, "ERR client-id should be greater than 0", false};

// Returns whether the arguments are known options with values. As in Redis, CLIENT LIST checks this
// before it parses any value.
bool is_client_filter(Arguments options);
// Reads `option value` pairs into the filter. Errors: the error reply.
core::Result<> read_client_filter(Arguments options, const acl::Users& users,
                                  const ClientIdRule& id_rule, ClientFilter& filter);

}  // namespace server
