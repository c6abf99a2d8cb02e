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

// Reads `option value` pairs into the filter. `id_error` is the reply to an id that is none.
// Errors: the reply.
core::Result<> read_client_filter(Arguments options, const acl::Users& users,
                                  std::string_view id_error, ClientFilter& filter);

}  // namespace server
