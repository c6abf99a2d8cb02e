// SPDX-License-Identifier: MIT
#include "server/commands/bloom/bloom_journal.h"

#include <algorithm>
#include <boost/container/static_vector.hpp>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/bloom/parameters.h"
#include "core/bloom/redisbloom_layout.h"
#include "core/bloom/valkeybloom_layout.h"
#include "core/bloom/window.h"
#include "core/memory/release_storage.h"
#include "core/number.h"
#include "persistence/filters/filter_chunks.h"
#include "server/commands/bloom/bloom_options.h"

namespace server {
namespace {

using core::bloom::AddOutcome;
using core::bloom::FilterParameters;
using core::bloom::RedisBloomLayout;
using core::bloom::Removal;
using core::bloom::ScalableFilter;
using core::bloom::ValkeyBloomLayout;

void append(std::vector<std::string_view>& words, std::initializer_list<std::string_view> more) {
  for (const std::string_view word : more) words.push_back(word);
}

// Formats the settings of a filter as arguments. The arguments are views into this object.
class SettingWords {
 public:
  explicit SettingWords(const ScalableFilter& filter)
      : parameters_(filter.parameters()),
        error_rate_(core::format_double(parameters_.error_rate)),
        tightening_ratio_(core::format_double(parameters_.layout == ValkeyBloomLayout::kId
                                                  ? tightening_ratio_of(parameters_)
                                                  : parameters_.tightening_ratio)),
        window_start_ms_(filter.window() == nullptr ? 0 : filter.window()->newest().start) {}

  std::string_view error_rate() const { return error_rate_; }
  std::string_view capacity() { return decimal(static_cast<int64_t>(parameters_.capacity)); }
  // Appends all options except error rate and capacity. BF.RESERVE and BF.INSERT have these two in
  // different places.
  void append_options(std::vector<std::string_view>& words, int64_t expires_at_ms) {
    if (parameters_.is_scaling()) {
      append(words, {"EXPANSION", decimal(parameters_.expansion)});
    } else {
      words.emplace_back("NONSCALING");
    }
    if (parameters_.layout == ValkeyBloomLayout::kId) {
      // The seed is written as valkey-bloom writes it, so that valkey-bloom can read the log. The
      // option SEED implies the layout valkey-bloom, so the option LAYOUT is not needed.
      const auto* const seed = reinterpret_cast<const char*>(parameters_.seed.data());
      return append(words,
                    {"TIGHTENING", tightening_ratio_, "SEED", {seed, parameters_.seed.size()}});
    }
    if (parameters_.tightening_ratio != 0) {
      append(words, {"TIGHTENING", tightening_ratio_});
    }
    append(words, {"LAYOUT", core::bloom::layout_name(parameters_.layout)});
    append_window(words);
    if (expires_at_ms != core::keyspace::kNoExpiry) append(words, {"PXAT", decimal(expires_at_ms)});
    if (parameters_.region_bits != 0) append(words, {"REGIONS", decimal(parameters_.region_bits)});
  }

 private:
  void append_window(std::vector<std::string_view>& words) {
    const core::bloom::WindowSettings& window = parameters_.window;
    if (!window.is_set()) return;
    const uint64_t length = window.counts_items() ? window.length : window.length / 1000;
    append(words, {"WINDOW", decimal(static_cast<int64_t>(length))});
    if (window.counts_items()) words.emplace_back("ITEMS");
    append(words, {"GENERATIONS", decimal(window.generations)});
    if (window.refreshes) words.emplace_back("REFRESH");
    if (!window.counts_items()) append(words, {"START", decimal(window_start_ms_)});
  }
  std::string_view decimal(int64_t value) { return decimals_.emplace_back(value).text(); }

  const FilterParameters parameters_;
  const std::string error_rate_;
  const std::string tightening_ratio_;
  const int64_t window_start_ms_;
  boost::container::static_vector<core::Decimal, 8> decimals_;  // never moves its elements
};

// Buffer for the arguments of one command, reused by all commands of a thread.
std::vector<std::string_view>& words_of_thread() {
  thread_local std::vector<std::string_view> words;
  words.clear();
  return words;
}

void journal_words(Context& ctx, std::vector<std::string_view>& words) {
  constexpr size_t kKeptWords = 16384;
  ctx.journal(Arguments(words));
  if (words.capacity() > kKeptWords) core::release_storage(words);
}

// Returns the expiry of the key that was just created.
int64_t expiry_of(const Context& ctx, const KeyRef& key) {
  return ctx.keyspace().find_any(ctx.database(), key)->expires_at_ms();
}

// RedisBloom and valkey-bloom have no option for an expiry, so PEXPIREAT is journalled.
void journal_expiry(Context& ctx, const KeyRef& key) {
  const int64_t expires_at_ms = expiry_of(ctx, key);
  if (expires_at_ms == core::keyspace::kNoExpiry) return;
  ctx.journal({"PEXPIREAT", key.name, Decimal(expires_at_ms).text()});
}

// The items of one command and their outcomes. `count` is the number of items that had an effect.
struct AddedItems {
  Arguments items;
  std::span<const AddOutcome> outcomes;
  int64_t count = 0;

  AddedItems() = default;
  AddedItems(Arguments all, std::span<const AddOutcome> of_all)
      : items(all),
        outcomes(of_all),
        count(std::ranges::count_if(of_all, core::bloom::has_effect)) {}

  void append_to(std::vector<std::string_view>& words) const {
    for (size_t i = 0; i < outcomes.size(); ++i) {
      if (has_effect(outcomes[i])) words.push_back(items[i]);
    }
  }
};

void journal_items(Context& ctx, const KeyRef& key, const AddedItems& added) {
  auto& words = words_of_thread();
  append(words, {added.count == 1 ? "BF.ADD" : "BF.MADD", key.name});
  added.append_to(words);
  journal_words(ctx, words);
}

// If BF.RESERVE or BF.INSERT omits a setting, RedisBloom takes it from its own configuration. The
// releases of RedisBloom also have different limits on rates and capacities. So the filter's header
// is journalled, which contains all settings.
void journal_made_for_redisbloom(Context& ctx, const KeyRef& key, const ScalableFilter& filter,
                                 const AddedItems& added) {
  const std::string header = persistence::encode_empty_chunk_header(filter);
  ctx.journal({"BF.LOADCHUNK", key.name, "1", header});
  if (added.count > 0) journal_items(ctx, key, added);
  journal_expiry(ctx, key);
}

void journal_made_in_one_command(Context& ctx, const KeyRef& key, const ScalableFilter& filter,
                                 const AddedItems& added) {
  const bool is_valkeys = filter.layout() == ValkeyBloomLayout::kId;
  SettingWords settings(filter);
  auto& words = words_of_thread();
  if (is_valkeys || added.count > 0) {
    append(words, {"BF.INSERT", key.name, "ERROR", settings.error_rate(), "CAPACITY",
                   settings.capacity()});
  } else {
    append(words, {"BF.RESERVE", key.name, settings.error_rate(), settings.capacity()});
  }
  settings.append_options(words, expiry_of(ctx, key));
  if (added.count > 0) words.emplace_back("ITEMS");
  added.append_to(words);
  journal_words(ctx, words);
  if (is_valkeys) journal_expiry(ctx, key);
}

// Journals the creation of a filter, its first items and its expiry as one group.
void journal_made(Context& ctx, const KeyRef& key, const ScalableFilter& filter,
                  const AddedItems& added = {}) {
  if (!core::bloom::layout_row(filter.layout()).is_foreign) {
    return journal_made_in_one_command(ctx, key, filter, added);
  }
  const persistence::Journal::Group group(ctx.environment.journal);
  if (filter.layout() == RedisBloomLayout::kId) {
    journal_made_for_redisbloom(ctx, key, filter, added);
  } else {
    journal_made_in_one_command(ctx, key, filter, added);
  }
}

// Returns true if the filter has the layout of RedisBloom or valkey-bloom, and commands of that
// module can recreate the filter exactly. A loaded filter may differ in size from the recreated
// one, because another machine computed its size.
bool has_foreign_words(const ScalableFilter& filter) {
  if (filter.layout() == RedisBloomLayout::kId) return true;
  if (filter.layout() != ValkeyBloomLayout::kId) return false;
  const core::bloom::FilterParameters parameters = filter.parameters();
  // A loaded filter may have settings that no command can recreate: an expansion above the maximum,
  // or a tightening ratio in a filter with NONSCALING.
  if (int64_t{parameters.expansion} > kExpansionMax ||
      (!parameters.is_scaling() && parameters.tightening_ratio != 0)) {
    return false;
  }
  const auto plan = core::bloom::plan_first_layer(parameters);
  const core::bloom::LayerInfo first = filter.layer_info(0);
  return plan && plan->geometry == first.geometry && plan->capacity == first.capacity &&
         plan->error_rate == first.error_rate;
}

}  // namespace

void commit_reserved(Context& ctx, const KeyRef& key, const ScalableFilter& filter) {
  ctx.mark_changed(ctx.database(), key, KeyEvent::kBloomReserve);
  if (ctx.is_journal_active()) journal_made(ctx, key, filter);
}

void commit_made(Context& ctx, const KeyRef& key, const ScalableFilter& filter, Arguments items,
                 std::span<const AddOutcome> outcomes) {
  const AddedItems added(items, outcomes);
  ctx.mark_changed(ctx.database(), key,
                   added.count > 0 ? KeyEvent::kBloomAdd : KeyEvent::kBloomReserve);
  // As in valkey-bloom, the event of the add comes before the event of the filter's creation.
  if (added.count > 0) ctx.notify(KeyEvent::kBloomReserve, ctx.database(), key);
  if (ctx.is_journal_active()) journal_made(ctx, key, filter, added);
}

void journal_added(Context& ctx, const KeyRef& key, Arguments items,
                   std::span<const AddOutcome> outcomes) {
  // A single item is journalled directly, without the argument buffer, because this is faster.
  if (outcomes.size() == 1) return ctx.journal({"BF.ADD", key.name, items[0]});
  journal_items(ctx, key, AddedItems(items, outcomes));
}

void commit_cleared(Context& ctx, const KeyRef& key, const ScalableFilter& filter) {
  ctx.mark_changed(ctx.database(), key, KeyEvent::kBloomClear);
  if (!ctx.is_journal_active()) return;
  if (!has_foreign_words(filter)) {
    announce_own_words(ctx, filter);
    return journal_command(ctx);
  }
  const persistence::Journal::Group group(ctx.environment.journal);
  ctx.journal({"DEL", key.name});
  journal_made(ctx, key, filter);
}

void announce_own_words(const Context& ctx, const ScalableFilter& filter) {
  if (core::bloom::layout_row(filter.layout()).is_foreign) ++ctx.environment.state.own_words;
}

void announce_copy(const Context& ctx, const ScalableFilter& filter) {
  if (filter.layout() == RedisBloomLayout::kId) ++ctx.environment.state.own_words;
}

void commit_deleted(Context& ctx, const KeyRef& key, Arguments items,
                    std::span<const Removal> removals) {
  ctx.mark_changed(ctx.database(), key, KeyEvent::kBloomDelete);
  if (!ctx.is_journal_active()) return;
  auto& words = words_of_thread();
  append(words, {"BF.DEL", key.name});
  for (size_t i = 0; i < removals.size(); ++i) {
    if (removals[i] == Removal::kGone) words.push_back(items[i]);
  }
  journal_words(ctx, words);
}

}  // namespace server
