// SPDX-License-Identifier: MIT
#include "server/session/acl/acl_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/number.h"
#include "persistence/files/file.h"
#include "server/base/config/directives.h"
#include "server/base/config/words.h"
#include "server/base/log/log.h"
#include "server/session/acl/user.h"
#include "server/session/acl/users.h"

namespace server::acl {
namespace {

constexpr size_t kFileBytesMax = size_t{16} << 20;
constexpr std::string_view kNothingChanged =
    "WARNING: ACL errors detected, no change to the previously active ACL rules was performed";

// Several spaces in a row give empty rules, which have no effect.
std::vector<UserDefinition> parse_lines(std::string_view text, std::vector<std::string>& faults) {
  std::vector<UserDefinition> definitions;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string line(trim(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty()) continue;
    std::vector<std::string> words = split_at_spaces(line);
    if (words.size() < 2 || words[0] != "user") {
      faults.push_back(
          fmt::format("{} should start with user keyword followed by the username.", number));
      continue;
    }
    std::string name = std::move(words[1]);
    words.erase(words.begin(), words.begin() + 2);
    definitions.push_back({std::move(name), std::move(words), number});
  }
  return definitions;
}

// Quotes a rule or a name if the configuration's parser would change it, for example because it
// contains a backslash.
std::string quote_if_misread(const std::string& word) {
  const auto read = split_words(word);
  const bool is_read_as_it_is = read && read->size() == 1 && read->front() == word;
  return is_read_as_it_is ? word : quote_word(word);
}

// `fault` starts with the number of the invalid line in `user_lines`, counted from 1. Only
// the first error is reported, as it is for all other lines of the configuration.
core::Error user_line_error(std::span<const Directive> user_lines, std::string_view fault) {
  const size_t colon = std::min(fault.find(':'), fault.size());
  const auto number = static_cast<size_t>(core::parse_int64(fault.substr(0, colon)).value_or(1));
  const Directive& line = user_lines[std::clamp(number, size_t{1}, user_lines.size()) - 1];
  return fatal_config_error(line, fmt::format("Error in user declaration '{}':{}", line.words[1],
                                              fault.substr(std::min(colon + 1, fault.size()))));
}

}  // namespace

core::Result<> load_acl_file(Users& users, const std::string& path) {
  const auto text = persistence::read_whole_file({path, "aclfile"}, kFileBytesMax);
  if (!text) {
    return core::Error{fmt::format(
        "Error loading ACLs, {}", text.error().message.substr(text.error().message.find(' ') + 1))};
  }
  std::vector<std::string> faults;
  const auto definitions = parse_lines(*text, faults);
  if (faults.empty()) faults = users.replace_all(definitions, UndefinedDefault::kOpen);
  if (faults.empty()) return {};
  std::string message;
  for (const std::string& fault : faults) message += fmt::format("{}:{} ", path, fault);
  return core::Error{message + std::string(kNothingChanged)};
}

core::Result<> load_users(Users& users, std::span<const Directive> user_lines,
                          const std::string& path) {
  if (!path.empty() && !user_lines.empty()) {
    return core::Error{
        "Configuring users in the configuration file and in an ACL file at the same time is "
        "invalid: define them in either of the two"};
  }
  if (!path.empty()) {
    if (auto loaded = load_acl_file(users, path); !loaded) {
      return core::Error{"Aborting startup because of ACL errors: " + loaded.error().message};
    }
    return {};
  }
  std::vector<UserDefinition> definitions;
  for (const Directive& line : user_lines) {
    const auto& words = line.words;
    definitions.push_back({words[1], {words.begin() + 2, words.end()}, definitions.size() + 1});
  }
  const auto faults = users.replace_all(definitions, UndefinedDefault::kKept);
  if (faults.empty()) return {};
  return user_line_error(user_lines, faults.front());
}

core::Result<> save_acl_file(const Users& users, const std::string& path) {
  std::string text;
  for (const std::string& line : user_lines(users)) text += line + '\n';
  // If the path is a symbolic link, its target is replaced.
  std::error_code error;
  const auto target = std::filesystem::canonical(path, error);
  auto written = persistence::write_file_atomically(error ? path : target.string(), text);
  if (!written) log_warning("The ACL file cannot be written: {}", written.error().message);
  return written;
}

std::vector<std::string> user_config_lines(const Users& users) {
  std::vector<std::string> lines;
  for (const UserPtr& user : users.list()) {
    std::string line = "user " + quote_if_misread(user->name());
    for (const std::string& rule : split_at_spaces(user->describe())) {
      line += ' ' + quote_if_misread(rule);
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

std::vector<std::string> user_lines(const Users& users) {
  std::vector<std::string> lines;
  for (const UserPtr& user : users.list()) {
    lines.push_back(fmt::format("user {} {}", user->name(), user->describe()));
  }
  return lines;
}

}  // namespace server::acl
