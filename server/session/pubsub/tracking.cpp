// SPDX-License-Identifier: MIT
#include "server/session/pubsub/tracking.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "server/base/process/server_state.h"

namespace server {
namespace {

// Hashes a number, so that consecutive numbers are spread out.
uint64_t scattered(uint64_t number) {
  number *= 0x9E3779B97F4A7C15U;
  return number ^ (number >> 29U);
}

// Calls visit(element) for the elements of a sorted container that are prefixes of `name`, the
// longest first, until visit() returns false. `text_of(element)` is an element's text. Needs at
// most one search per byte of the name.
template <class Sorted, class TextOf, class Visit>
void for_each_prefix(const Sorted& sorted, std::string_view name, TextOf&& text_of, Visit&& visit) {
  // No prefix that remains to be visited is longer than `rest`.
  std::string_view rest = name;
  for (;;) {
    auto candidate = sorted.upper_bound(rest);
    if (candidate == sorted.begin()) return;
    --candidate;
    const std::string_view text = text_of(*candidate);
    const auto differing = std::ranges::mismatch(text, name).in1;
    const auto common = static_cast<size_t>(differing - text.begin());
    if (common < text.size()) {
      // The candidate is no prefix of the name: only its first `common` bytes equal those of the
      // name. Longer prefixes of the name sort after the candidate. The search would have found
      // such a prefix instead, so all unvisited prefixes have at most `common` bytes.
      rest = name.substr(0, common);
      continue;
    }
    if (!visit(*candidate) || common == 0) return;
    rest = name.substr(0, common - 1);
  }
}

}  // namespace

Tracking::Tracking(PubSub& pubsub, ServerState& state, size_t thread_count)
    : pubsub_(pubsub), state_(state) {
  for (size_t i = 0; i < thread_count; ++i) gathered_.push_back(std::make_unique<Gathered>());
}

void Tracking::begin(const Client& client, bool no_loop) {
  const std::scoped_lock lock(mutex_);
  known_.insert(client.session_id);
  ClientRow& row = clients_[client.session_id];
  row.thread_index = client.thread_index;
  row.no_loop = no_loop;
  state_.tracking.clients = clients_.size();
  state_.listeners.set(ChangeListeners::kTracking, true);
}

void Tracking::end(uint64_t session_id) {
  const std::scoped_lock lock(mutex_);
  const auto found = clients_.find(session_id);
  if (found == clients_.end()) return;
  for (const std::string& prefix : found->second.prefixes) {
    const auto ids = prefixes_.find(prefix);
    ids->second.erase(session_id);
    if (ids->second.empty()) prefixes_.erase(ids);
  }
  if (!found->second.prefixes.empty()) count_prefixes();
  clients_.erase(found);
  state_.tracking.clients = clients_.size();
}

void Tracking::forget(uint64_t session_id) {
  end(session_id);
  const std::scoped_lock lock(mutex_);
  if (known_.erase(session_id) == 0 || !known_.empty()) return;
  state_.listeners.set(ChangeListeners::kTracking, false);
  clear_rows();
}

void Tracking::add_prefixes(std::span<const std::string_view> prefixes, uint64_t session_id) {
  const std::scoped_lock lock(mutex_);
  ClientRow& client = clients_.at(session_id);
  for (const std::string_view prefix : prefixes) {
    client.prefixes.emplace(prefix);
    prefixes_[std::string(prefix)].insert(session_id);
  }
  count_prefixes();
}

void Tracking::count_prefixes() {
  auto list = std::make_shared<Prefixes>();
  for (const auto& [prefix, ids] : prefixes_) list->emplace_hint(list->end(), prefix);
  prefix_list_ = std::move(list);
  state_.tracking.prefixes = prefixes_.size();
}

void Tracking::remember(const Key& key, const Client& client) {
  Shard& shard = shard_of(key.hash);
  {
    const std::scoped_lock lock(shard.mutex);
    auto row = shard.rows.find(key.name);
    if (row == shard.rows.end()) {
      row = shard.rows.try_emplace(std::string(key.name)).first;
      state_.tracking.keys.fetch_add(1, std::memory_order_relaxed);
    }
    Readers& readers = row->second;
    const bool is_known = std::ranges::any_of(
        readers, [&](const Client& reader) { return reader.session_id == client.session_id; });
    if (is_known) return;
    readers.push_back(client);
    state_.tracking.items.fetch_add(1, std::memory_order_relaxed);
  }
  // Each call removes up to four keys, so that the table shrinks after its limit was lowered.
  constexpr size_t kDropsMax = 4;
  trim(kDropsMax);
}

void Tracking::invalidate(const Key& key, const Client& writer) {
  if (state_.tracking.prefixes != 0) gather(key.name, writer);
  Shard& shard = shard_of(key.hash);
  Readers readers;
  {
    const std::scoped_lock lock(shard.mutex);
    const auto row = shard.rows.find(key.name);
    if (row == shard.rows.end()) return;
    readers = std::move(row->second);
    shard.rows.erase(row);
  }
  state_.tracking.keys.fetch_sub(1, std::memory_order_relaxed);
  state_.tracking.items.fetch_sub(readers.size(), std::memory_order_relaxed);
  std::string keys = "*1\r\n";
  append_bulk(keys, key.name);
  send(keys, writer.session_id, readers);
}

void Tracking::send(std::string_view keys, uint64_t writer, const Readers& readers) const {
  const auto message =
      std::make_shared<const Invalidation>(Invalidation{std::string(keys), writer, false});
  for (const Client& reader : readers) {
    pubsub_.post(reader.thread_index,
                 {.invalidation = message, .receivers = {{reader.session_id}}});
  }
}

void Tracking::invalidate_all() {
  if (!state_.listeners.has(ChangeListeners::kTracking)) return;
  clear_rows();
  Readers everybody;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [id, row] : clients_) everybody.push_back({id, row.thread_index});
  }
  send({}, 0, everybody);
}

void Tracking::clear_rows() {
  for (Shard& shard : shards_) {
    const std::scoped_lock lock(shard.mutex);
    uint64_t items = 0;
    for (const auto& [name, readers] : shard.rows) items += readers.size();
    state_.tracking.keys.fetch_sub(shard.rows.size(), std::memory_order_relaxed);
    state_.tracking.items.fetch_sub(items, std::memory_order_relaxed);
    Rows().swap(shard.rows);
  }
}

void Tracking::trim(size_t most) {
  const uint64_t keys_max = keys_max_.load(std::memory_order_relaxed);
  if (keys_max == 0) return;
  while (most > 0 && state_.tracking.keys > keys_max && drop_one()) --most;
}

bool Tracking::drop_one() {
  const uint64_t number = scattered(last_drop_.fetch_add(1, std::memory_order_relaxed));
  for (size_t i = 0; i < kShardCount; ++i) {
    Shard& shard = shards_[(number + i) % kShardCount];
    std::string keys = "*1\r\n";
    Readers readers;
    {
      const std::scoped_lock lock(shard.mutex);
      if (shard.rows.empty()) continue;
      // Limit on attempts to find a bucket of the hash table that is not empty. Few buckets are
      // empty, unless the table has lost most of its keys.
      constexpr size_t kDrawsMax = 32;
      auto victim = shard.rows.begin();
      for (size_t draw = 0; draw < kDrawsMax; ++draw) {
        const size_t bucket = scattered(number + draw) % shard.rows.bucket_count();
        if (shard.rows.bucket_size(bucket) == 0) continue;
        victim = shard.rows.find(shard.rows.begin(bucket)->first);
        break;
      }
      append_bulk(keys, victim->first);
      readers = std::move(victim->second);
      shard.rows.erase(victim);
    }
    state_.tracking.keys.fetch_sub(1, std::memory_order_relaxed);
    state_.tracking.items.fetch_sub(readers.size(), std::memory_order_relaxed);
    send(keys, 0, readers);
    return true;
  }
  return false;
}

void Tracking::gather(std::string_view name, const Client& writer) {
  std::shared_ptr<const Prefixes> prefixes;
  {
    const std::scoped_lock lock(mutex_);
    prefixes = prefix_list_;
  }
  if (prefixes == nullptr) return;
  bool is_wanted = false;
  for_each_prefix(
      *prefixes, name, [](const std::string& prefix) { return std::string_view(prefix); },
      [&](const std::string&) {
        is_wanted = true;
        return false;
      });
  if (!is_wanted) return;
  Gathered& gathered = *gathered_[writer.thread_index];
  bool is_first = false;
  {
    const std::scoped_lock lock(gathered.mutex);
    is_first = gathered.keys.empty();
    const auto [key, is_new] = gathered.keys.try_emplace(std::string(name), writer.session_id);
    if (!is_new && key->second != writer.session_id) key->second = 0;
  }
  if (is_first) pubsub_.wake(writer.thread_index);
}

void Tracking::send_broadcasts(size_t thread_index) {
  Gathered& gathered = *gathered_[thread_index];
  ChangedKeys changed;
  {
    const std::scoped_lock lock(gathered.mutex);
    if (gathered.keys.empty()) return;
    changed.swap(gathered.keys);
  }
  const std::scoped_lock lock(mutex_);
  // Maps watched prefixes, in ascending order, to their clients and to the changed keys that have
  // the prefix.
  std::map<std::string_view, std::pair<const std::set<uint64_t>*, KeysOfPrefix>> found;
  for (const auto& key : changed) {
    for_each_prefix(
        prefixes_, key.first, [](const auto& row) { return std::string_view(row.first); },
        [&](const auto& row) {
          auto& [ids, keys] = found[row.first];
          ids = &row.second;
          keys.push_back(&key);
          return true;
        });
  }
  for (const auto& [prefix, ids_and_keys] : found) {
    send_keys(ids_and_keys.second, *ids_and_keys.first);
  }
}

// A client with NOLOOP gets a message without the keys that the client itself has changed.
void Tracking::send_keys(const KeysOfPrefix& keys_of_prefix, const std::set<uint64_t>& ids) const {
  const auto message_without = [&](uint64_t writer) -> std::shared_ptr<const Invalidation> {
    std::string keys;
    size_t count = 0;
    for (const auto* key : keys_of_prefix) {
      if (writer != 0 && key->second == writer) continue;
      append_bulk(keys, key->first);
      ++count;
    }
    if (count == 0) return nullptr;
    return std::make_shared<const Invalidation>(
        Invalidation{fmt::format("*{}\r\n", count) + keys, 0, true});
  };
  const auto has_changed = [&](uint64_t id) {
    return std::ranges::any_of(keys_of_prefix, [id](const auto* key) { return key->second == id; });
  };
  const auto whole = message_without(0);
  for (const uint64_t id : ids) {
    const ClientRow& client = clients_.at(id);
    const auto message = client.no_loop && has_changed(id) ? message_without(id) : whole;
    if (message == nullptr) continue;
    pubsub_.post(client.thread_index, {.invalidation = message, .receivers = {{id}}});
  }
}

}  // namespace server
