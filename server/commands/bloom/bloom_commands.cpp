// SPDX-License-Identifier: MIT
//
// The BF.* commands for scalable Bloom filters, with the replies and error texts of RedisBloom.

#include <algorithm>
#include <string>

#include "core/bloom/parameters.h"
#include "core/bloom/scalable_filter.h"
#include "server/commands/bloom/bloom_access.h"
#include "server/commands/bloom/bloom_items.h"
#include "server/commands/bloom/bloom_journal.h"
#include "server/commands/bloom/bloom_memory.h"
#include "server/commands/bloom/bloom_options.h"
#include "server/commands/families.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

using core::bloom::AddOutcome;
using core::bloom::ItemHash;
using core::bloom::ScalableFilter;

// Publishes the expiry of a filter that was created for `request`. Must be called after the
// filter's other events. REQUIRES: the key's exclusive lock.
void notify_key_expires(const Context& ctx, const KeyRef& key, const FilterRequest& request) {
  if (request.expires_at_ms == core::keyspace::kNoExpiry) return;
  ctx.notify(KeyEvent::kExpire, ctx.database(), key);
}

/* BF.RESERVE key error_rate capacity [EXPANSION expansion | NONSCALING] [TIGHTENING ratio]
   [WINDOW length [ITEMS]] [GENERATIONS generations] [REFRESH]
   [SEED seed] [VALIDATESCALETO capacity] [LAYOUT layout] [DELETABLE] [REGIONS bits]
   [EX s | PX ms | EXAT unix-s | PXAT unix-ms] */
void reserve(Context& ctx) {
  const auto request = parse_reserve(ctx);
  if (!request) return ctx.reply.error(request.error().message);
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto found = find_filter(ctx, key);
  if (!found) return;
  if (*found != nullptr) return ctx.reply.error("ERR item exists");
  const ScalableFilter* const filter = make_filter(ctx, key, *request);
  if (filter == nullptr) return;
  commit_reserved(ctx, key, *filter);
  notify_key_expires(ctx, key, *request);
  ctx.reply.ok();
}

// With several I/O threads, an add first looks the items up under the shared lock. Most items of a
// stream with repeats are present and need no exclusive lock. For absent items the lookup has
// fetched the cache lines, so the exclusive lock is held only briefly.
bool checks_before_locking(const Context& ctx) {
  return ctx.config().io_thread_count() > 1 && !ctx.in_exec &&
         ctx.session.origin == CommandOrigin::kClient;
}

// Returns the key's entry, so that the items can be looked up before they are added. Returns null
// if the key holds no filter, or a filter with REFRESH. REQUIRES: the key's shared lock.
Entry* peek_filter(const Context& ctx, const KeyRef& key) {
  Entry* entry = ctx.keyspace().find(ctx.database(), key, ctx.expiry_now_ms);
  const bool serves = entry != nullptr && entry->is_filter() && !is_refreshing(entry->filter());
  return serves ? entry : nullptr;
}

// The result of a lookup before an add.
struct Look {
  static constexpr uint64_t kNever = ~uint64_t{0};

  bool finds_all = false;
  // The stripe's write count at the lookup. While it stays the same, the add need not look the
  // items up again. It is kNever for a filter with a window, because the lookup may ignore
  // generations. It is also kNever for one layer, in which an add looks up and sets bits at once.
  uint64_t write_count = kNever;

  // Returns whether the filter is unchanged since the lookup. REQUIRES: the key's lock.
  bool is_valid(const Context& ctx, const KeyRef& key) const {
    return write_count != kNever && write_count == ctx.keyspace().write_count(key);
  }
};

// Returns the result of a lookup. If all items were found, records the access to the key, because
// the command does not look the key up again. REQUIRES: the key's shared lock.
//
// end_look() and the look_up() of BF.ADD are always inlined: calls cost BF.ADD three percent of its
// processor time.
[[gnu::always_inline]] inline Look end_look(const Context& ctx, const KeyRef& key, Entry& entry,
                                            bool finds_all) {
  if (finds_all && !ctx.client.no_touch) record_access(ctx, entry);
  const ScalableFilter& filter = entry.filter();
  if (filter.window() != nullptr || filter.layer_count() == 1) return {finds_all};
  return {finds_all, ctx.keyspace().write_count(key)};
}

[[gnu::always_inline]] inline Look look_up(const Context& ctx, const KeyRef& key,
                                           const EarlyHash& hash) {
  const auto lock = ctx.keyspace().lock_shared(key);
  Entry* const entry = peek_filter(ctx, key);
  if (entry == nullptr) return {};
  const ScalableFilter& filter = entry->filter();
  return end_look(ctx, key, *entry,
                  filter.may_contain(hash.for_filter(filter), window_time(ctx, filter)));
}

Look look_up(const Context& ctx, const KeyRef& key, EarlyBatch& early) {
  const auto lock = ctx.keyspace().lock_shared(key);
  Entry* const entry = peek_filter(ctx, key);
  if (entry == nullptr) return {};
  const ScalableFilter& filter = entry->filter();
  ItemBatch& batch = early.for_filter(filter);
  const auto found = batch.found();
  filter.may_contain_many(batch.hashes(), found, window_time(ctx, filter));
  return end_look(ctx, key, *entry, std::ranges::find(found, false) == found.end());
}

/* BF.ADD key item */
void add(Context& ctx) {
  const KeyRef key = ctx.key(1);
  const EarlyHash hash(ctx);
  const Look look = checks_before_locking(ctx) ? look_up(ctx, key, hash) : Look{};
  if (look.finds_all) return ctx.reply.boolean(false);
  const auto lock = ctx.lock(key);
  const auto found = find_filter(ctx, key);
  if (!found) return;
  ScalableFilter* filter = *found;
  const bool is_new = filter == nullptr;
  if (is_new) {
    filter = make_default_filter(ctx, key);
    if (filter == nullptr) return;
  } else if (!prepare_add(ctx, key, *filter)) {
    return;
  }
  const FilterBudget budget(ctx, *filter);
  const ItemHash item = hash.for_filter(*filter);
  // The journal of this server lists only items that changed the filter. So replay increases the
  // item count for each of them, even if all bits of the item are already set.
  const bool is_new_item =
      ctx.session.origin == CommandOrigin::kOwnJournal || (!is_new && look.is_valid(ctx, key));
  const AddOutcome outcome =
      is_new_item ? filter->add_new(item, budget) : filter->add(item, budget);
  if (is_new || has_effect(outcome)) {
    commit_added(ctx, key, *filter, is_new, ctx.args.subspan(2), {&outcome, 1});
  }
  finish_add(ctx, *filter);
  reply_outcome(ctx, outcome, budget);
}

// Implements the common part of BF.MADD and BF.INSERT. A missing filter is created from `request`,
// or with the defaults if `request` is null.
void add_items(Context& ctx, Arguments items, const FilterRequest* request) {
  const KeyRef key = ctx.key(1);
  EarlyBatch early(ctx, items);
  const Look look =
      checks_before_locking(ctx) && !items.empty() ? look_up(ctx, key, early) : Look{};
  if (look.finds_all) {
    ctx.reply.array(items.size());
    for (size_t i = 0; i < items.size(); ++i) ctx.reply.boolean(false);
    return;
  }
  auto lock = ctx.lock(key);
  const auto found = find_filter(ctx, key);
  if (!found) return;
  ScalableFilter* filter = *found;
  const bool is_new = filter == nullptr;
  if (is_new && request != nullptr && request->no_create) return ctx.reply.error(kFilterNotFound);
  if (is_new) {
    filter = request != nullptr ? make_filter(ctx, key, *request) : make_default_filter(ctx, key);
    if (filter == nullptr) return;
  } else if (!prepare_add(ctx, key, *filter)) {
    return;
  }
  const FilterBudget budget(ctx, *filter);
  ItemBatch& batch = early.for_filter(*filter);
  const bool is_looked_up = !is_new && look.is_valid(ctx, key);
  const auto known = is_looked_up ? batch.found() : std::span<const bool>{};
  const auto outcomes = add_batch(ctx, *filter, batch, budget, known);
  if (is_new || std::ranges::any_of(outcomes, core::bloom::has_effect)) {
    commit_added(ctx, key, *filter, is_new, items, outcomes);
    if (is_new && request != nullptr) notify_key_expires(ctx, key, *request);
  }
  finish_add(ctx, *filter);
  lock.unlock();
  ctx.reply.array(outcomes.size());
  for (const AddOutcome outcome : outcomes) reply_outcome(ctx, outcome, budget);
}

/* BF.MADD key item [item ...] */
void madd(Context& ctx) {
  add_items(ctx, ctx.args.subspan(2), nullptr);
}

/* BF.INSERT key [CAPACITY capacity] [ERROR error] [EXPANSION expansion] [NOCREATE] [NONSCALING]
   [WINDOW length [ITEMS]] [GENERATIONS generations] [REFRESH]
   [TIGHTENING ratio] [SEED seed] [VALIDATESCALETO capacity] [LAYOUT layout]
   [DELETABLE] [REGIONS bits]
   [EX s | PX ms | EXAT unix-s | PXAT unix-ms] ITEMS item [item ...] */
void insert(Context& ctx) {
  const auto request = parse_insert(ctx);
  if (!request) return ctx.reply.error(request.error().message);
  if (load_journalled_as_insert(ctx, *request)) return;
  add_items(ctx, request->items, &*request);
}

/* BF.EXISTS key item */
void filter_exists(Context& ctx) {
  const KeyRef key = ctx.key(1);
  const EarlyHash hash(ctx);
  const auto lock = ctx.lock(key);
  const ScalableFilter* filter = find_filter_or_nothing(ctx, key);
  if (filter == nullptr) return reply_nothing_found(ctx, answers_nil(ctx, key));
  ctx.reply.boolean(filter->may_contain(hash.for_filter(*filter), window_time(ctx, *filter)));
}

/* BF.MEXISTS key item [item ...] */
void mexists(Context& ctx) {
  const Arguments items = ctx.args.subspan(2);
  const KeyRef key = ctx.key(1);
  EarlyBatch early(ctx, items);
  std::span<const bool> answers;
  bool is_nil = false;
  {
    const auto lock = ctx.lock(key);
    if (const ScalableFilter* filter = find_filter_or_nothing(ctx, key)) {
      ItemBatch& batch = early.for_filter(*filter);
      const auto found = batch.found();
      filter->may_contain_many(batch.hashes(), found, window_time(ctx, *filter));
      answers = found;
    } else {
      is_nil = answers_nil(ctx, key);
    }
  }
  ctx.reply.array(items.size());
  if (answers.empty()) {
    for (size_t i = 0; i < items.size(); ++i) reply_nothing_found(ctx, is_nil);
  }
  for (const bool answer : answers) ctx.reply.boolean(answer);
}

struct InfoField {
  std::string_view word;                      // argument of BF.INFO that selects this field
  std::string_view label;                     // name of the field in the reply
  uint64_t (ScalableFilter::*value)() const;  // null for the expansion, which may be a null
};

// The order of the fields is that of RedisBloom's reply, because some clients read fields by
// position.
constexpr InfoField kInfoFields[] = {
    {"CAPACITY", "Capacity", &ScalableFilter::capacity},
    {"SIZE", "Size", &ScalableFilter::size_bytes},
    {"FILTERS", "Number of filters", &ScalableFilter::layer_count},
    {"ITEMS", "Number of items inserted", &ScalableFilter::item_count},
    {"EXPANSION", "Expansion rate", nullptr},
};

void reply_info_value(protocol::ReplyWriter& reply, const ScalableFilter& filter,
                      const InfoField& field) {
  if (field.value != nullptr) return reply.integer(static_cast<int64_t>((filter.*field.value)()));
  filter.is_scaling() ? reply.integer(filter.parameters().expansion) : reply.null();
}

void reply_info_field(Context& ctx, const ScalableFilter& filter, std::string_view word) {
  const auto* field = std::ranges::find_if(kInfoFields, [&](const InfoField& candidate) {
    return protocol::equals_ignore_case(candidate.word, word);
  });
  if (field == std::end(kInfoFields)) return ctx.reply.error("Invalid information value");
  // BF.INFO with a field name replies with a map of one pair in RESP3. In RESP2 the reply is an
  // array with only the value.
  if (ctx.reply.version() == protocol::RespVersion::kResp3) {
    ctx.reply.map(1);
    ctx.reply.simple(field->label);
  } else {
    ctx.reply.array(1);
  }
  reply_info_value(ctx.reply, filter, *field);
}

/* BF.INFO key [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION] */
void info(Context& ctx) {
  if (ctx.args.size() > 3) {
    return ctx.reply.error(protocol::wrong_arity("bf.info"));
  }
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto found = find_filter(ctx, key);
  if (!found) return;
  if (*found == nullptr) return ctx.reply.error(kFilterNotFound);
  const ScalableFilter& filter = **found;
  if (ctx.args.size() == 3) return reply_info_field(ctx, filter, ctx.args[2]);
  ctx.reply.map(std::size(kInfoFields));
  for (const InfoField& field : kInfoFields) {
    ctx.reply.simple(field.label);
    reply_info_value(ctx.reply, filter, field);
  }
}

/* BF.CARD key */
void card(Context& ctx) {
  const KeyRef key = ctx.key(1);
  const auto lock = ctx.lock(key);
  const auto found = find_filter(ctx, key);
  if (!found) return;
  ctx.reply.integer(*found == nullptr ? 0 : static_cast<int64_t>((*found)->item_count()));
}

const std::string kSharedOptions =
    "[TIGHTENING ratio] [SEED seed] [VALIDATESCALETO capacity] [LAYOUT " +
    core::bloom::layout_names(" | ", " | ") +
    "] [DELETABLE] [REGIONS bits] [WINDOW length [ITEMS]] [GENERATIONS generations] [REFRESH] "
    "[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds]";
const std::string kReserveSyntax =
    "key error_rate:double capacity [EXPANSION expansion] [NONSCALING] " + kSharedOptions;
const std::string kInsertSyntax =
    "key [CAPACITY capacity] [ERROR error] [EXPANSION expansion] [NOCREATE] [NONSCALING] " +
    kSharedOptions + " ITEMS item ...";

const Command kBloomRows[] = {
    {.name = "bf.reserve",
     .arity = -4,
     .flags = kAdds | kFast,
     .keys = one_key(kKeyRw | kKeyInsert),
     .summary = "Creates an empty Bloom filter of a given error rate and capacity",
     .complexity = "O(1), memory is taken as items come",
     .syntax = kReserveSyntax,
     .handler = reserve,
     .journalled = Journalled::kEffects},
    {.name = "bf.add",
     .arity = 3,
     .flags = kAdds,
     .keys = kAddKey,
     .summary = "Adds an item to a Bloom filter, which is created if it is missing",
     .complexity = "O(K*L) where K is the number of hash bits and L the number of layers",
     .syntax = "key item",
     .handler = add,
     .prefetch = prefetch_items,
     .journalled = Journalled::kEffects},
    {.name = "bf.madd",
     .arity = -3,
     .flags = kAdds,
     .keys = kAddKey,
     .summary = "Adds items to a Bloom filter, which is created if it is missing",
     .complexity = "O(N*K*L) where N is the number of items, K the number of hash bits and L the "
                   "number of layers",
     .syntax = "key item ...",
     .handler = madd,
     .journalled = Journalled::kEffects},
    {.name = "bf.insert",
     .arity = -2,
     .flags = kAdds,
     .keys = kAddKey,
     .summary = "Adds items to a Bloom filter, which is created as the options say",
     .complexity = "O(N*K*L) where N is the number of items, K the number of hash bits and L the "
                   "number of layers",
     .syntax = kInsertSyntax,
     .handler = insert,
     .journalled = Journalled::kEffects},
    {.name = "bf.exists",
     .arity = 3,
     .summary = "Returns whether an item may have been added to a Bloom filter",
     .complexity = "O(K*L) where K is the number of hash bits and L the number of layers",
     .syntax = "key item",
     .handler = filter_exists,
     .prefetch = prefetch_items},
    {.name = "bf.mexists",
     .arity = -3,
     .summary = "Returns for each item whether it may have been added to a Bloom filter",
     .complexity = "O(N*K*L) where N is the number of items, K the number of hash bits and L the "
                   "number of layers",
     .syntax = "key item ...",
     .handler = mexists},
    {.name = "bf.info",
     .arity = -2,
     .summary = "Shows figures of a Bloom filter",
     .complexity = "O(L) where L is the number of layers",
     .syntax = "key [CAPACITY | SIZE | FILTERS | ITEMS | EXPANSION]",
     .handler = info},
    {.name = "bf.card",
     .arity = 2,
     .since = "2.4.4",
     .summary = "Counts the items that were new to a Bloom filter when they were added",
     .complexity = "O(L) where L is the number of layers",
     .syntax = "key",
     .handler = card},
};

}  // namespace

ScalableFilter* make_default_filter(Context& ctx, const KeyRef& key) {
  return make_filter(ctx, key,
                     {.parameters = default_filter_parameters(ctx.config(), ctx.session.origin)});
}

const CommandFamily kBloomCommands{
    {.flags = kLooks, .keys = kLookKey, .categories = kBloom, .group = "bf", .since = "1.0.0"},
    kBloomRows};

}  // namespace server
