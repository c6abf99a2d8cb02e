// SPDX-License-Identifier: MIT
#include "server/base/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <filesystem>
#include <set>
#include <system_error>

#include "core/bloom/layouts.h"
#include "core/glob.h"
#include "persistence/files/file.h"
#include "server/base/config/buffer_limits.h"
#include "server/base/config/directives.h"
#include "server/base/config/option_table.h"
#include "server/base/config/rewrite.h"
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

// Converts the error with which the next start would fail into an error reply, which must be one
// line.
core::Error next_start_error(const core::Error& error) {
  return {fmt::format("ERR the next start would fail: {}", without_line_ends(trim(error.message)))};
}

// Returns the lower-case form of the name or alias that the caller used.
std::string spelled_name(const std::string& name) {
  return lower_case(name);
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

std::vector<std::string> ListenOptions::bind_addresses() const {
  return split_at_spaces(config_.text(OptionId::kBind));
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
  return core::bloom::kLayoutRows[row].id;
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
    if (!seen.insert(spelled_name(name)).second) return set_error(name, "duplicate parameter");
  }
  std::vector<Change> changes;
  for (const NamedValue* const pair : changed) {
    const auto& [name, value] = *pair;
    const size_t index = *find_option(name);
    const Option& option = option_table()[index];
    // CONFIG SET replaces the whole value of an option, even if the option's lines accumulate in a
    // file.
    const std::string current = option.accumulates ? std::string() : text_at(index);
    auto parsed = parse_single_text(option, value, current);
    if (!parsed) return set_error(spelled_name(name), parsed.error().reason);
    changes.push_back({index, spelled_name(name), std::move(*parsed)});
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
  // A start from the file alone is simulated, without the command line. The options of the command
  // line will override the file at the next start, as they do now.
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

}  // namespace server
