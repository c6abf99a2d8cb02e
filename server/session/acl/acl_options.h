// SPDX-License-Identifier: MIT
//
// Applies the options about users: requirepass, acllog-max-len, acl-pubsub-default, and the options
// for the definitions of users.
//
// Thread safety: must be called before other threads start.
#pragma once

#include "core/result.h"

namespace server {
class Config;
}

namespace server::acl {

class Users;

// Applies the options about users now and after each change, and loads the users from the
// configuration or from the ACL file. If no definition names the default user, its password is
// requirepass. `users` and `config` must outlive the last CONFIG SET. Errors: the text to print
// before exiting.
core::Result<> prepare_users(Users& users, Config& config);

}  // namespace server::acl
