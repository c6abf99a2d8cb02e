// SPDX-License-Identifier: MIT
//
// Session: the state of one client between its commands.
//
// Thread safety: a session belongs to the I/O thread of its connection. Other threads (CLIENT
// LIST, CLIENT KILL) use its Client.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/keyspace/watch.h"
#include "server/session/client.h"
#include "server/session/pubsub/subscriptions.h"
#include "server/session/replayer.h"

namespace server {

struct RegisteredCommand;
class PubSub;
class Tracking;
namespace acl {
class User;
}

struct QueuedCommand {
  const RegisteredCommand* command = nullptr;
  std::vector<std::string> arguments;

  // Returns views of the arguments, which the handler gets.
  std::vector<std::string_view> words() const { return {arguments.begin(), arguments.end()}; }
};

// The state of MULTI … EXEC and WATCH of one session.
struct Transaction {
  bool active = false;
  bool aborted = false;       // true if a command could not be queued, so that EXEC fails
  uint32_t queued_flags = 0;  // union of the flags of the queued commands
  std::vector<QueuedCommand> queue;
  uint32_t common_flags = ~uint32_t{0};  // flags that all queued commands have in common

  struct WatchedKey {
    int database = 0;
    std::string key;
  };
  std::vector<WatchedKey> watched;
  // The flag that becomes dirty when a watched key changes; null if the client watches no key.
  std::shared_ptr<core::keyspace::WatchFlag> watch_flag;
};

// Capability that Bloomery replicas send by REPLCONF capa. They treat the commands in the stream as
// effects, and execute them without checks.
inline constexpr std::string_view kEffectsCapability = "bloomery";
// The error of REPLCONF for an option that the leader does not know, which precedes the option.
inline constexpr std::string_view kUnknownReplconf = "ERR Unrecognized REPLCONF option: ";
// Value of REPLCONF cluster-node by which a replica asks whether its leader knows the option at
// all.
inline constexpr std::string_view kAnyClusterNode = "?";

// The settings that a replica sent by REPLCONF before it asked for the stream.
struct ReplicaTraits {
  std::string address;  // address that the replica announced; empty if it announced none
  uint16_t port = 0;    // port on which the replica listens
  std::string node_id;  // id of the replica's node in a cluster
  bool takes_eof_mark = false;
  bool knows_psync2 = false;
  // True for a Bloomery replica. The stream for such a replica contains effects of commands, so its
  // snapshot may contain bits of filters that were set after the snapshot's offset.
  bool reads_effects = false;
  bool wants_snapshot_only = false;
  bool wants_no_keys = false;

  // Returns whether the replica is a server of another kind, such as Redis or Valkey.
  bool is_foreign() const { return !reads_effects && !wants_snapshot_only; }
};

// The part of a session whose client is a replica.
struct ReplicaRole {
  ReplicaTraits traits;
  std::function<void()> on_end;  // Called when the session ends; detaches the replica from Leader.
};

enum class ReplyMode : uint8_t { kOn, kOff, kSkipNext, kSkipThis };

// SessionUser: the user whose permissions a session has; see session_user.h.
struct SessionUser {
  std::shared_ptr<const acl::User> user;  // null only before a replayer's first command
  uint64_t version = 0;                   // version of the users when `user` was looked up

  // Equals `version` if `user` may run every command or the commands come from a journal; 0
  // otherwise. If it equals the users' present version, commands need no permission checks.
  uint64_t trusted_version = 0;
};

// The ends of the replication stream and of the append log after a client's write.
struct WritePosition {
  uint64_t demotions = 0;  // Replication::demotions() at that time
  uint64_t stream_offset = 0;
  uint64_t log_offset = 0;
};

class Session {
 public:
  explicit Session(uint64_t id);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::shared_ptr<Client> client;
  CommandOrigin origin = CommandOrigin::kClient;
  ReplyMode reply_mode = ReplyMode::kOn;
  bool authenticated = false;
  SessionUser identity;
  Transaction transaction;
  Subscriptions subscriptions;
  // Position after the last write or message; nullopt before the first one. WAIT waits for this
  // position. It is recorded after each batch; has_new_write says that it is not up to date.
  std::optional<WritePosition> last_write;
  bool has_new_write = false;
  std::unique_ptr<ReplicaRole> replica;  // null until the client sends REPLCONF or asks to sync

  // Returns whether the client may run only the commands that Redis allows to subscribers in RESP2,
  // such as SUBSCRIBE and PING. The reason is that RESP2 messages look like replies.
  bool is_in_subscriber_mode() const {
    return subscriptions.any() && client->resp == protocol::RespVersion::kResp2;
  }
  // Returns the role of a replica. Creates it if the session has none.
  ReplicaRole& replica_role() {
    if (replica == nullptr) replica = std::make_unique<ReplicaRole>();
    return *replica;
  }

  // Publishes the number of queued commands to other threads. Outside MULTI, also their memory,
  // which is 0.
  void publish_transaction() {
    const auto count = static_cast<int64_t>(transaction.queue.size());
    client->queued_commands = transaction.active ? count : -1;
    if (!transaction.active) client->queued_bytes = 0;
  }
};

// Ends all subscriptions of the session without messages. Must be called on the session's thread.
void unsubscribe_all(PubSub& pubsub, Session& session);
// Ends CLIENT TRACKING for a session that continues.
void stop_tracking(Tracking& tracking, Session& session);

}  // namespace server
