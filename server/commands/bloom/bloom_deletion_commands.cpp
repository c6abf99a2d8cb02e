// SPDX-License-Identifier: MIT
//
// BF.DEL: removes items from filters that were reserved DELETABLE.
//
// Each BF.DEL may undo one add that answered 1. An item that was added this way and not deleted is
// never lost. Deleting an item that was never added is a client error, and may remove another item.
// The concept DeletableLayout in core/bloom/layouts.h requires this behavior of a layout.
#include <algorithm>

#include "core/bloom/scalable_filter.h"
#include "server/commands/bloom/bloom_access.h"
#include "server/commands/bloom/bloom_journal.h"
#include "server/commands/bloom/item_batch.h"
#include "server/commands/families.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

using core::bloom::Removal;
using core::bloom::ScalableFilter;

constexpr std::string_view kNotDeletable =
    "ERR items cannot be deleted from this filter, which was not reserved DELETABLE";

int64_t answer_of(Removal removal) {
  if (removal == Removal::kGone) return 1;
  return removal == Removal::kAbsent ? 0 : -1;
}

/* BF.DEL key item [item ...] */
void delete_items(Context& ctx) {
  const Arguments items = ctx.args.subspan(2);
  const KeyRef key = ctx.key(1);
  EarlyBatch early(ctx, items);
  std::span<const Removal> removals;
  {
    const auto lock = ctx.lock(key);
    const auto found = find_filter(ctx, key);
    if (!found) return;
    if (ScalableFilter* const filter = *found) {
      if (!layout_row(filter->layout()).clears_bits) return ctx.reply.error(kNotDeletable);
      ItemBatch& batch = early.for_filter(*filter);
      const auto outcomes = batch.removals();
      filter->remove_many(batch.hashes(), outcomes);
      removals = outcomes;
      if (std::ranges::find(removals, Removal::kGone) != removals.end()) {
        commit_deleted(ctx, key, items, removals);
      }
      free_dropped(ctx, *filter);
    }
  }
  ctx.reply.array(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    ctx.reply.integer(removals.empty() ? 0 : answer_of(removals[i]));
  }
}

const Command kBloomDeletionRows[] = {
    {.name = "bf.del",
     .arity = -3,
     .flags = kWrite,
     .keys = one_key(kKeyRw | kKeyDelete),
     .categories = kBloom,
     .group = "bloom-ext",
     .since = "1.0.0",
     .summary = "Deletes items from a deletable Bloom filter. For each it returns 1 (deleted), 0 "
                "(missing) or -1 (kept: it may be another item)",
     .complexity = "O(N*K*L) where N is the number of items, K the number of hash bits and L the "
                   "number of layers",
     .syntax = "key item ...",
     .handler = delete_items,
     .prefetch = prefetch_items,
     .journalled = Journalled::kEffects},
};

}  // namespace

const CommandFamily kBloomDeletionCommands{{}, kBloomDeletionRows};

}  // namespace server
