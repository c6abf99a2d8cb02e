// SPDX-License-Identifier: MIT
//
// BF.KEXISTS and BF.KADD look up and add many items in many filters, under the locks of all keys.
//
// Before any key is looked up, the cache lines of all keys are prefetched: buckets, entries,
// filters, and then the bits of the first item.
#include <vector>

#include "core/memory/release_storage.h"
#include "server/commands/bloom/bloom_access.h"
#include "server/commands/bloom/bloom_items.h"
#include "server/commands/bloom/bloom_journal.h"
#include "server/commands/families.h"
#include "server/dispatch/admission.h"
#include "server/dispatch/context.h"

namespace server {
namespace {

using core::bloom::AddOutcome;
using core::bloom::ItemHash;
using core::bloom::ScalableFilter;

// The maximum number of answers of one command. It limits the time for which the command holds the
// locks of its keys.
constexpr size_t kAnswersMax = size_t{1} << 20;

struct ManyRequest {
  Arguments keys;
  Arguments items;
};

struct ManyKey {
  KeyRef key;
  Entry* entry = nullptr;
  bool is_nil = false;  // true if the reply for each item is null

  ScalableFilter* filter() const {
    return entry != nullptr && entry->is_filter() ? &entry->filter() : nullptr;
  }
};

// Parses "numkeys key [key ...] item [item ...]".
core::Result<ManyRequest> parse_many(const Context& ctx) {
  const auto key_count = core::parse_int64(ctx.args[1]);
  if (!key_count || *key_count < 1) return core::Error{"ERR numkeys should be greater than 0"};
  const Arguments rest = ctx.args.subspan(2);
  if (static_cast<uint64_t>(*key_count) > rest.size()) {
    return core::Error{"ERR Number of keys can't be greater than number of args"};
  }
  const auto count = static_cast<size_t>(*key_count);
  const ManyRequest request{rest.first(count), rest.subspan(count)};
  if (request.items.empty()) {
    return core::Error{protocol::wrong_arity(ctx.command->full_name)};
  }
  // The product cannot overflow, because a command has fewer than 2^31 keys and items.
  const size_t answer_count = request.keys.size() * request.items.size();
  if (answer_count > kAnswersMax) {
    return core::Error{"ERR keys times items may be at most " + std::to_string(kAnswersMax)};
  }
  // The answer for a key and an item takes one byte in memory, and at most five bytes in the reply.
  // The reply has an array for each key, whose header takes at most ten bytes.
  constexpr size_t kBytesPerAnswer = 6;
  constexpr size_t kBytesPerKey = sizeof(ManyKey) + 10;
  const size_t bytes = kBytesPerAnswer * answer_count + kBytesPerKey * request.keys.size();
  if (!ctx.admission().memory_suffices(bytes)) {
    return ctx.admission().out_of_memory();
  }
  return request;
}

// The keys of one command. The buffer is reused by all commands of a thread.
class ManyKeys {
 public:
  ManyKeys(Context& ctx, Arguments names) : keys_(of_thread()) {
    keys_.clear();
    for (const std::string_view name : names) {
      keys_.push_back({ctx.keyspace().ref(name)});
      mask_ |= core::keyspace::Keyspace::mask_of(keys_.back().key);
    }
  }
  ~ManyKeys() {
    constexpr size_t kKeptKeys = 4096;
    if (keys_.capacity() > kKeptKeys) core::release_storage(keys_);
  }
  ManyKeys(const ManyKeys&) = delete;
  ManyKeys& operator=(const ManyKeys&) = delete;

  std::span<ManyKey> all() { return keys_; }
  StripeLock lock(const Context& ctx) const {
    return ctx.in_exec ? StripeLock{} : ctx.keyspace().lock(mask_, ctx.lock_mode());
  }

  // Looks up all keys, and prefetches their filters. REQUIRES: the locks of all keys.
  void find(Context& ctx, const EarlyBatch& hashes) {
    const auto& keyspace = ctx.keyspace();
    const bool is_cold = keyspace.is_worth_prefetching(ctx.database(), keys_.front().key);
    if (is_cold) {
      using core::keyspace::PrefetchStep;
      for (const PrefetchStep step : {PrefetchStep::kBucket, PrefetchStep::kEntry}) {
        for (const ManyKey& one : keys_) keyspace.prefetch(ctx.database(), one.key, step);
      }
    }
    for (ManyKey& one : keys_) {
      one.entry = ctx.find(one.key);
      if (one.entry != nullptr) one.entry->prefetch_value();
    }
    for (const ManyKey& one : keys_) {
      const ScalableFilter* const filter = one.filter();
      const ItemHash* const hash = filter == nullptr ? nullptr : hashes.at_hand(*filter);
      if (hash == nullptr) continue;
      filter->prefetch({hash, 1}, is_cold ? 0 : core::bloom::kCachedBytes);
    }
  }

 private:
  static std::vector<ManyKey>& of_thread() {
    thread_local std::vector<ManyKey> keys;
    return keys;
  }

  std::vector<ManyKey>& keys_;
  StripeMask mask_ = 0;
};

// The answers of one command, one key after another. The buffer is reused by all commands of a
// thread.
class Answers {
 public:
  explicit Answers(size_t count) : answers_(of_thread()) {
    answers_.resize(count, boost::container::default_init);
  }
  ~Answers() {
    constexpr size_t kKeptAnswers = 65536;
    if (answers_.capacity() > kKeptAnswers) core::release_storage(answers_);
  }
  Answers(const Answers&) = delete;
  Answers& operator=(const Answers&) = delete;

  std::span<bool> of_key(size_t index, size_t item_count) {
    return std::span(answers_.data(), answers_.size()).subspan(index * item_count, item_count);
  }

 private:
  static boost::container::vector<bool>& of_thread() {
    thread_local boost::container::vector<bool> answers;
    return answers;
  }

  boost::container::vector<bool>& answers_;
};

void look(const Context& ctx, const ScalableFilter& filter, EarlyBatch& hashes,
          std::span<bool> found) {
  const int64_t time_ms = window_time(ctx, filter);
  const auto items = hashes.for_filter(filter).hashes();
  if (items.size() == 1) {
    found[0] = filter.may_contain(items[0], time_ms);
  } else {
    filter.may_contain_many(items, found, time_ms);
  }
}

/* BF.KEXISTS numkeys key [key ...] item [item ...] */
void kexists(Context& ctx) {
  const auto request = parse_many(ctx);
  if (!request) return ctx.reply.error(request.error().message);
  const size_t item_count = request->items.size();
  EarlyBatch hashes(ctx, request->items);
  ManyKeys keys(ctx, request->keys);
  Answers answers(keys.all().size() * item_count);
  {
    const StripeLock lock = keys.lock(ctx);
    keys.find(ctx, hashes);
    for (size_t i = 0; i < keys.all().size(); ++i) {
      ManyKey& one = keys.all()[i];
      const ScalableFilter* const filter = one.filter();
      if (filter != nullptr) {
        look(ctx, *filter, hashes, answers.of_key(i, item_count));
      } else {
        std::ranges::fill(answers.of_key(i, item_count), false);
        one.is_nil = one.entry == nullptr && may_answer_nil(ctx);
      }
    }
  }
  ctx.reply.array(keys.all().size());
  for (size_t i = 0; i < keys.all().size(); ++i) {
    ctx.reply.array(item_count);
    const bool is_nil = keys.all()[i].is_nil;
    for (const bool answer : answers.of_key(i, item_count)) {
      is_nil ? ctx.reply.null() : ctx.reply.boolean(answer);
    }
  }
}

// Adds the items to one key. Replies with an array of outcomes, or with an error if the filter
// cannot be created. REQUIRES: the key's exclusive lock; the key holds no string.
void add_to_key(Context& ctx, const KeyRef& key, Arguments items, EarlyBatch& hashes) {
  // The key is looked up again, because the command may name a key twice.
  Entry* const entry = ctx.keyspace().find(ctx.database(), key, ctx.expiry_now_ms);
  const bool is_new = entry == nullptr;
  ScalableFilter* const filter = is_new ? make_default_filter(ctx, key) : &entry->filter();
  if (filter == nullptr || (!is_new && !prepare_add(ctx, key, *filter))) return;
  const FilterBudget budget(ctx, *filter);
  const auto outcomes = add_batch(ctx, *filter, hashes.for_filter(*filter), budget);
  if (is_new || std::ranges::any_of(outcomes, core::bloom::has_effect)) {
    commit_added(ctx, key, *filter, is_new, items, outcomes);
  }
  finish_add(ctx, *filter);
  ctx.reply.array(outcomes.size());
  for (const AddOutcome outcome : outcomes) reply_outcome(ctx, outcome, budget);
}

/* BF.KADD numkeys key [key ...] item [item ...] */
void kadd(Context& ctx) {
  const auto request = parse_many(ctx);
  if (!request) return ctx.reply.error(request.error().message);
  EarlyBatch hashes(ctx, request->items);
  ManyKeys keys(ctx, request->keys);
  const StripeLock lock = keys.lock(ctx);
  keys.find(ctx, hashes);
  for (const ManyKey& one : keys.all()) {
    if (one.entry != nullptr && !one.entry->is_filter()) return ctx.reply.error(kWrongType);
  }
  // The changes are one journal group, so that replay applies all keys or none.
  const persistence::Journal::Group group(ctx.environment.journal);
  ctx.reply.array(keys.all().size());
  for (const ManyKey& one : keys.all()) add_to_key(ctx, one.key, request->items, hashes);
}

const Command kBloomManyRows[] = {
    {.name = "bf.kexists",
     .arity = -4,
     .flags = kReadOnly,
     .keys = counted_keys(1, kKeyRo | kKeyAccess),
     .summary = "Returns for each item and each of several Bloom filters whether it may have been "
                "added: an array for each key",
     .complexity = "O(M*N*K*L) for M keys, N items, K hash bits and L layers",
     .syntax = "numkeys:integer key ... item ...",
     .handler = kexists},
    {.name = "bf.kadd",
     .arity = -4,
     .flags = kAdds,
     .keys = counted_keys(1, kKeyRw | kKeyAccess | kKeyUpdate),
     .summary = "Adds each item to each of several Bloom filters and creates the missing ones: an "
                "array for each key",
     .complexity = "O(M*N*K*L) for M keys, N items, K hash bits and L layers",
     .syntax = "numkeys:integer key ... item ...",
     .handler = kadd,
     .journalled = Journalled::kEffects},
};

}  // namespace

const CommandFamily kBloomManyCommands{
    {.categories = kBloom, .group = "bloom-ext", .since = "1.0.0"}, kBloomManyRows};

}  // namespace server
