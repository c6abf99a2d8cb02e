// SPDX-License-Identifier: MIT
//
// What the configuration says of users: requirepass, acllog-max-len, acl-pubsub-default, and where
// the users themselves are defined.
//
// Thread safety: to be called before other threads start.
#pragma once

#include "core/result.h"

namespace server {
class Config;
}

namespace server::acl {

class Users;

// Follows the options from now on, and loads the users of the configuration or of their file; where
// neither names the default user, requirepass says what its password is. Both must outlive
// CONFIG SET. Errors: the text to print before exiting.
core::Result<> prepare_users(Users& users, Config& config);

}  // namespace server::acl
