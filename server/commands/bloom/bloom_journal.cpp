// SPDX-License-Identifier: MIT
#include "server/commands/bloom/bloom_journal.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/bloom/parameters.h"
#include "core/bloom/valkeybloom_layout.h"
#include "core/bloom/window.h"
#include "core/number.h"
#include "core/release_storage.h"

namespace server {
namespace {

using core::bloom::AddOutcome;
using core::bloom::FilterParameters;
using core::bloom::LayoutId;
using core::bloom::Removal;
using core::bloom::ScalableFilter;
using core::bloom::ValkeyBloomLayout;

void append(std::vector<std::string_view>& words, std::initializer_list<std::string_view> more) {
  for (const std::string_view word : more) words.push_back(word);
}

// The settings of a filter as words; the words are views of this object.
class SettingWords {
 public:
  SettingWords(const ScalableFilter& filter, int64_t expires_at_ms)
      : SettingWords(filter, filter.parameters(), expires_at_ms) {}
  SettingWords(const ScalableFilter& filter, const FilterParameters& parameters,
               int64_t expires_at_ms)
      : parameters_(parameters),
        error_rate_(core::format_double(parameters.error_rate)),
        tightening_ratio_(core::format_double(parameters.layout == ValkeyBloomLayout::kId
                                                  ? tightening_ratio_of(parameters)
                                                  : parameters.tightening_ratio)),
        capacity_(static_cast<int64_t>(parameters.capacity)),
        expansion_(parameters.expansion),
        expires_at_ms_(expires_at_ms),
        expiry_(expires_at_ms),
        window_length_(static_cast<int64_t>(parameters.window.counts_items()
                                                ? parameters.window.length
                                                : parameters.window.length / 1000)),
        generations_(parameters.window.generations),
        window_start_ms_(filter.window() == nullptr ? 0 : filter.window()->newest().start),
        region_bits_(parameters.region_bits) {}

  std::string_view error_rate() const { return error_rate_; }
  std::string_view capacity() const { return capacity_.text(); }
  // All but error rate and capacity, which RESERVE and INSERT write in their own ways.
  void append_options(std::vector<std::string_view>& words) const {
    if (parameters_.is_scaling()) {
      append(words, {"EXPANSION", expansion_.text()});
    } else {
      words.emplace_back("NONSCALING");
    }
    if (parameters_.layout == ValkeyBloomLayout::kId) {
      // As that module writes it, which tells its layout and lets it read the log.
      const auto* const seed = reinterpret_cast<const char*>(parameters_.seed.data());
      return append(words,
                    {"TIGHTENING", tightening_ratio_, "SEED", {seed, parameters_.seed.size()}});
    }
    if (parameters_.tightening_ratio != 0) {
      append(words, {"TIGHTENING", tightening_ratio_});
    }
    append(words, {"LAYOUT", core::bloom::layout_name(parameters_.layout)});
    append_window(words);
    if (expires_at_ms_ != core::keyspace::kNoExpiry) append(words, {"PXAT", expiry_.text()});
    if (parameters_.region_bits != 0) append(words, {"REGIONS", region_bits_.text()});
  }

 private:
  void append_window(std::vector<std::string_view>& words) const {
    const core::bloom::WindowSettings& window = parameters_.window;
    if (!window.is_set()) return;
    append(words, {"WINDOW", window_length_.text()});
    if (window.counts_items()) words.emplace_back("ITEMS");
    append(words, {"GENERATIONS", generations_.text()});
    if (window.refreshes) words.emplace_back("REFRESH");
    if (!window.counts_items()) append(words, {"START", window_start_ms_.text()});
  }

  const FilterParameters parameters_;
  const std::string error_rate_;
  const std::string tightening_ratio_;
  const core::Decimal capacity_;
  const core::Decimal expansion_;
  const int64_t expires_at_ms_;
  const core::Decimal expiry_;
  const core::Decimal window_length_;
  const core::Decimal generations_;
  const core::Decimal window_start_ms_;
  const core::Decimal region_bits_;
};

// Room for the words of one command, reused by all commands of a thread.
std::vector<std::string_view>& words_of_thread() {
  thread_local std::vector<std::string_view> words;
  words.clear();
  return words;
}

void journal_words(const Context& ctx, std::vector<std::string_view>& words) {
  constexpr size_t kKeptWords = 16384;
  ctx.journal(words);
  if (words.capacity() > kKeptWords) core::release_storage(words);
}

// Of the key that was just made.
int64_t expiry_of(const Context& ctx, const KeyRef& key) {
  return ctx.keyspace().find_any(ctx.database(), key)->expires_at_ms();
}

// The words that make a filter.
void journal_made(const Context& ctx, const KeyRef& key, LayoutId layout,
                  std::vector<std::string_view>& words) {
  const int64_t expires_at_ms = expiry_of(ctx, key);
  if (layout != ValkeyBloomLayout::kId || expires_at_ms == core::keyspace::kNoExpiry) {
    return journal_words(ctx, words);
  }
  // That module's words have no time.
  const persistence::Journal::Group group(ctx.environment.journal);
  journal_words(ctx, words);
  ctx.journal({"PEXPIREAT", key.name, Decimal(expires_at_ms).text()});
}

}  // namespace

void journal_reserved(const Context& ctx, const KeyRef& key, const ScalableFilter& filter) {
  if (!ctx.is_journal_active()) return;
  const SettingWords settings(filter, expiry_of(ctx, key));
  auto& words = words_of_thread();
  if (filter.layout() == ValkeyBloomLayout::kId) {
    append(words, {"BF.INSERT", key.name, "ERROR", settings.error_rate(), "CAPACITY",
                   settings.capacity()});
  } else {
    append(words, {"BF.RESERVE", key.name, settings.error_rate(), settings.capacity()});
  }
  settings.append_options(words);
  journal_made(ctx, key, filter.layout(), words);
}

void journal_added(const Context& ctx, const KeyRef& key, const ScalableFilter& filter, bool is_new,
                   Arguments items, std::span<const AddOutcome> outcomes) {
  if (!ctx.is_journal_active()) return;
  const auto added = std::ranges::count_if(outcomes, core::bloom::has_effect);
  if (added == 0) {
    if (is_new) journal_reserved(ctx, key, filter);
    return;
  }
  // BF.ADD, the hot one, needs no room for words.
  if (outcomes.size() == 1 && !is_new) return ctx.journal({"BF.ADD", key.name, items[0]});
  auto& words = words_of_thread();
  const auto append_added = [&] {
    for (size_t i = 0; i < outcomes.size(); ++i) {
      if (has_effect(outcomes[i])) words.push_back(items[i]);
    }
  };
  if (is_new) {
    const SettingWords settings(filter, expiry_of(ctx, key));
    append(words, {"BF.INSERT", key.name, "ERROR", settings.error_rate(), "CAPACITY",
                   settings.capacity()});
    settings.append_options(words);
    words.emplace_back("ITEMS");
    append_added();
    return journal_made(ctx, key, filter.layout(), words);
  }
  append(words, {added == 1 ? "BF.ADD" : "BF.MADD", key.name});
  append_added();
  journal_words(ctx, words);
}

void journal_deleted(const Context& ctx, const KeyRef& key, Arguments items,
                     std::span<const Removal> removals) {
  if (!ctx.is_journal_active()) return;
  auto& words = words_of_thread();
  append(words, {"BF.DEL", key.name});
  for (size_t i = 0; i < removals.size(); ++i) {
    if (removals[i] == Removal::kGone) words.push_back(items[i]);
  }
  journal_words(ctx, words);
}

}  // namespace server
