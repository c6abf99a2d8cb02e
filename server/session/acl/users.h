// SPDX-License-Identifier: MIT
//
// Users: all users by name. Each change publishes new User objects and increments the version.
// Sessions compare the version before each command, so they notice the change.
//
// Invariants: there is always a user named "default". A published user never changes. set() keeps
// the id of an existing user. A user gets another id if it is deleted and created again, or if
// replace_all() changes its definition. The default user always keeps its id.
// Thread safety: all members may be called from any thread. The version is read without a lock; a
// caller that reads it before find() gets a user at least as new as the version.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "server/session/acl/access_log.h"
#include "server/session/acl/command_table.h"

namespace server::acl {

class User;
enum class ChannelDefault : uint8_t;
using UserPtr = std::shared_ptr<const User>;

inline constexpr std::string_view kDefaultUser = "default";
inline constexpr std::string_view kInvalidUserName =
    "ERR Usernames can't contain spaces or null characters";

// The definition of one user, from a line of a file.
struct UserDefinition {
  std::string name;
  std::vector<std::string> rules;
  size_t line = 0;
};

// Determines the default user if no definition names it. kOpen: it becomes a user with all
// permissions and no password. kKept: it does not change.
enum class UndefinedDefault : uint8_t { kOpen, kKept };

class Users {
 public:
  explicit Users(CommandTable table);

  const CommandTable& table() const { return table_; }
  AccessLog& log() { return log_; }

  // Returns the version, which is never 0.
  uint64_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  // Returns the user with the name; null if there is none.
  UserPtr find(std::string_view name) const;
  UserPtr default_user() const { return find(kDefaultUser); }
  // Returns whether a new connection is authenticated as the default user without AUTH.
  bool is_open() const noexcept { return is_open_.load(std::memory_order_relaxed); }
  // Returns whether the default user needs no password. Does not check whether that user is on.
  bool has_no_password() const noexcept { return has_no_password_.load(std::memory_order_relaxed); }
  // Returns the users sorted by name.
  std::vector<UserPtr> list() const;

  // Returns the user if the password is correct or the user needs none. Returns null for an unknown
  // user, a wrong password and a user that is off. The call takes the same time for an unknown user
  // as for a user with one password.
  UserPtr authenticate(std::string_view name, std::string_view password) const;

  // Implements ACL SETUSER. Errors: the error reply; all users are unchanged then.
  core::Result<> set(std::string_view name, std::span<const std::string_view> rules);
  // Deletes the user, and returns whether it existed. REQUIRES: not the default user.
  bool remove(std::string_view name);
  // Replaces all users. Returns an error text for each invalid definition. If there is any error,
  // all users are unchanged.
  std::vector<std::string> replace_all(std::span<const UserDefinition> definitions,
                                       UndefinedDefault undefined);
  // Implements requirepass: sets the default user's only password, or removes all its passwords.
  void set_default_password(std::string_view password);
  // Implements acl-pubsub-default, for users created from now on.
  void set_channel_default(ChannelDefault channels) { channel_default_.store(channels); }

 private:
  using Map = std::map<std::string, UserPtr, std::less<>>;

  void publish(std::shared_ptr<User> user);
  void announce();
  void take_all(Map fresh);
  std::shared_ptr<User> open_default_user() const;

  const CommandTable table_;
  AccessLog log_;
  std::atomic<uint64_t> version_{1};
  std::atomic<bool> is_open_{true};
  std::atomic<bool> has_no_password_{true};
  std::atomic<ChannelDefault> channel_default_;
  mutable std::mutex mutex_;  // this mutex guards users_ and last_id_
  Map users_;
  uint64_t last_id_ = 0;
};

}  // namespace server::acl
