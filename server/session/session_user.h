// SPDX-License-Identifier: MIT
//
// Sets the user of a session at login, and applies changes of the users to the session.
//
// Thread safety: must be called on the thread of the session's connection.
#pragma once

#include <cstdint>
#include <memory>

namespace server::acl {
class User;
class Users;
}  // namespace server::acl

namespace server {

class Session;

// Makes `user` the session's user. `version` is the version of all users at the time when `user`
// was found.
void set_user(Session& session, std::shared_ptr<const acl::User> user, uint64_t version);
// Sets the state of a new connection: the default user, logged in if it needs no password.
void set_default_user(Session& session, const acl::Users& users);
// Applies changes of the user. Returns false if the session must end: its user was deleted, or may
// no longer listen to one of the session's channels.
bool refresh_user(Session& session, const acl::Users& users);

}  // namespace server
