// SPDX-License-Identifier: MIT
#include "server/commands/bloom/bloom_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "core/bloom/parameters.h"
#include "core/bloom/redisbloom_layout.h"
#include "core/bloom/valkeybloom_layout.h"
#include "core/number.h"
#include "core/plain_number.h"
#include "core/printable.h"
#include "protocol/arguments.h"
#include "server/commands/bloom/window_options.h"
#include "server/commands/strings/ttl_option.h"
#include "server/dispatch/admission.h"

namespace server {
namespace {

using core::bloom::FilterParameters;
using core::bloom::LayoutId;
using core::bloom::LayoutRow;
using core::bloom::RedisBloomLayout;
using core::bloom::ScalingLimit;
using core::bloom::Seed;
using core::bloom::ValkeyBloomLayout;
using protocol::ArgumentCursor;

// The tightening ratio that the configuration has by default.
constexpr double kUsualTightening = 0.5;

constexpr std::string_view kReserveArity = "ERR wrong number of arguments for 'bf.reserve' command";
constexpr std::string_view kPlanArity = "ERR wrong number of arguments for 'bf.plan' command";
constexpr std::string_view kInsertArity = "ERR wrong number of arguments for 'bf.insert' command";

static_assert(core::bloom::kMaxLayerCapacity == 281474976710656 && kExpansionMax == 32768,
              "the error texts name them");

// The settings in a client's command. The configuration provides the settings that the command
// omits.
struct Settings {
  std::optional<double> error_rate;
  std::optional<uint64_t> capacity;
  std::optional<uint32_t> expansion;
  std::optional<double> tightening_ratio;
  std::optional<Seed> seed;
  std::optional<uint64_t> scale_to;
  std::optional<LayoutId> layout;
  std::optional<uint8_t> region_bits;
  bool deletable = false;
  bool non_scaling = false;
  TtlOption ttl;
  WindowWords window;
};

class SettingsParser {
 public:
  // `arity` is the command's error for a missing argument.
  SettingsParser(ArgumentCursor& cursor, std::string_view arity, WindowWords window,
                 CommandOrigin origin = CommandOrigin::kClient)
      : cursor_(cursor), arity_(arity), origin_(origin) {
    settings_.window = window;
  }

  const Settings& settings() const { return settings_; }

  void take_error_rate() {
    const std::string_view text = cursor_.next();
    const auto parsed = core::parse_double(text);
    if (!parsed) cursor_.fail(bad(text_of(kBadErrorRate, kInsertErrorRate), core::rate_hint(text)));
    const double rate = parsed.value_or(0);
    if (cursor_.ok() && !(rate > 0 && rate < 1))
      cursor_.fail(text_of(core::bloom::kErrorRateRange, kInsertErrorRate));
    settings_.error_rate = rate;
  }

  void take_capacity() {
    const std::string_view text = cursor_.next();
    const auto count = core::parse_count(text);
    if (!count) {
      const std::string hint = core::count_hint(text);
      cursor_.fail(bad(text_of("ERR bad capacity", kInsertCapacity),
                       hint.empty() ? std::string(kCountForm) : hint));
    }
    const int64_t capacity = count.value_or(0);
    if (cursor_.ok() && (capacity < 1 || capacity > kCapacityMax)) {
      cursor_.fail(text_of(kCapacityRange, kInsertCapacity));
    }
    settings_.capacity = static_cast<uint64_t>(capacity);
  }

  // Parses one of the options that BF.RESERVE, BF.INSERT and BF.PLAN have in common. Returns false
  // if the next word is no such option.
  bool take_planned_option() {
    if (cursor_.eat_keyword("EXPANSION")) {
      take_expansion();
    } else if (cursor_.eat_keyword("NONSCALING")) {
      settings_.non_scaling = true;
    } else if (cursor_.eat_keyword("TIGHTENING")) {
      take_tightening();
    } else if (cursor_.eat_keyword("DELETABLE")) {
      settings_.deletable = true;
    } else if (cursor_.eat_keyword("REGIONS")) {
      take_region_bits();
    } else if (cursor_.eat_keyword("LAYOUT")) {
      take_layout();
    } else {
      return settings_.window.take(cursor_);
    }
    return true;
  }

  // Parses one of the options that BF.RESERVE and BF.INSERT have in common. Returns false if the
  // next word is no such option.
  bool take_shared_option() {
    if (take_planned_option()) return true;
    if (cursor_.eat_keyword("SEED")) {
      take_seed();
    } else if (cursor_.eat_keyword("VALIDATESCALETO")) {
      take_scale_to();
    } else {
      return eat_ttl(cursor_, settings_.ttl);
    }
    return true;
  }

  void check_growth() {
    if (settings_.non_scaling && settings_.expansion.value_or(0) > 0) {
      cursor_.fail(kCannotExpand);
    }
  }

  bool has_value(std::string_view error) {
    if (cursor_.done()) cursor_.fail(error);
    return cursor_.ok();
  }

  // Sets the error for an unknown option: RedisBloom's text, followed by the word.
  void refuse_word() {
    constexpr size_t kShownBytesMax = 64;
    const std::string word = core::printable(cursor_.rest().front().substr(0, kShownBytesMax));
    cursor_.fail(bad("Unknown argument received", fmt::format("'{}'", word)));
  }

 private:
  static constexpr std::string_view kCountForm = "write an integer, such as 100000";
  static constexpr int64_t kCapacityMax = core::bloom::kMaxLayerCapacity;
  static constexpr int64_t kStoredExpansionMax = std::numeric_limits<uint32_t>::max();

  // BF.RESERVE and BF.PLAN have separate errors for a number out of range and for a word that is
  // not a number. BF.INSERT has one text for both.
  std::string_view text_of(std::string_view text, std::string_view insert_text) const {
    return arity_ == kInsertArity ? insert_text : text;
  }

  // Returns RedisBloom's error text, followed by a hint on the correct syntax.
  std::string_view bad(std::string_view text, const std::string& hint) {
    // If the argument cursor already has an error, that error may be a view of the string
    // `hinted_`, so this string must not change.
    if (hint.empty() || !cursor_.ok()) return text;
    hinted_ = fmt::format("{}: {}", text, hint);
    return hinted_;
  }

  void take_expansion() {
    if (!has_value(text_of(kNoExpansion, kInsertArity))) return;
    const int64_t expansion = cursor_.take_int64(text_of("ERR bad expansion", kInsertExpansion));
    // RedisBloom before Redis 8 and valkey-bloom accept every factor that their files can store.
    const int64_t most = origin_ == CommandOrigin::kClient ? kExpansionMax : kStoredExpansionMax;
    if (cursor_.ok() && (expansion < 0 || expansion > most)) {
      cursor_.fail(text_of("ERR expansion must be in the range [0, 32768]", kInsertExpansion));
    }
    settings_.expansion = static_cast<uint32_t>(expansion);
  }

  void take_tightening() {
    if (!has_value(arity_)) return;
    const double ratio = cursor_.take_double("ERR bad tightening ratio");
    if (cursor_.ok() && !(ratio > 0 && ratio < 1)) {
      cursor_.fail(core::bloom::kTighteningRange);
    }
    settings_.tightening_ratio = ratio;
  }

  void take_layout() {
    if (!has_value(arity_)) return;
    for (const LayoutRow& row : core::bloom::layout_rows()) {
      if (!cursor_.eat_keyword(row.name)) continue;
      settings_.layout = row.id;
      return;
    }
    static const std::string refusal =
        "ERR layout must be " + core::bloom::layout_names(", ", " or ");
    cursor_.fail(refusal);
  }

  void take_seed() {
    if (!has_value(arity_)) return;
    const std::string_view bytes = cursor_.next();
    Seed seed;
    if (bytes.size() != seed.size()) return cursor_.fail("ERR invalid seed");
    std::memcpy(seed.data(), bytes.data(), seed.size());
    settings_.seed = seed;
  }

  void take_region_bits() {
    if (!has_value(arity_)) return;
    constexpr std::string_view kBad = "ERR REGIONS must be in the range [1, 255]";
    static_assert(core::bloom::kMaxRegionBits == 255, "the text names it");
    settings_.region_bits =
        static_cast<uint8_t>(cursor_.take_int64_between(1, core::bloom::kMaxRegionBits, kBad));
  }

  void take_scale_to() {
    if (!has_value(arity_)) return;
    const int64_t capacity =
        cursor_.take_int64_between(0, std::numeric_limits<int64_t>::max(), kBadCapacity);
    if (cursor_.ok() && capacity == 0) cursor_.fail(core::bloom::kCapacityIsZero);
    settings_.scale_to = static_cast<uint64_t>(capacity);
  }

  ArgumentCursor& cursor_;
  const std::string_view arity_;
  const CommandOrigin origin_;
  Settings settings_;
  std::string hinted_;  // error text with a hint; the argument cursor may hold a view of it
};

Seed random_seed() {
  std::random_device device;
  Seed seed;
  for (size_t i = 0; i < seed.size(); i += sizeof(uint32_t)) {
    const uint32_t word = device();
    std::memcpy(seed.data() + i, &word, sizeof(word));
  }
  return seed;
}

// Returns the layout of a filter whose command names no layout. With DELETABLE it is one of the two
// deletable layouts. A journalled command that states both tightening ratio and seed creates a
// valkey-bloom filter, because valkey-bloom's journal states both for each new filter. Any other
// command in the journal of another server creates a RedisBloom filter. All other commands create a
// filter of the configured layout.
LayoutId unnamed_layout(const Config& config, const Settings& settings, CommandOrigin origin) {
  if (settings.deletable) {
    return settings.region_bits ? core::bloom::kRegionLayout : core::bloom::kFingerprintLayout;
  }
  const bool is_spelled_out = settings.tightening_ratio && settings.seed;
  if (origin != CommandOrigin::kClient && is_spelled_out) return ValkeyBloomLayout::kId;
  if (origin == CommandOrigin::kForeignJournal) return RedisBloomLayout::kId;
  return BloomDefaults(config).layout();
}

// Returns whether `layout` is final for a client's command. If not, the filter gets the version of
// the native layout that bf-native-version selects. In a journal, the name "native" means version
// 1.
bool is_exact_layout(std::optional<LayoutId> named, LayoutId layout) {
  if (named) return *named != core::bloom::kNativeLayout;
  return layout != core::bloom::kNativeLayout && layout != core::bloom::kLaneLayout;
}

// Stores only settings that the layout uses, because a filter with default settings needs less
// memory.
FilterParameters merge(const Config& config, const Settings& settings, CommandOrigin origin) {
  const BloomDefaults defaults(config);
  FilterParameters parameters;
  // Only the native layouts support windows, so a command with a window need not name the layout.
  const LayoutId unnamed = settings.window.is_asked() ? core::bloom::kNativeLayout
                                                      : unnamed_layout(config, settings, origin);
  parameters.layout = settings.layout.value_or(unnamed);
  parameters.error_rate = settings.error_rate.value_or(defaults.error_rate());
  // Only error rates from clients are lowered to kErrorRateMax. Journals of valkey-bloom and of
  // RedisBloom before Redis 8 may contain higher rates. These are kept, because the positions of
  // the bits depend on the rate.
  if (origin == CommandOrigin::kClient)
    parameters.error_rate = std::min(parameters.error_rate, kErrorRateMax);
  parameters.capacity = settings.capacity.value_or(static_cast<uint64_t>(defaults.capacity()));
  parameters.expansion = settings.expansion.value_or(static_cast<uint32_t>(defaults.expansion()));
  if (settings.non_scaling) parameters.expansion = 0;
  if (origin == CommandOrigin::kClient && !is_exact_layout(settings.layout, parameters.layout)) {
    parameters.layout = core::bloom::native_layout(defaults.native_version(), parameters);
  }
  const LayoutRow& layout = layout_row(parameters.layout);
  if (layout.takes_tightening && parameters.is_scaling()) {
    const double configured = defaults.tightening_ratio();
    const bool is_usual = configured == kUsualTightening || origin == CommandOrigin::kOwnJournal;
    const double usual = is_usual ? 0 : configured;
    parameters.tightening_ratio = settings.tightening_ratio.value_or(usual);
    if (parameters.tightening_ratio == layout.own_tightening) parameters.tightening_ratio = 0;
  }
  if (layout.takes_region_bits) {
    parameters.region_bits =
        settings.region_bits.value_or(uint8_t{core::bloom::kDefaultRegionBits});
  }
  if (layout.takes_seed) {
    if (settings.seed) {
      parameters.seed = *settings.seed;
    } else if (defaults.random_seed()) {
      parameters.seed = random_seed();
    }
  }
  return parameters;
}

// Options that a deletable filter does not support are rejected. No existing client sends them for
// such a filter.
core::Result<> check_deletable(const Settings& settings, const LayoutRow& layout) {
  if (settings.deletable && settings.window.is_asked()) {
    return core::Error{"ERR a filter with a WINDOW cannot be DELETABLE"};
  }
  if (settings.deletable && !layout.clears_bits) {
    return core::Error{"ERR DELETABLE needs the layout fingerprints or regions"};
  }
  if (settings.region_bits && !layout.takes_region_bits) {
    return core::Error{"ERR REGIONS needs DELETABLE or LAYOUT regions, and no other layout"};
  }
  if (!layout.clears_bits) return {};
  if (settings.seed && !layout.takes_seed) {
    return core::Error{"ERR deletable filters have no SEED"};
  }
  if (settings.tightening_ratio && !layout.takes_tightening) {
    return core::Error{"ERR deletable filters have no TIGHTENING ratio"};
  }
  return {};
}

core::Result<> check_scale_to(const Admission& admission, const FilterParameters& parameters,
                              uint64_t capacity_wanted) {
  if (!parameters.is_scaling()) {
    return core::Error{"ERR cannot use NONSCALING and VALIDATESCALETO options together"};
  }
  const core::bloom::ScalingLimits limits{
      .bytes = std::min(admission.obtainable_memory_bytes(), admission.filter_bytes_max()),
      .layers = admission.filter_layers_max()};
  switch (core::bloom::forecast_scaling(parameters, capacity_wanted, limits).limit) {
    case ScalingLimit::kMemory:
      return core::Error{"ERR provided VALIDATESCALETO causes bloom object to exceed memory limit"};
    case ScalingLimit::kErrorRate:
      return core::Error{"ERR provided VALIDATESCALETO causes false positive to degrade to 0"};
    case ScalingLimit::kLayers:
      return core::Error{
          "ERR provided VALIDATESCALETO causes bloom object to exceed the maximum number of "
          "filters (bf.bloom_max_filters)"};
    case ScalingLimit::kNone:
      break;
  }
  return {};
}

// Returns the filter's parameters: the command's options, completed from the configuration. Errors:
// invalid window options, or options that cannot be used together.
core::Result<FilterParameters> settle(const Config& config, CommandOrigin origin,
                                      const Settings& settings) {
  const auto window = settings.window.settings();
  if (!window) return window.error();
  FilterParameters parameters = merge(config, settings, origin);
  parameters.window = *window;
  const LayoutRow& layout = layout_row(parameters.layout);
  if (window->is_set() && !layout.takes_window) {
    return core::Error{"ERR WINDOW is not for this layout"};
  }
  if (window->is_set() && settings.scale_to) {
    return core::Error{"ERR cannot use WINDOW and VALIDATESCALETO options together"};
  }
  const auto fits = check_deletable(settings, layout);
  if (!fits) return fits.error();
  return parameters;
}

core::Result<FilterRequest> finish(const Context& ctx, const ArgumentCursor& cursor,
                                   const Settings& settings) {
  if (!cursor.ok()) return core::Error{std::string(cursor.error())};
  FilterRequest request;
  if (settings.ttl.has_amount()) {
    const auto at_ms = expiry_ms(ctx, settings.ttl);
    if (!at_ms) return at_ms.error();
    request.expires_at_ms = *at_ms;
  }
  const auto parameters = settle(ctx.config(), ctx.session.origin, settings);
  if (!parameters) return parameters.error();
  request.parameters = *parameters;
  request.window_start_ms = settings.window.start_ms();
  if (settings.scale_to) {
    const auto checked = check_scale_to(ctx.admission(), request.parameters, *settings.scale_to);
    if (!checked) return checked.error();
  }
  return request;
}

// Returns the option for which RedisBloom takes the word in BF.INSERT; empty if there is none.
// RedisBloom looks at some letters only.
std::string_view redisbloom_option(std::string_view word) {
  const auto letter = [&](size_t at) {
    return at < word.size() ? static_cast<char>(word[at] | 0x20) : '\0';
  };
  switch (letter(0)) {
    case 'i':
      return "ITEMS";
    case 'c':
      return "CAPACITY";
    case 'e':
      return letter(1) == 'r' ? "ERROR" : "EXPANSION";
    case 'n':
      return letter(2) == 'c' ? "NOCREATE" : "NONSCALING";
    default:
      return {};
  }
}

// Returns the words of a BF.INSERT with whole options. A client of RedisBloom may have abbreviated
// them, and RedisBloom journals them as they were.
std::vector<std::string_view> spelled_out(Arguments arguments) {
  std::vector<std::string_view> words(arguments.begin(), arguments.end());
  for (size_t i = 2; i < words.size(); ++i) {
    const std::string_view option = redisbloom_option(words[i]);
    if (!option.empty()) words[i] = option;
    if (option == "ITEMS") break;
    // The other options have a value. These include the options of valkey-bloom.
    const bool is_alone = option == "NOCREATE" || option == "NONSCALING";
    if (!is_alone) ++i;
  }
  return words;
}

}  // namespace

FilterParameters default_filter_parameters(const Config& config, CommandOrigin origin) {
  return merge(config, {}, origin);
}

core::Result<FilterRequest> parse_reserve(const Context& ctx) {
  const bool is_own = ctx.session.origin == CommandOrigin::kOwnJournal;
  ArgumentCursor cursor(ctx.args.subspan(2));
  SettingsParser parser(cursor, kReserveArity, {WindowWords::Form::kReserve, is_own},
                        ctx.session.origin);
  parser.take_error_rate();
  // After an invalid error rate the argument cursor is at its end, so take_capacity() fails, too.
  // Only the first error is reported, because the cursor keeps it.
  parser.take_capacity();
  while (!cursor.done()) {
    if (parser.take_shared_option()) continue;
    // A command in RedisBloom's journal may contain unknown words. They are skipped, because
    // RedisBloom ignored them when it executed the command.
    if (ctx.session.origin == CommandOrigin::kForeignJournal) {
      (void)cursor.next();
    } else {
      parser.refuse_word();
    }
  }
  parser.check_growth();
  return finish(ctx, cursor, parser.settings());
}

core::Result<FilterParameters> parse_plan(const Config& config, Arguments arguments) {
  ArgumentCursor cursor(arguments.subspan(1));
  SettingsParser parser(cursor, kPlanArity, {});
  parser.take_error_rate();
  parser.take_capacity();
  while (!cursor.done()) {
    if (!parser.take_planned_option()) parser.refuse_word();
  }
  parser.check_growth();
  if (!cursor.ok()) return core::Error{std::string(cursor.error())};
  return settle(config, CommandOrigin::kClient, parser.settings());
}

core::Result<FilterRequest> parse_insert(const Context& ctx) {
  const bool is_own = ctx.session.origin == CommandOrigin::kOwnJournal;
  std::vector<std::string_view> words;
  if (ctx.session.origin == CommandOrigin::kForeignJournal) words = spelled_out(ctx.args);
  ArgumentCursor cursor(words.empty() ? ctx.args.subspan(2) : Arguments(words).subspan(2));
  SettingsParser parser(cursor, kInsertArity, {WindowWords::Form::kInsert, is_own},
                        ctx.session.origin);
  Arguments items;
  bool no_create = false;
  while (!cursor.done()) {
    if (cursor.eat_keyword("ITEMS")) {
      if (!parser.has_value(kInsertArity)) break;
      items = ctx.args.last(cursor.remaining());
      break;
    }
    if (cursor.eat_keyword("NOCREATE")) {
      no_create = true;
    } else if (cursor.eat_keyword("CAPACITY")) {
      if (parser.has_value(kInsertArity)) parser.take_capacity();
    } else if (cursor.eat_keyword("ERROR")) {
      if (parser.has_value(kInsertArity)) parser.take_error_rate();
    } else if (!parser.take_shared_option()) {
      parser.refuse_word();
    }
  }
  auto request = finish(ctx, cursor, parser.settings());
  // As in RedisBloom, a client's BF.INSERT needs an item. valkey-bloom's journal contains BF.INSERT
  // commands without items, which create empty filters.
  if (request && items.empty() && ctx.session.origin == CommandOrigin::kClient) {
    return core::Error{std::string(kInsertArity)};
  }
  if (request) {
    request->items = items;
    request->no_create = no_create;
  }
  return request;
}

}  // namespace server
