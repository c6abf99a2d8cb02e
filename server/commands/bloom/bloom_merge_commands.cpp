// SPDX-License-Identifier: MIT
//
// BF.MERGE unites filters, and BF.CLEAR empties one.
//
// BF.MERGE and BF.CLEAR create a new filter, and then replace the old filter with it. So a command
// that fails changes nothing, and child processes that are saving still see the old filter. The
// reclaimer frees the old filter.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/bloom/filter_union.h"
#include "core/keyspace/reclaimer.h"
#include "core/printable.h"
#include "server/commands/bloom/bloom_access.h"
#include "server/commands/bloom/bloom_journal.h"
#include "server/commands/bloom/bloom_memory.h"
#include "server/commands/families.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

using core::bloom::Overfill;
using core::bloom::ScalableFilter;
using FilterPtr = std::unique_ptr<ScalableFilter>;

// Stores the new filter with the old one's expiry. Returns the old entry, to be freed after
// unlocking.
EntryPtr put_filter(const Context& ctx, const KeyRef& key, const Entry* old, FilterPtr filter) {
  EntryPtr made = Entry::create(key.name);
  made->set_filter(std::move(filter));
  made->touch(ctx.access_clock_s());
  if (old != nullptr) {
    made->set_expires_at_ms(old->expires_at_ms());
    made->set_use_bits(old->use_bits());
  }
  return ctx.keyspace().put(ctx.database(), key, std::move(made));
}

// The filters that BF.MERGE unites, without duplicates. The destination comes first if it exists.
struct MergeInputs {
  Entry* destination = nullptr;
  std::vector<const ScalableFilter*> all;
  std::vector<ScalableFilter*> sources;
};

std::string missing_source_text(std::string_view name) {
  constexpr size_t kShownBytesMax = 128;
  return fmt::format("ERR source '{}' not found", core::printable(name.substr(0, kShownBytesMax)));
}

// If a key holds a string or a source is missing, replies with the error and returns nullopt.
// REQUIRES: the keys' locks.
std::optional<MergeInputs> find_inputs(Context& ctx, int last_key) {
  MergeInputs inputs;
  std::optional<std::string_view> missing;
  for (int i = 1; i <= last_key; ++i) {
    const KeyRef key = ctx.key(static_cast<size_t>(i));
    Entry* const entry = ctx.find(key);
    if (entry == nullptr) {
      if (i > 1 && !missing) missing = key.name;
      continue;
    }
    if (!entry->is_filter()) return ctx.reply.error(kWrongType), std::nullopt;
    ScalableFilter* const filter = &entry->filter();
    if (std::ranges::find(inputs.all, filter) != inputs.all.end()) continue;
    inputs.all.push_back(filter);
    if (i == 1) {
      inputs.destination = entry;
    } else {
      inputs.sources.push_back(filter);
    }
  }
  // Journals of older versions contain merges in which missing sources counted as empty.
  if (missing && ctx.session.origin == CommandOrigin::kClient) {
    return ctx.reply.error(missing_source_text(*missing)), std::nullopt;
  }
  return inputs;
}

// Checks that memory suffices for the union. While a child process may be saving, the sources must
// be copied (see detach_source()), so memory must also suffice for these copies. Changes no filter.
// Errors: the error reply.
core::Result<> check_memory(const Context& ctx, const MergeInputs& inputs) {
  const auto bytes = core::bloom::union_bytes(inputs.all);
  if (!bytes) return bytes.error();
  if (*bytes > ctx.admission().filter_bytes_max()) {
    return core::Error{std::string(kFilterTooLarge)};
  }
  uint64_t needed_bytes = *bytes;
  if (ctx.may_have_child()) {
    for (const ScalableFilter* source : inputs.sources) needed_bytes += source->size_bytes();
  }
  if (!ctx.admission().memory_suffices(needed_bytes)) return ctx.admission().out_of_memory();
  return {};
}

// Returns the union of the inputs. Errors: the error reply.
core::Result<FilterPtr> merge_inputs(const Context& ctx, const MergeInputs& inputs, bool force) {
  if (auto checked = check_memory(ctx, inputs); !checked) return checked.error();
  for (ScalableFilter* source : inputs.sources) {
    if (!detach_source(ctx, *source)) return ctx.admission().out_of_memory();
  }
  // Commands from a journal or a leader are not checked, because the server that executed them
  // first has checked them.
  const bool is_judged = ctx.session.origin == CommandOrigin::kClient && !force;
  return unite(inputs.all, is_judged ? Overfill::kRefused : Overfill::kAllowed);
}

/* BF.MERGE destination source [source ...] [FORCE] */
void merge(Context& ctx) {
  const int last_key = last_key_of(ctx.command->row->keys[1], ctx.args);
  const bool force = static_cast<size_t>(last_key) + 1 < ctx.args.size();
  const KeyRef key = ctx.key(1);
  StripeLock lock = ctx.lock_keys();
  const auto inputs = find_inputs(ctx, last_key);
  if (!inputs) return;
  if (inputs->all.empty()) return ctx.reply.error(kFilterNotFound);
  if (inputs->sources.empty()) return ctx.reply.ok();
  auto merged = merge_inputs(ctx, *inputs, force);
  if (!merged) return ctx.reply.error(merged.error().message);
  announce_own_words(ctx, **merged);
  EntryPtr replaced = put_filter(ctx, key, inputs->destination, std::move(*merged));
  if (replaced == nullptr) ctx.notify(KeyEvent::kNew, ctx.database(), key);
  ctx.commit(key, KeyEvent::kBloomMerge);
  lock.unlock();
  ctx.environment.reclaimer.drop(std::move(replaced));
  ctx.reply.ok();
}

/* BF.CLEAR key */
void clear(Context& ctx) {
  const KeyRef key = ctx.key(1);
  StripeLock lock = ctx.lock(key);
  const auto found = find_filter(ctx, key);
  if (!found) return;
  if (*found == nullptr) return ctx.reply.error(kFilterNotFound);
  // No memory limit is checked, because the new filter takes no more memory than the old one frees.
  FilterPtr empty = create_empty_like(**found);
  if (empty == nullptr) return ctx.reply.error(ctx.admission().memory_refusal());
  const ScalableFilter& emptied = *empty;
  EntryPtr replaced = put_filter(ctx, key, ctx.find(key), std::move(empty));
  commit_cleared(ctx, key, emptied);
  lock.unlock();
  ctx.environment.reclaimer.drop(std::move(replaced));
  ctx.reply.ok();
}

constexpr std::array<KeyRange, 2> kMergeKeys{
    {{.first = 1, .last = 1, .use = kKeyRw | kKeyAccess | kKeyInsert},
     {.first = 2,
      .last = -1,
      .use = kKeyRo | kKeyAccess,
      .note = "FORCE behind the last source is no key",
      .option = "FORCE"}}};

const Command kBloomMergeRows[] = {
    {.name = "bf.merge",
     .arity = -3,
     .flags = kWrite | kDenyOom,
     .keys = kMergeKeys,
     .summary =
         "Adds the items of filters of the same layout and shape to a filter. A missing "
         "filter is created like the first source. Fails if a source is missing, and without "
         "FORCE if the error rate would grow",
     .complexity = "O(N) where N is the number of bytes of all filters",
     .syntax = "destination:key source:key ... [FORCE]",
     .handler = merge},
    {.name = "bf.clear",
     .arity = 2,
     .flags = kWrite | kFast,
     .keys = one_key(kKeyRw | kKeyDelete),
     .summary = "Empties a Bloom filter, which keeps its parameters and its expiry and has one "
                "layer again",
     .complexity = "O(1), the old bits are freed in the background",
     .syntax = "key",
     .handler = clear,
     .journalled = Journalled::kEffects},
};

}  // namespace

const CommandFamily kBloomMergeCommands{
    {.categories = kBloom, .group = "bloom-ext", .since = "1.0.0"}, kBloomMergeRows};

}  // namespace server
