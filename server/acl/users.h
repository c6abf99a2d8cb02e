// SPDX-License-Identifier: MIT
//
// Users: all users by name. Each change publishes new users and raises the version, by which
// sessions notice it before their next command.
//
// Invariants: there is always a user named "default". A published user never changes; changing one
// keeps its id, while deleting and making it again gives another.
// Thread safety: all members may be called from any thread. The version is read without a lock;
// who reads it before find() never keeps a user that is older than the version.
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

namespace server::acl {

class AccessLog;
class CommandTable;
class User;
enum class ChannelDefault : uint8_t;
using UserPtr = std::shared_ptr<const User>;

inline constexpr std::string_view kDefaultUser = "default";

// One user as a line of a file tells it.
struct UserDefinition {
  std::string name;
  std::vector<std::string> rules;
  size_t line = 0;
};

// What becomes of the default user where nobody defines it.
enum class UndefinedDefault : uint8_t { kOpen, kKept };

class Users {
 public:
  explicit Users(CommandTable table);
  Users(const Users&) = delete;
  Users& operator=(const Users&) = delete;
  ~Users();

  const CommandTable& table() const { return *table_; }
  AccessLog& log() { return *log_; }

  // Never 0.
  uint64_t version() const noexcept { return version_.load(std::memory_order_relaxed); }
  // Null when there is none.
  UserPtr find(std::string_view name) const;
  UserPtr default_user() const { return find(kDefaultUser); }
  // Whether a client that says nothing is the default user.
  bool is_open() const noexcept { return is_open_.load(std::memory_order_relaxed); }
  // Whether the default user needs no password, switched on or not.
  bool has_no_password() const noexcept { return has_no_password_.load(std::memory_order_relaxed); }
  // In the order of their names.
  std::vector<UserPtr> list() const;

  // The user whose password it is; null for an unknown user, a wrong password and one that is off.
  // Takes as long for an unknown user as for one with one password.
  UserPtr authenticate(std::string_view name, std::string_view password) const;

  // ACL SETUSER. Errors: the reply; then nothing has changed.
  core::Result<> set(std::string_view name, std::span<const std::string_view> rules);
  // Whether the user existed. REQUIRES: not the default one.
  bool remove(std::string_view name);
  // Replaces all users. Returns a text for each definition with a fault; then nothing has changed.
  std::vector<std::string> replace_all(std::span<const UserDefinition> definitions,
                                       UndefinedDefault undefined);
  // As requirepass: the default user's only password, or none at all.
  void set_default_password(std::string_view password);
  // acl-pubsub-default, for users made from now on.
  void set_channel_default(ChannelDefault channels) { channel_default_.store(channels); }

 private:
  using Map = std::map<std::string, UserPtr, std::less<>>;

  void publish(std::shared_ptr<User> user);
  void announce();
  void take_all(Map fresh);
  std::shared_ptr<User> open_default_user() const;

  const std::unique_ptr<const CommandTable> table_;
  const std::unique_ptr<AccessLog> log_;
  std::atomic<uint64_t> version_{1};
  std::atomic<bool> is_open_{true};
  std::atomic<bool> has_no_password_{true};
  std::atomic<ChannelDefault> channel_default_;
  mutable std::mutex mutex_;  // guards users_, last_id_
  Map users_;
  uint64_t last_id_ = 0;
};

}  // namespace server::acl
