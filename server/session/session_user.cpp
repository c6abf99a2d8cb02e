// SPDX-License-Identifier: MIT
#include "server/session/session_user.h"

#include <algorithm>
#include <utility>

#include "server/session/acl/user.h"
#include "server/session/acl/users.h"
#include "server/session/session.h"

namespace server {
namespace {

bool may_listen_on(const Session& session, const acl::User& user) {
  for (const SubscriptionKind kind : kSubscriptionKinds) {
    if (session.subscriptions.count(kind) == 0) continue;
    const auto names = session.subscriptions.names(kind);
    const bool may = std::ranges::all_of(names, [&](const std::string& name) {
      return user.allows_channel(name, kind == SubscriptionKind::kPattern);
    });
    if (!may) return false;
  }
  return true;
}

}  // namespace

void set_user(Session& session, acl::UserPtr user, uint64_t version) {
  if (session.identity.user == nullptr || session.identity.user->name() != user->name()) {
    session.client->names.change([&](ClientNames::Values& names) { names.user = user->name(); });
  }
  const bool is_trusted = session.origin != CommandOrigin::kClient || user->is_unrestricted();
  session.identity.user = std::move(user);
  session.identity.version = version;
  session.identity.trusted_version = is_trusted ? version : 0;
}

void set_default_user(Session& session, const acl::Users& users) {
  const uint64_t version = users.version();
  session.authenticated = users.is_open();
  set_user(session, users.default_user(), version);
}

bool refresh_user(Session& session, const acl::Users& users) {
  const uint64_t version = users.version();
  if (session.identity.version == version) return true;
  const std::string_view name =
      session.identity.user == nullptr ? acl::kDefaultUser : session.identity.user->name();
  acl::UserPtr user = users.find(name);
  if (user == nullptr ||
      (session.identity.user != nullptr && session.identity.user->id != user->id))
    return false;
  const bool may_stay = may_listen_on(session, *user);
  set_user(session, std::move(user), version);
  return may_stay;
}

}  // namespace server
