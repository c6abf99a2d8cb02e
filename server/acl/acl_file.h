// SPDX-License-Identifier: MIT
//
// The file of `aclfile`: one line for each user, as ACL LIST shows them.
//
// Invariants: a file with a fault changes nothing; a file that cannot be written leaves the old one
// as it was.
// Thread safety: free functions; the caller keeps two writers from each other.
// Source: https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/, "Use an
// external ACL file".
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace server {
struct Directive;
}

namespace server::acl {

class Users;

// Errors: what is wrong, for the log and for the reply of ACL LOAD; without a reply code.
core::Result<> load_acl_file(Users& users, const std::string& path);
core::Result<> save_acl_file(const Users& users, const std::string& path);

// At the start: from the configuration's `user` lines or from a file, not both.
// Errors: the text to print before exiting; of a line with a fault it tells the place.
core::Result<> load_users(Users& users, std::span<const Directive> user_lines,
                          const std::string& path);

// The users in the order of their names, as lines of the configuration file: "user alice on …". A
// word that its reader would change is quoted.
std::vector<std::string> user_config_lines(const Users& users);
// The same for ACL LIST and the ACL file, whose reader splits at spaces and knows no quotes.
std::vector<std::string> user_lines(const Users& users);

}  // namespace server::acl
