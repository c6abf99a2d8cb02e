// SPDX-License-Identifier: MIT
//
// Reads any bytes, split at line ends, as rules of a user. If the rules are accepted, the user's
// description must be accepted as rules of a second user, and both users must be equal. Aborts
// otherwise.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "tests/server/session/acl/acl_fixture.h"

namespace {

using server::acl::ChannelDefault;
using server::acl::User;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

void ask(const User& user) {
  for (const server::acl::Selector& selector : user.selectors()) {
    const std::string_view argument = "0";
    (void)selector.commands().allows(server::acl::kSelect, &argument);
    (void)selector.allows_key("some:key", server::acl::kReadWrite);
  }
  (void)user.allows_channel("news.art", false);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr size_t kBytesMax = 4096;
  if (size > kBytesMax) return 0;
  static const server::acl::CommandTable table = server::acl::test_table();
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  User user("u", table, ChannelDefault::kResetChannels);
  if (user.apply_all(split(text, '\n'))) return 0;
  ask(user);
  const std::string description = user.describe();
  User again("u", table, ChannelDefault::kResetChannels);
  if (again.apply_all(split(description, ' '))) std::abort();
  if (again.describe() != description) std::abort();
  if (again.is_unrestricted() != user.is_unrestricted()) std::abort();
  return 0;
}
