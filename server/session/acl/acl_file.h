// SPDX-License-Identifier: MIT
//
// Reads and writes the file of `aclfile`, which has one line for each user, in the format of ACL
// LIST.
//
// Invariants: a file with an error changes nothing. If writing fails, the old file is left
// unchanged.
// Thread safety: any thread may call the functions. The caller must prevent two writes of the same
// file at the same time.
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

// These functions load and save the file of `aclfile`. Errors: a text for the log and for the reply
// of ACL LOAD, without an error code.
core::Result<> load_acl_file(Users& users, const std::string& path);
core::Result<> save_acl_file(const Users& users, const std::string& path);

// Loads the users at startup, from the configuration's `user` lines or from a file. If both are
// given, returns an error.
// Errors: the text to print before exiting. For an invalid line, the text includes the file
// and the number of the line.
core::Result<> load_users(Users& users, std::span<const Directive> user_lines,
                          const std::string& path);

// Returns the users in the order of their names, as lines of the configuration file: "user alice on
// …". A word is quoted if the parser of the configuration file would otherwise change it.
std::vector<std::string> user_config_lines(const Users& users);
// Returns the users in the order of their names, as lines for ACL LIST and the ACL file. No word is
// quoted, because the parser of the ACL file splits at spaces.
std::vector<std::string> user_lines(const Users& users);

}  // namespace server::acl
