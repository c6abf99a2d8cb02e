// SPDX-License-Identifier: MIT
#include "server/base/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cctype>
#include <filesystem>
#include <set>
#include <system_error>

#include "core/bloom/layouts.h"
#include "core/glob.h"
#include "persistence/files/file.h"
#include "server/base/config/buffer_limits.h"
#include "server/base/config/command_line.h"
#include "server/base/config/directives.h"
#include "server/base/config/option_table.h"
#include "server/base/config/rewrite.h"
#include "server/base/config/suggestion.h"
#include "server/base/config/value.h"
#include "server/base/config/words.h"

namespace server {
namespace {

core::Error set_error(std::string_view name, std::string_view reason) {
  return {config_set_error(name, reason)};
}

bool has_wildcard(std::string_view pattern) {
  return pattern.find_first_of("*?[") != std::string_view::npos;
}

// Returns the reply of CONFIG REWRITE if a start with the file would fail with `error`. The reply
// must be one line.
core::Error next_start_error(const core::Error& error) {
  return {fmt::format("ERR the next start would fail: {}", without_line_ends(trim(error.message)))};
}

// Directives of old redis.conf files that Redis 7.0 accepts and ignores.
constexpr std::array<std::string_view, 3> kForgotten = {
    "list-max-ziplist-entries", "list-max-ziplist-value", "lua-replicate-commands"};

// Returns whether the word is "-" followed by a name. Returns false for a number, an optional
// address such as "-::1", and the value "-".
bool is_dashed_name(const std::string& word) {
  return word.size() >= 2 && word[0] == '-' && std::isalpha(static_cast<unsigned char>(word[1]));
}

std::string effect_warning(std::string_view name, std::string_view feature) {
  return fmt::format("the directive '{}' has no effect: {}", name, feature);
}

// Returns the message without its reply code, which a startup error does not show.
std::string start_up_error(const core::Error& error) {
  return "Fatal error, " + error.message.substr(error.message.find(' ') + 1);
}

}  // namespace

std::string config_set_error(std::string_view option, std::string_view reason) {
  return fmt::format("ERR CONFIG SET failed (possibly related to argument '{}') - {}",
                     without_line_ends(option), without_line_ends(reason));
}

std::string unknown_option_error(std::string_view name) {
  return fmt::format("ERR Unknown option or number of arguments for CONFIG SET - '{}'",
                     without_line_ends(name));
}

struct ConfigHooks {
  Config::Hook apply;
  std::function<void()> undo;
};

Config::Config() : texts_(option_table().size()) {
  const auto& table = option_table();
  for (size_t i = 0; i < table.size(); ++i) {
    Value value{table[i].default_text, 0};
    if (!value.text.empty()) {
      // An option whose default is empty keeps the initial empty value. Its parser is not called,
      // because the parser may reject an empty text.
      auto parsed = parse_single_text(table[i], value.text, "");
      // Only the default of `dir` may be invalid, because the directory in which the server started
      // may have been removed. All other defaults are constants of the table.
      assert(parsed || i == static_cast<size_t>(OptionId::kDir));
      if (parsed) value = std::move(*parsed);
    }
    store(i, value);
  }
}

void Config::store(size_t index, const Value& value) {
  {
    const std::lock_guard lock(mutex_);
    texts_[index] = value.text;
  }
  if (index >= kOptionIdCount) return;
  scalars_[index].store(value.scalar, std::memory_order_relaxed);
  if (index == static_cast<size_t>(OptionId::kClientOutputBufferLimit)) {
    const BufferLimits limits = buffer_limits_of(value.text);
    for (size_t i = 0; i < kClientClassCount; ++i) {
      buffer_limits_[i][0].store(limits[i].hard_bytes, std::memory_order_relaxed);
      buffer_limits_[i][1].store(limits[i].soft_bytes, std::memory_order_relaxed);
      buffer_limits_[i][2].store(limits[i].soft_seconds, std::memory_order_relaxed);
    }
  }
}

void Config::replace(OptionId id, const std::string& text) {
  const auto index = static_cast<size_t>(id);
  assert(option_table()[index].mutability == Mutability::kImmutable);
  auto parsed = parse_single_text(option_table()[index], text, "");
  assert(parsed);
  if (parsed) store(index, *parsed);
}

std::string Config::text_at(size_t index) const {
  const std::lock_guard lock(mutex_);
  return texts_[index];
}

std::string Config::text(OptionId id) const {
  return text_at(static_cast<size_t>(id));
}

uint64_t Config::client_memory_limit_bytes() const noexcept {
  // As in Redis, a limit below kLeastBytes is raised to kLeastBytes. With a lower limit no client
  // could connect to change maxmemory-clients.
  constexpr double kLeastBytes = 128 * 1024;
  const auto setting = static_cast<double>(integer(OptionId::kMaxMemoryClients));
  const double bytes =
      setting >= 0 ? setting : static_cast<double>(max_memory_bytes()) * -setting / 100;
  return bytes == 0 ? 0 : static_cast<uint64_t>(std::max(bytes, kLeastBytes));
}

BufferLimit Config::output_buffer_limit(ClientClass client_class) const noexcept {
  const AtomicLimit& limit = buffer_limits_[static_cast<size_t>(client_class)];
  return {limit[0].load(std::memory_order_relaxed), limit[1].load(std::memory_order_relaxed),
          limit[2].load(std::memory_order_relaxed)};
}

core::bloom::LayoutId BloomDefaults::layout() const noexcept {
  const auto row = static_cast<size_t>(config_.integer(OptionId::kBloomLayout));
  const core::bloom::LayoutId layout = core::bloom::kLayoutRows[row].id;
  return layout == core::bloom::kNativeLayout ? core::bloom::native_layout(native_version(), {})
                                              : layout;
}

bool Config::is_sensitive(std::string_view name) {
  const auto index = find_option(name);
  return index && option_table()[*index].sensitive;
}

void Config::warn(std::string message) {
  const std::lock_guard lock(mutex_);
  warnings_.push_back(std::move(message));
}

std::vector<std::string> Config::take_warnings() {
  const std::lock_guard lock(mutex_);
  return std::exchange(warnings_, {});
}

void Config::on_change(const OptionGroup& group, Hook apply, std::function<void()> undo) {
  if (!undo) undo = [apply] { (void)apply(); };
  const auto hooks =
      std::make_shared<const ConfigHooks>(ConfigHooks{std::move(apply), std::move(undo)});
  const std::lock_guard lock(mutex_);
  for (const OptionId id : group.ids) hooks_[static_cast<size_t>(id)].push_back(hooks);
}

void Config::follow(const OptionGroup& group, const std::function<void()>& apply) {
  apply();
  on_change(group, [apply]() -> core::Result<> {
    apply();
    return {};
  });
}

std::vector<NamedValue> Config::get(std::span<const std::string_view> patterns) const {
  std::vector<NamedValue> found;
  std::set<std::string> seen;
  const auto add = [&](std::string_view name, size_t index) {
    if (seen.insert(lower_case(name)).second) found.emplace_back(std::string(name), text_at(index));
  };
  const auto& table = option_table();
  for (const std::string_view pattern : patterns) {
    if (!has_wildcard(pattern)) {
      // As in Redis, the reply uses the option's name as the client wrote it.
      if (const auto index = find_option(pattern)) add(pattern, *index);
      continue;
    }
    const core::Glob glob(pattern, core::LetterCase::kIgnored);
    for (size_t i = 0; i < table.size(); ++i) {
      if (table[i].hidden) continue;
      if (glob.matches(table[i].name)) add(table[i].name, i);
      for (const auto alias : table[i].aliases) {
        if (glob.matches(alias)) add(alias, i);
      }
    }
  }
  return found;
}

core::Result<bool> Config::may_change(size_t index, const NamedValue& pair, Origin origin) const {
  const auto& [name, value] = pair;
  const Option& option = option_table()[index];
  bool is_fixed = option.mutability == Mutability::kImmutable;
  if (option.mutability == Mutability::kWithHook) {
    const std::lock_guard lock(mutex_);
    is_fixed = hooks_[index].empty();
  }
  if (is_fixed) {
    if (value != text_at(index)) return set_error(name, kImmutableOption);
    return false;
  }
  if (option.mutability == Mutability::kProtected) {
    const std::string allowed = text(OptionId::kEnableProtectedConfigs);
    if (allowed == "no" || (allowed == "local" && origin == Origin::kRemote)) {
      return set_error(name, kProtectedOption);
    }
  }
  return true;
}

core::Result<std::vector<Config::Change>> Config::prepare(std::span<const NamedValue> pairs,
                                                          Origin origin) const {
  // As in Redis, all names are checked before any value.
  std::set<std::string> seen;
  std::vector<const NamedValue*> changed;
  for (const NamedValue& pair : pairs) {
    const std::string& name = pair.first;
    const auto index = find_option(name);
    if (!index) {
      return core::Error{unknown_option_error(name)};
    }
    const auto changes_it = may_change(*index, pair, origin);
    if (!changes_it) return changes_it.error();
    if (*changes_it) changed.push_back(&pair);
    if (!seen.insert(lower_case(name)).second) return set_error(name, "duplicate parameter");
  }
  std::vector<Change> changes;
  for (const NamedValue* const pair : changed) {
    const auto& [name, value] = *pair;
    const size_t index = *find_option(name);
    const Option& option = option_table()[index];
    // In a configuration file, the lines of some options add up to one value. CONFIG SET always
    // replaces the whole value.
    const std::string current = option.accumulates ? std::string() : text_at(index);
    auto parsed = parse_single_text(option, value, current);
    if (!parsed) return set_error(lower_case(name), parsed.error().reason);
    changes.push_back({index, lower_case(name), std::move(*parsed)});
  }
  if (changes.empty()) return changes;
  const auto text_after = [&](std::string_view name) {
    const size_t index = *find_option(name);
    const auto change = std::ranges::find(changes, index, &Change::index);
    return change == changes.end() ? text_at(index) : change->value.text;
  };
  if (const auto fault = combination_fault(text_after); !fault.empty()) {
    return set_error(changes.front().name, fault);
  }
  return changes;
}

core::Result<> Config::run_hooks(const Change& change, std::vector<ConfigHooksPtr>& done) {
  if (change.index >= kOptionIdCount) return {};
  std::vector<ConfigHooksPtr> hooks;
  {
    const std::lock_guard lock(mutex_);
    hooks = hooks_[change.index];
  }
  for (const ConfigHooksPtr& hook : hooks) {
    if (std::ranges::find(done, hook) != done.end()) continue;
    done.push_back(hook);
    if (auto applied = hook->apply(); !applied) {
      return set_error(change.name, applied.error().message);
    }
  }
  return {};
}

core::Result<> Config::commit(const std::vector<Change>& changes) {
  std::vector<Change> old;
  for (const Change& change : changes) {
    const int64_t scalar = change.index < kOptionIdCount ? scalars_[change.index].load() : 0;
    old.push_back({change.index, change.name, {text_at(change.index), scalar}});
    store(change.index, change.value);
  }
  std::vector<ConfigHooksPtr> done;
  for (size_t i = 0; i < changes.size(); ++i) {
    const bool is_same = old[i].value.text == changes[i].value.text;
    if (is_same && !option_table()[changes[i].index].reloads) continue;
    auto applied = run_hooks(changes[i], done);
    if (applied) continue;
    // The options are restored in reverse order, so that an option changed twice by two names gets
    // its first value back.
    for (size_t j = old.size(); j-- > 0;) store(old[j].index, old[j].value);
    for (const ConfigHooksPtr& hook : done) hook->undo();
    return applied;
  }
  return {};
}

core::Result<> Config::set(std::span<const NamedValue> pairs, Origin origin) {
  const std::lock_guard lock(set_mutex_);
  const auto changes = prepare(pairs, origin);
  if (!changes) return changes.error();
  if (auto done = commit(*changes); !done) return done.error();
  for (const Change& change : *changes) warn_if_without_effect(change.index, change.value);
  return {};
}

core::Result<> Config::rewrite(const std::optional<std::vector<std::string>>& user_lines,
                               Extent extent) {
  const std::lock_guard lock(set_mutex_);
  if (file_path_.empty()) return core::Error{std::string(kNoConfigFile)};
  const auto failed = [](const core::Error& error) {
    return core::Error{"ERR Rewriting config file: " +
                       without_line_ends(error.message.substr(error.message.find(' ') + 1))};
  };
  std::error_code error;
  std::string old_text;
  // A missing file is created. If the path is a symbolic link, the file that the link names is
  // written.
  const auto target = std::filesystem::canonical(file_path_, error);
  const std::string path = error ? file_path_ : target.string();
  if (!error) {
    auto read = persistence::read_whole_file(path, kConfigFileLimitBytes);
    if (!read) return failed(read.error());
    old_text = std::move(*read);
  }
  std::vector<std::string> texts;
  {
    const std::lock_guard texts_lock(mutex_);
    texts = texts_;
  }
  // The cluster decides which leader a node follows, so `replicaof` is not written.
  if (ClusterMode{integer(OptionId::kClusterEnabled)} == ClusterMode::kYes) {
    texts[static_cast<size_t>(OptionId::kReplicaOf)].clear();
  }
  // Simulates a start that reads only the file. The command line is left out, because its options
  // will override the file at the next start, as they do now.
  const auto start = [&path](std::string_view text) -> core::Result<std::vector<std::string>> {
    // The process may have changed its directory after the start. The default of `dir` is the
    // directory at the start.
    const std::string& folder = option_row(OptionId::kDir).default_text;
    Config fresh;
    const auto done = fresh.load_directives(read_at_start(text, path, folder));
    if (!done) return next_start_error(done.error());
    return fresh.texts_;
  };
  const auto new_text =
      rewrite_config_file(extent == Extent::kAll ? with_all_options(old_text, texts) : old_text,
                          texts, user_lines, start);
  if (!new_text) return failed(new_text.error());
  if (auto written = persistence::write_file_atomically(path, *new_text); !written) {
    return failed(written.error());
  }
  return {};
}

void Config::warn_if_without_effect(size_t index, const Value& value) {
  const Option& option = option_table()[index];
  // An option without effect causes no warning if its value equals Redis' default.
  if (!option.inert || value.text == option.default_text) return;
  warn(effect_warning(option.name, "it is accepted for the sake of existing files"));
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
    // Ignoring the directive silently would harm an operator who relies on the module.
    warn(effect_warning(name, "modules are not loaded, BF.* is built in"));
    return {};
  }
  const auto module = foreign_module_of(name);
  if (!module.empty() && words.size() >= 2) {
    warn(effect_warning(name, fmt::format("this server has no {}", module)));
    return {};
  }
  constexpr std::array<std::string_view, 4> kKnown = {"include", "loadmodule", "rename-command",
                                                      "user"};
  const bool is_known =
      forgotten || !module.empty() || std::ranges::find(kKnown, name) != kKnown.end();
  const std::string cause = is_known
                                ? std::string(kWrongArgumentCount)
                                : fmt::format("there is no option '{}'{}", name, hint_for(name));
  return fatal_config_error(directive, fmt::format("{}: {}", kBadDirective, cause));
}

core::Result<> Config::apply(const Directive& directive) {
  const auto index = find_option(directive.words[0]);
  if (!index) return apply_other(directive);
  const Option& option = option_table()[*index];
  const Words values = Words(directive.words).subspan(1);
  const bool is_bare = values.empty() && !option.may_be_bare;
  if (is_bare || (values.size() > 1 && !option.multi_argument)) {
    // A value such as "-port" is probably an option that was written with one dash instead of two.
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
