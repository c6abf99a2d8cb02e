// SPDX-License-Identifier: MIT
//
// Which user a session is: logging in, and following changes of the users.
//
// Thread safety: on the thread of the session's connection.
#pragma once

#include <cstdint>
#include <memory>

namespace server::acl {
class User;
class Users;
}  // namespace server::acl

namespace server {

class Session;

// From now on the session is `user`, found when the users had `version`.
void set_user(Session& session, std::shared_ptr<const acl::User> user, uint64_t version);
// As a client that has said nothing yet: the default user, logged in if it is open to all.
void set_default_user(Session& session, const acl::Users& users);
// Takes what has changed about the user. False if the session must end: its user is gone, or must
// not listen any more to a channel that it listens to.
bool refresh_user(Session& session, const acl::Users& users);

}  // namespace server
