// SPDX-License-Identifier: MIT
//
// Implements Config::load and its helpers. The other members are in config.cpp.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <system_error>

#include "persistence/files/file.h"
#include "server/base/config/command_line.h"
#include "server/base/config/config.h"
#include "server/base/config/directives.h"
#include "server/base/config/option_table.h"
#include "server/base/config/suggestion.h"
#include "server/base/config/value.h"
#include "server/base/config/words.h"

namespace server {
namespace {

// Directives of old redis.conf files that Redis 7.0 accepts and ignores.
constexpr std::array<std::string_view, 3> kForgotten = {
    "list-max-ziplist-entries", "list-max-ziplist-value", "lua-replicate-commands"};

// Returns whether the word is "-" followed by a name. Returns false for a number, an optional
// address such as "-::1", and the value "-".
bool is_dashed_name(const std::string& word) {
  return word.size() >= 2 && word[0] == '-' && std::isalpha(static_cast<unsigned char>(word[1]));
}

// Returns the feature that a directive needs and this server lacks. Ignoring such a directive
// silently would harm an operator who relies on it.
std::string_view missing_feature(std::string_view name) {
  if (name == "loadmodule") return "modules are not loaded, BF.* is built in";
  return {};
}

std::string effect_warning(std::string_view name, std::string_view feature) {
  return fmt::format("the directive '{}' has no effect: {}", name, feature);
}

// Returns the message without its reply code, which a startup error does not show.
std::string start_up_error(const core::Error& error) {
  return "Fatal error, " + error.message.substr(error.message.find(' ') + 1);
}

}  // namespace

void Config::warn_if_without_effect(size_t index, const Value& value) {
  const Option& option = option_table()[index];
  // An option without effect causes no warning if its value equals Redis' default.
  if (value.text == option.default_text) return;
  if (const auto feature = missing_feature(option.name); !feature.empty()) {
    warn(effect_warning(option.name, feature));
  } else if (option.inert) {
    warn(effect_warning(option.name, "it is accepted for the sake of existing files"));
  }
}

core::Result<> Config::apply_other(const Directive& directive) {
  const auto& words = directive.words;
  const std::string& name = words[0];
  if (name == "rename-command" && words.size() == 3) {
    other_directives_.renamed_commands.emplace_back(words[1], words[2]);
    other_directives_.rename_lines.push_back(directive);
    return {};
  }
  const bool forgotten = std::find(kForgotten.begin(), kForgotten.end(), name) != kForgotten.end();
  if (forgotten && words.size() == 2) return {};
  if (name == "user" && words.size() >= 2) {
    const auto is_same = [&](const Directive& line) { return line.words[1] == words[1]; };
    if (std::ranges::any_of(other_directives_.users, is_same)) {
      return fatal_config_error(
          directive, fmt::format("Error in user declaration '{}': Duplicate user found. A user can "
                                 "only be defined once in config files",
                                 words[1]));
    }
    other_directives_.users.push_back(directive);
    return {};
  }
  if (name == "loadmodule" && words.size() >= 2) {
    warn(effect_warning(name, missing_feature(name)));
    return {};
  }
  if (const auto module = foreign_module_of(name); !module.empty() && words.size() >= 2) {
    warn(effect_warning(name, fmt::format("this server has no {}", module)));
    return {};
  }
  return fatal_config_error(directive, fmt::format("{}{}", kBadDirective, hint_for(name)));
}

core::Result<> Config::apply(const Directive& directive) {
  const auto index = find_option(directive.words[0]);
  if (!index) return apply_other(directive);
  const Option& option = option_table()[*index];
  const Words values = Words(directive.words).subspan(1);
  const bool is_bare = values.empty() && !option.may_be_bare;
  if (is_bare || (values.size() > 1 && !option.multi_argument)) {
    // A value that looks like an option is probably an option written with one dash.
    const auto dashed = std::ranges::find_if(values, is_dashed_name);
    return fatal_config_error(
        directive, fmt::format("{}{}", kWrongArgumentCount,
                               dashed == values.end() ? "" : hint_for(lower_case(*dashed))));
  }
  const std::string current = text_at(*index);
  // The values of a list option may also be written as one quoted word.
  const auto parsed = values.size() > 1
                          ? parse_value(option, values, current)
                          : parse_single_text(option, values.empty() ? "" : values[0], current);
  if (!parsed) return fatal_config_error(directive, parsed.error().reason);
  store(*index, *parsed);
  warn_if_without_effect(*index, *parsed);
  return {};
}

core::Result<> Config::load_directives(const core::Result<std::vector<Directive>>& directives) {
  if (!directives) return directives.error();
  for (const Directive& directive : *directives) {
    if (auto applied = apply(directive); !applied) return applied.error();
  }
  return {};
}

core::Result<Launch> Config::load(int argc, const char* const* argv, int stdin_descriptor) {
  const std::vector<std::string> arguments(argv + std::min(argc, 1), argv + argc);
  const CommandLine command_line = parse_command_line(arguments);
  if (!command_line.usage_error.empty()) return core::Error{command_line.usage_error};
  const bool reads_options =
      command_line.launch == Launch::kServe || command_line.launch == Launch::kCheckHealth;
  if (!reads_options) return command_line.launch;
  if (!command_line.config_path.empty()) {
    std::error_code error;
    const auto path = std::filesystem::absolute(command_line.config_path, error);
    file_path_ = error ? command_line.config_path : path.string();
    if (auto done = load_directives(read_config_file(file_path_)); !done) return done.error();
  }
  if (command_line.reads_stdin) {
    const std::string source = "standard input";
    const auto text = persistence::read_descriptor(stdin_descriptor, source, kConfigFileLimitBytes);
    if (!text) return core::Error{start_up_error(text.error())};
    if (auto done = load_directives(read_config_text(*text, source)); !done) return done.error();
  }
  const auto options = read_config_text(command_line.options_text, "the command line");
  if (auto done = load_directives(options); !done) return done.error();
  const auto text_of = [this](std::string_view name) { return text_at(*find_option(name)); };
  if (const auto fault = combination_fault(text_of); !fault.empty()) {
    return core::Error{fmt::format("Fatal error, {}", fault)};
  }
  return command_line.launch;
}

}  // namespace server
