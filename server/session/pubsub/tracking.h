// SPDX-License-Identifier: MIT
//
// Tracking: the keys that clients have read or the prefixes that they watch, and the invalidations
// sent to those clients.
//
// A read is recorded before the client reads the key. A key's row lists the clients that have read
// the key. A change of the key removes the row, and puts an invalidation for each of these clients
// into the inbox of the client's thread. That thread asks the client's session whether and how to
// notify the client. Changes of keys with watched prefixes are collected for the thread of the
// client that changes the keys, each key once. That thread sends the invalidations when it next
// delivers messages.
//
// Invariants: a client that has read a key is notified of the key's next change. The client
// receives the notification after the value that it has read. A read causes at most one
// notification, because the notification removes the key's row. When all clients that have tracked
// keys have disconnected, the table is empty and commands do not call this class: see
// ChangeListeners.
// Thread safety: all members may be called from any thread, also under stripe locks.
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

#include "core/name_hash.h"
#include "server/session/pubsub/pub_sub.h"

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

  // Called when a client starts to track, or changes its options.
  void begin(const Client& client, bool no_loop);
  // Called when a client stops tracking. Its recorded reads are retained, in case it starts again.
  void end(uint64_t session_id);
  // Called when a client disconnects, whether it tracked keys or not.
  void forget(uint64_t session_id);
  // Registers prefixes: the client is notified when a key with one of these prefixes changes.
  // REQUIRES: begin() was called for the client.
  void add_prefixes(std::span<const std::string_view> prefixes, uint64_t session_id);

  void remember(const Key& key, const Client& client);
  // Called for every key that changes. `writer` is the client that changed the key; {0, 0} if no
  // client did.
  void invalidate(const Key& key, const Client& writer);
  // Called when all keys were deleted, which invalidates every tracked key.
  void invalidate_all();
  // Sends the collected changes of keys with watched prefixes. Must be called by each I/O thread
  // after each wakeup.
  void send_broadcasts(size_t thread_index);

  // Sets the limit on the number of recorded keys; 0 is no limit.
  void set_limit(uint64_t keys) { keys_max_.store(keys, std::memory_order_relaxed); }
  // If more keys are recorded than the limit allows, removes the excess keys, but at most `most`.
  // Notifies the clients that have read the removed keys.
  void trim(size_t most);

 private:
  using Readers = std::vector<Client>;
  using Rows = std::unordered_map<std::string, Readers, core::NameHash, std::equal_to<>>;
  struct Shard {
    std::mutex mutex;
    Rows rows;
  };
  struct ClientRow {
    size_t thread_index;
    bool no_loop;
    std::set<std::string, std::less<>> prefixes;
  };
  // Maps each changed key to the id of the session that changed it. The id is 0 if no session, or
  // more than one session, changed the key.
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
  // Invalidates a random tracked key and stops tracking it. Returns false if no key is tracked.
  bool drop_one();
  void count_prefixes();
  // Sends an invalidation of `keys_of_prefix` (changed keys that begin with one prefix) to each of
  // the clients `ids`.
  void send_keys(const KeysOfPrefix& keys_of_prefix, const std::set<uint64_t>& ids) const;

  PubSub& pubsub_;
  ServerState& state_;
  std::array<Shard, kShardCount> shards_;
  std::vector<std::unique_ptr<Gathered>> gathered_;  // collected changes, indexed by thread
  mutable std::mutex mutex_;                         // this mutex guards the next four members
  std::set<uint64_t> known_;                         // connected clients that ever enabled tracking
  std::map<uint64_t, ClientRow> clients_;
  std::map<std::string, std::set<uint64_t>, std::less<>> prefixes_;  // maps prefixes to session ids
  std::shared_ptr<const Prefixes> prefix_list_;
  std::atomic<uint64_t> keys_max_{0};
  std::atomic<uint64_t> last_drop_{0};
};

}  // namespace server
