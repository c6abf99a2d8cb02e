// SPDX-License-Identifier: MIT
//
// BF.SCANDUMP, BF.LOADCHUNK and BF.LOAD export and import filters, in the formats of RedisBloom and
// valkey-bloom.
//
// New filters are decoded without holding the key's lock. So the commands check whether the key
// exists both before and after decoding.
#include "server/commands/bloom/bloom_chunk_commands.h"

#include <string>

#include "core/bloom/redisbloom_layout.h"
#include "core/bloom/valkeybloom_layout.h"
#include "core/number.h"
#include "persistence/filters/filter_chunks.h"
#include "persistence/filters/valkeybloom_codec.h"
#include "server/commands/bloom/bloom_access.h"
#include "server/commands/bloom/bloom_journal.h"
#include "server/commands/bloom/bloom_memory.h"
#include "server/commands/bloom/bloom_options.h"
#include "server/commands/families.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

using core::bloom::ScalableFilter;
using persistence::ChunkCheck;
using persistence::ChunkOutcome;
using FilterPtr = std::unique_ptr<ScalableFilter>;

// The iterator of the filter's header, without the mark of a window.
constexpr int64_t kHeaderIterator = 1;

/* BF.SCANDUMP key iterator */
void scandump(Context& ctx) {
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto found = find_filter(ctx, key);
  if (!found) return;
  if (*found == nullptr) return ctx.reply.error(kFilterNotFound);
  const auto iterator = core::parse_int64(ctx.args[2]);
  if (!iterator) return ctx.reply.error(kIteratorToRead);
  const ScalableFilter& filter = **found;
  const auto plain = persistence::unmarked_iterator(filter, static_cast<uint64_t>(*iterator));
  if (*iterator > 0 && !plain) return ctx.reply.error(kDumpRotated);
  std::string scratch;
  std::string_view chunk;
  if (*iterator == 0) {
    scratch = persistence::encode_chunk_header(filter);
    chunk = scratch;
  } else if (*iterator > 0) {
    chunk = persistence::chunk_at(filter, *plain - 1, scratch);
  }
  if (!ctx.admission().memory_suffices(chunk.size()))
    return ctx.reply.error(ctx.admission().memory_refusal());
  const int64_t end = *iterator + static_cast<int64_t>(chunk.size());
  const int64_t next = chunk.empty() ? 0 : end;
  const auto first = kHeaderIterator + static_cast<int64_t>(persistence::iterator_mark(filter));
  ctx.reply.array(2);
  ctx.reply.integer(*iterator == 0 ? first : next);
  ctx.reply.bulk(chunk);
}

// Stores a decoded filter under a new key. `commit` commits the new filter.
template <class Commit>
void create_loaded(Context& ctx, FilterPtr loaded, std::string_view if_taken, Commit&& commit) {
  const KeyRef key = ctx.key(1);
  // `loaded` outlives the lock, so a filter that cannot be stored is freed after unlocking.
  const auto lock = ctx.lock(key);
  const auto found = find_filter(ctx, key);
  if (!found) return;
  if (*found != nullptr) return ctx.reply.error(if_taken);
  const ScalableFilter& filter = *loaded;
  ctx.insert(key).set_filter(std::move(loaded));
  commit(key, filter);
  ctx.reply.ok();
}

bool has_redisbloom_layout(const ScalableFilter& filter) {
  return filter.layout() == core::bloom::RedisBloomLayout::kId;
}

// Returns whether the iterator is that of the filter's header. A header needs no mark, because it
// contains the ordinal of the newest generation.
bool is_header_iterator(const ScalableFilter& filter, int64_t iterator) {
  return iterator == kHeaderIterator ||
         persistence::unmarked_iterator(filter, static_cast<uint64_t>(iterator)) == kHeaderIterator;
}

void load_header(Context& ctx, int64_t iterator) {
  const LoadBudget budget(ctx.admission());
  auto filter = persistence::decode_chunk_header(ctx.args[3], budget);
  if (!filter) {
    const bool fits = filter.error().code != core::ErrorCode::kOutOfMemory;
    return ctx.reply.error(fits ? kBadData : budget.refusal());
  }
  if (!is_header_iterator(**filter, iterator)) return ctx.reply.error(kBadData);
  if (!budget.admits(**filter)) return ctx.reply.error(kFilterTooLarge);
  create_loaded(ctx, std::move(*filter), kBadData, [&](const KeyRef& key, auto& loaded) {
    // A replicated BF.RESERVE arrives as the header of an empty filter. So the header of an empty
    // filter publishes the keyspace event of BF.RESERVE.
    const bool is_reservation = loaded.item_count() == 0;
    const KeyEvent event = is_reservation ? KeyEvent::kBloomReserve : KeyEvent::kBloomLoad;
    const std::string_view iterator_word = "1";
    if (!has_redisbloom_layout(loaded)) {
      announce_own_words(ctx, loaded);
      return ctx.commit(key, event, {"BF.LOADCHUNK", key.name, iterator_word, ctx.args[3]});
    }
    // The header has the newest format, because current releases of RedisBloom reject the older
    // ones.
    const std::string header = persistence::encode_chunk_header(loaded);
    ctx.commit(key, event, {"BF.LOADCHUNK", key.name, iterator_word, header});
  });
}

void load_into(Context& ctx, ScalableFilter& filter, int64_t iterator) {
  const std::string_view chunk = ctx.args[3];
  if (iterator <= 0 || static_cast<uint64_t>(iterator) < chunk.size()) {
    return ctx.reply.error(kBadData);
  }
  const bool is_journalled = ctx.session.origin == CommandOrigin::kOwnJournal;
  auto plain = std::optional(static_cast<uint64_t>(iterator));
  // A journal also contains the rotations, in their order, and its iterators have no marks.
  if (!is_journalled) plain = persistence::unmarked_iterator(filter, *plain);
  if (!plain) return ctx.reply.error(kCopyRotated);
  // If the iterator is not greater than the size of the chunk, the chunk's position wraps around.
  // No filter has such a position, so load_chunk() fails.
  const uint64_t position = *plain - chunk.size() - 1;
  const auto check = is_journalled ? ChunkCheck::kNone : ChunkCheck::kOfTheWhole;
  switch (persistence::load_chunk(filter, position, chunk, check)) {
    case ChunkOutcome::kPastTheEnd:
      return ctx.reply.error(kNoLayer);
    case ChunkOutcome::kCrossesLayers:
      return ctx.reply.error(kChunkTooLong);
    case ChunkOutcome::kUnsound:
      return ctx.reply.error(kBadData);
    case ChunkOutcome::kLoaded:
      break;
  }
  if (!chunk.empty()) {
    if (!has_redisbloom_layout(filter)) announce_own_words(ctx, filter);
    const KeyRef key = ctx.key(1);
    const core::Decimal iterator_word(static_cast<int64_t>(*plain));
    ctx.commit(key, KeyEvent::kBloomLoad, {"BF.LOADCHUNK", key.name, iterator_word.text(), chunk});
  }
  ctx.reply.ok();
}

/* BF.LOADCHUNK key iterator data */
void loadchunk(Context& ctx) {
  const auto iterator = core::parse_int64(ctx.args[2]);
  if (!iterator) return ctx.reply.error(kIteratorToWrite);
  {
    const KeyRef key = ctx.key(1);
    const auto lock = ctx.lock(key);
    const auto found = find_filter(ctx, key);
    if (!found) return;
    if (*found != nullptr) return load_into(ctx, **found, *iterator);
  }
  if (*iterator % static_cast<int64_t>(persistence::kIteratorMarkUnit) != kHeaderIterator) {
    return ctx.reply.error(kFilterNotFound);
  }
  load_header(ctx, *iterator);
}

/* BF.LOAD key data */
void load(Context& ctx) {
  {
    const KeyRef key = ctx.key(1);
    const auto lock = ctx.lock(key);
    const auto found = find_filter(ctx, key);
    if (!found) return;
    if (*found != nullptr) return ctx.reply.error(kBusyKey);
  }
  const LoadBudget budget(ctx.admission());
  auto filter = persistence::decode_load_payload(ctx.args[2], budget);
  if (!filter && filter.error().code == core::ErrorCode::kOutOfMemory) {
    return ctx.reply.error(budget.refusal());
  }
  if (!filter) return ctx.reply.error(filter.error().message);
  if (!budget.admits(**filter)) return ctx.reply.error(kFilterTooLarge);
  create_loaded(ctx, std::move(*filter), kBusyKey,
                [&ctx](const KeyRef& key, const auto&) { ctx.commit(key, KeyEvent::kBloomLoad); });
}

const Command kBloomChunkRows[] = {
    {.name = "bf.scandump",
     .arity = 3,
     .flags = kReadOnly,
     .keys = one_key(kKeyRo | kKeyAccess),
     .summary = "Returns a Bloom filter in pieces, the header first",
     .complexity = "O(1) for each call plus the bytes of the chunk",
     .syntax = "key iterator",
     .handler = scandump},
    {.name = "bf.loadchunk",
     .arity = 4,
     .flags = kWrite | kDenyOom,
     .keys = one_key(kKeyRw | kKeyAccess | kKeyUpdate),
     .summary = "Loads one of the pieces that BF.SCANDUMP returned",
     .complexity = "O(N) where N is the bytes of the chunk",
     .syntax = "key iterator data",
     .handler = loadchunk,
     .journalled = Journalled::kEffects},
    {.name = "bf.load",
     .arity = 3,
     .flags = kWrite | kDenyOom,
     .keys = one_key(kKeyRw | kKeyInsert),
     .summary = "Creates a Bloom filter from the form in which valkey-bloom journals it",
     .complexity = "O(N) where N is the bytes of the payload",
     .syntax = "key data",
     .handler = load},
};

}  // namespace

bool load_journalled_as_insert(Context& ctx, const FilterRequest& request) {
  if (ctx.session.origin != CommandOrigin::kForeignJournal || request.items.size() != 1 ||
      request.parameters.layout != core::bloom::ValkeyBloomLayout::kId) {
    return false;
  }
  auto filter = persistence::decode_load_payload(request.items[0], ctx.admission().memory());
  if (!filter) return false;
  const core::bloom::FilterParameters& loaded = (*filter)->parameters();
  const core::bloom::FilterParameters& asked = request.parameters;
  if (loaded.layout != asked.layout || loaded.seed != asked.seed ||
      loaded.expansion != asked.expansion || loaded.error_rate != asked.error_rate) {
    return false;
  }
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  if (ctx.find(key) != nullptr) return false;
  ctx.insert(key).set_filter(std::move(*filter));
  ctx.commit(key, KeyEvent::kBloomLoad, {"BF.LOAD", key.name, request.items[0]});
  ctx.reply.array(1);
  ctx.reply.boolean(true);
  return true;
}

const CommandFamily kBloomChunkCommands{{.categories = kBloom, .group = "bf", .since = "1.0.0"},
                                        kBloomChunkRows};

}  // namespace server
