// SPDX-License-Identifier: MIT
#include "server/session/acl/users.h"

#include <fmt/format.h>

#include <array>
#include <cassert>
#include <utility>

#include "server/session/acl/user.h"

namespace server::acl {
namespace {

constexpr std::array<std::string_view, 5> kOpenRules = {"on", "nopass", "allkeys", "allchannels",
                                                        "allcommands"};

std::string reply_of(const RuleFault& fault) {
  if (fault.is_unclosed) {
    return fmt::format("ERR Unmatched parenthesis in acl selector starting at '{}'.", fault.rule);
  }
  return fmt::format("ERR Error in ACL SETUSER modifier '{}': {}", fault.rule, fault.reason);
}

std::string line_text(size_t line, const RuleFault& fault) {
  if (fault.is_unclosed)
    return fmt::format("{}: Unmatched parenthesis in selector definition.", line);
  return fmt::format("{}: Error in applying operation '{}': {}.", line, fault.rule, fault.reason);
}

}  // namespace

Users::Users(CommandTable table)
    : table_(std::move(table)), channel_default_(ChannelDefault::kResetChannels) {
  publish(open_default_user());
}

std::shared_ptr<User> Users::open_default_user() const {
  auto user = std::make_shared<User>(std::string(kDefaultUser), table_, channel_default_);
  [[maybe_unused]] const auto fault = user->apply_all(kOpenRules);
  assert(!fault);
  return user;
}

// Puts the user into the table, and gives it an id. REQUIRES: the caller holds mutex_, except in
// the constructor.
void Users::publish(std::shared_ptr<User> user) {
  UserPtr& place = users_[user->name()];
  user->id = place == nullptr ? ++last_id_ : place->id;
  place = std::move(user);
}

// Increments the version, so that sessions notice the change. REQUIRES: the caller holds mutex_.
void Users::announce() {
  const UserPtr& user = users_.find(kDefaultUser)->second;
  has_no_password_ = user->has_no_password();
  is_open_ = user->has_no_password() && user->is_on();
  ++version_;
}

UserPtr Users::find(std::string_view name) const {
  const std::scoped_lock lock(mutex_);
  const auto found = users_.find(name);
  return found == users_.end() ? nullptr : found->second;
}

std::vector<UserPtr> Users::list() const {
  const std::scoped_lock lock(mutex_);
  std::vector<UserPtr> users;
  for (const auto& [name, user] : users_) users.push_back(user);
  return users;
}

UserPtr Users::authenticate(std::string_view name, std::string_view password) const {
  static const PasswordHash kNobodys{};
  const UserPtr user = find(name);
  const PasswordHash hash = hash_password(password);
  bool is_right = user != nullptr && user->has_password(hash);
  if (user == nullptr || user->passwords().empty()) (void)is_same_hash(kNobodys, hash);
  is_right = user != nullptr && (is_right || user->has_no_password());
  return is_right && user->is_on() ? user : nullptr;
}

core::Result<> Users::set(std::string_view name, std::span<const std::string_view> rules) {
  if (!is_user_name(name)) {
    return core::Error{std::string(kInvalidUserName)};
  }
  const std::scoped_lock lock(mutex_);
  const auto found = users_.find(name);
  auto user = found == users_.end()
                  ? std::make_shared<User>(std::string(name), table_, channel_default_)
                  : std::make_shared<User>(*found->second);
  user->set_channel_default(channel_default_);
  if (const auto fault = user->apply_all(rules)) return core::Error{reply_of(*fault)};
  publish(std::move(user));
  announce();
  return {};
}

bool Users::remove(std::string_view name) {
  assert(name != kDefaultUser);
  const std::scoped_lock lock(mutex_);
  const auto found = users_.find(name);
  if (found == users_.end()) return false;
  users_.erase(found);
  announce();
  return true;
}

std::vector<std::string> Users::replace_all(std::span<const UserDefinition> definitions,
                                            UndefinedDefault undefined) {
  std::vector<std::string> faults;
  Map fresh;
  for (const UserDefinition& definition : definitions) {
    if (!is_user_name(definition.name)) {
      faults.push_back(fmt::format("{}: username '{}' contains invalid characters.",
                                   definition.line, definition.name));
      continue;
    }
    if (fresh.contains(definition.name)) {
      faults.push_back(
          fmt::format("{}: Duplicate user '{}' found.", definition.line, definition.name));
      continue;
    }
    auto user = std::make_shared<User>(definition.name, table_, channel_default_);
    const std::vector<std::string_view> rules(definition.rules.begin(), definition.rules.end());
    if (const auto fault = user->apply_all(rules)) {
      faults.push_back(line_text(definition.line, *fault));
    }
    fresh[definition.name] = std::move(user);
  }
  if (!faults.empty()) return faults;
  const std::scoped_lock lock(mutex_);
  UserPtr& default_user = fresh[std::string(kDefaultUser)];
  if (default_user == nullptr) {
    const bool is_kept = undefined == UndefinedDefault::kKept;
    default_user = is_kept ? users_.find(kDefaultUser)->second : open_default_user();
  }
  take_all(std::move(fresh));
  return {};
}

// A user whose definition did not change keeps its id, so that its connections continue. The
// default user always keeps its id. REQUIRES: the caller holds mutex_.
void Users::take_all(Map fresh) {
  for (auto& [name, user] : fresh) {
    const auto old = users_.find(name);
    if (old != users_.end() && old->second->describe() == user->describe()) {
      user = old->second;
      continue;
    }
    auto changed = std::make_shared<User>(*user);
    changed->id = name == kDefaultUser ? old->second->id : ++last_id_;
    user = std::move(changed);
  }
  users_ = std::move(fresh);
  announce();
}

void Users::set_default_password(std::string_view password) {
  std::vector<std::string> rules{"resetpass"};
  rules.push_back(password.empty() ? "nopass" : fmt::format(">{}", password));
  const std::vector<std::string_view> views(rules.begin(), rules.end());
  [[maybe_unused]] const auto applied = set(kDefaultUser, views);
  assert(applied);
}

}  // namespace server::acl
