// SPDX-License-Identifier: MIT
//
// Tracking: which clients have read which keys, or want to hear of all keys with some prefix, and
// the invalidations on their way to them.
//
// A client's read is remembered before it reads. A change takes the key's row out and puts one
// invalidation into the inboxes of the threads of all clients in it; each thread asks the session
// whether, and how, it wants to be told. Changes for prefixes are gathered on the writer's thread
// and sent when it has nothing else to do, each key once.
//
// Invariants: a client that was sent the value of a key is told of its next change, behind that
// value. A row is told once and is gone. When all clients that have tracked are gone, the table is
// empty and commands do not ask: see ChangeListeners.
// Thread safety: all members may be called from any thread, also under stripes.
// Source: redis.io/docs/manual/client-side-caching; docs/architecture.md, "Client-side caching".
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "server/pubsub/pub_sub.h"

namespace server {

struct ServerState;

class Tracking {
 public:
  using Client = PubSub::Subscriber;
  struct Key {
    std::string_view name;
    uint64_t hash;
  };

  Tracking(PubSub& pubsub, ServerState& state, size_t thread_count);

  // A client that tracks, or wants other things than before.
  void begin(const Client& client, bool no_loop);
  // It tracks no more. What it has read is remembered, in case it begins again.
  void end(uint64_t session_id);
  // It has gone, whether it tracks or not.
  void forget(uint64_t session_id);
  // The client is notified of all keys with one of these prefixes. REQUIRES: begin() was called for
  // it.
  void add_prefixes(std::span<const std::string_view> prefixes, uint64_t session_id);

  void remember(const Key& key, const Client& client);
  // Called for every key that changes; `writer` is the client that does it, or {0, 0}.
  void invalidate(const Key& key, const Client& writer);
  // All keys are gone.
  void invalidate_all();
  // Sends what was gathered for prefixes. To be called by the thread after each wake.
  void send_broadcasts(size_t thread_index);

  // How many keys are remembered at most; 0 is no limit.
  void set_limit(uint64_t keys) { keys_max_.store(keys, std::memory_order_relaxed); }
  // Takes out keys above the limit, at most so many, and tells who has read them.
  void trim(size_t most);

 private:
  struct NameHash {
    using is_transparent = void;
    size_t operator()(std::string_view name) const { return std::hash<std::string_view>{}(name); }
  };
  using Readers = std::vector<Client>;
  using Rows = std::unordered_map<std::string, Readers, NameHash, std::equal_to<>>;
  struct Shard {
    std::mutex mutex;
    Rows rows;
  };
  struct ClientRow {
    size_t thread_index;
    bool no_loop;
    std::set<std::string, std::less<>> prefixes;
  };
  // By name; the session that has changed it, or 0 for nobody or for several.
  using ChangedKeys = std::map<std::string, uint64_t, std::less<>>;
  struct Gathered {
    std::mutex mutex;
    ChangedKeys keys;
  };
  using Prefixes = std::set<std::string, std::less<>>;
  using KeysOfPrefix = std::vector<const ChangedKeys::value_type*>;

  static constexpr size_t kShardCount = 64;

  Shard& shard_of(uint64_t hash) { return shards_[hash >> 58U]; }
  void send(std::string_view keys, uint64_t writer, const Readers& readers) const;
  void gather(std::string_view name, const Client& writer);
  void clear_rows();
  // Takes a row out at random; false when there is none.
  bool drop_one();
  void count_prefixes();
  // `keys_of_prefix` are those with the prefix of the clients `ids`, in ascending order.
  void send_keys(const KeysOfPrefix& keys_of_prefix, const std::set<uint64_t>& ids) const;

  PubSub& pubsub_;
  ServerState& state_;
  std::array<Shard, kShardCount> shards_;
  std::vector<std::unique_ptr<Gathered>> gathered_;  // by thread index
  mutable std::mutex mutex_;                         // guards the four below
  std::set<uint64_t> known_;                         // clients that have tracked, until they go
  std::map<uint64_t, ClientRow> clients_;
  std::map<std::string, std::set<uint64_t>, std::less<>> prefixes_;  // to session ids
  std::shared_ptr<const Prefixes> prefix_list_;
  std::atomic<uint64_t> keys_max_{0};
  std::atomic<uint64_t> last_drop_{0};
};

}  // namespace server
