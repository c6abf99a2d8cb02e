// SPDX-License-Identifier: MIT
//
// Session: the state of one client between its commands.
//
// Invariants: `id` is never used twice in one process.
// Thread safety: a session belongs to the I/O thread of its connection. Other threads (CLIENT
// LIST, CLIENT KILL) may use only ClientEndpoint, PublishedState, SharedState and request_kill().
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/keyspace/watch.h"
#include "protocol/reply_writer.h"
#include "server/session/pubsub/subscriptions.h"

namespace server {

class TlsStream;
struct RegisteredCommand;

class PubSub;
class Tracking;
namespace acl {
class User;
}

struct QueuedCommand {
  const RegisteredCommand* command = nullptr;
  std::vector<std::string> arguments;
};

// The state of MULTI … EXEC and WATCH of one session.
struct Transaction {
  bool active = false;
  bool aborted = false;       // true if a command could not be queued, so that EXEC fails
  uint32_t queued_flags = 0;  // union of the flags of the queued commands
  size_t queued_bytes = 0;
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

// The origin of a session's commands.
enum class CommandOrigin : uint8_t {
  kClient,
  // A Bloomery server wrote the commands. They are the effects of commands that have succeeded on
  // that server, so they are executed without checks.
  kOwnJournal,
  kForeignJournal,  // a server of another program, such as Redis, wrote the commands
};

// CLIENT LIST shows this user name for the link to the leader. The link may run every command.
inline constexpr std::string_view kLeaderUser = "(superuser)";

// The kind of a connection's peer.
enum class Peer : uint8_t { kClient, kReplica, kLeader, kMonitor };

// Capability that Bloomery replicas send by REPLCONF capa. They treat the commands in the stream as
// effects, and execute them without checks.
inline constexpr std::string_view kEffectsCapability = "bloomery";

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

// The request of CLIENT UNBLOCK to a session whose command is still blocked.
enum class Unblock : uint8_t { kNo, kAsByTimeout, kWithError };

// The reason why a client's next command does not run yet.
enum class ClientWait : uint8_t {
  kNone,
  kPaused,       // a pause holds the command back
  kBlocked,      // the reply to the previous command is not ready yet
  kUnblockable,  // like kBlocked, but CLIENT UNBLOCK can end the wait
};

enum class ReplyMode : uint8_t { kOn, kOff, kSkipNext, kSkipThis };

// Published: a value that the session's thread writes and any thread reads. All accesses are
// relaxed, so they do not order accesses to other memory.
template <class Value>
class Published {
 public:
  explicit Published(Value value) : value_(value) {}

  operator Value() const { return value_.load(std::memory_order_relaxed); }
  Value operator=(Value value) {
    value_.store(value, std::memory_order_relaxed);
    return value;
  }

 private:
  std::atomic<Value> value_;
};

struct Socket {
  int descriptor = -1;
  std::shared_ptr<TlsStream> tls;  // the TLS stream, which owns the descriptor; null without TLS
  bool is_unix = false;            // true for a unix socket
};

// The names that a client has set, and the name of its user.
class ClientNames {
 public:
  struct Values {
    std::string name;
    std::string library;
    std::string library_version;
    std::string user = "default";
  };

  Values get() const {
    const std::scoped_lock lock(mutex_);
    return values_;
  }
  template <class Change>
  void change(Change&& change) {
    const std::scoped_lock lock(mutex_);
    std::forward<Change>(change)(values_);
  }

 private:
  mutable std::mutex mutex_;  // this mutex guards values_
  Values values_;
};

// SessionUser: the user whose permissions a session has; see session_user.h.
struct SessionUser {
  std::shared_ptr<const acl::User> user;  // user of the session; null before the first command
  uint64_t version = 0;                   // version of the users when `user` was looked up

  // Equals `version` if `user` may run every command or the commands come from a journal; 0
  // otherwise. If it equals the users' present version, commands need no permission checks.
  uint64_t trusted_version = 0;
};

// ClientTraffic: the bytes and commands of one client since it connected. One thread writes, any
// thread reads.
class ClientTraffic {
 public:
  void count_received(uint64_t bytes) { add(received_bytes_, bytes); }
  void count_command() { add(commands_, 1); }
  void set_sent(uint64_t bytes) { sent_bytes_.store(bytes, std::memory_order_relaxed); }
  // Sets the name of the last command. The name must live as long as the process.
  void set_last_command(const std::string* name) {
    last_command_.store(name, std::memory_order_relaxed);
  }

  uint64_t received_bytes() const { return received_bytes_.load(std::memory_order_relaxed); }
  uint64_t sent_bytes() const { return sent_bytes_.load(std::memory_order_relaxed); }
  uint64_t commands() const { return commands_.load(std::memory_order_relaxed); }
  // Returns the name of the last command; null before the first command.
  const std::string* last_command() const { return last_command_.load(std::memory_order_relaxed); }

 private:
  static void add(std::atomic<uint64_t>& counter, uint64_t n) {
    counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }

  std::atomic<uint64_t> received_bytes_{0};
  std::atomic<uint64_t> sent_bytes_{0};
  std::atomic<uint64_t> commands_{0};
  std::atomic<const std::string*> last_command_{nullptr};
};

// The sizes of one client's buffers. The client's thread writes them, any thread reads them.
struct ClientBuffers {
  std::atomic<uint64_t> query_buffer_bytes{0};  // number of unparsed bytes

  // Number of allocated bytes that are not in use.
  std::atomic<uint64_t> query_buffer_free_bytes{0};
  std::atomic<uint64_t> parsed_bytes{0};    // number of parsed bytes of an incomplete command
  std::atomic<uint64_t> argument_bytes{0};  // number of bytes of the incomplete command's arguments

  // True if the input is in the thread's buffer, not in the client's buffer.
  std::atomic<bool> borrows_query_buffer{false};
  std::atomic<uint64_t> output_buffer_bytes{0};
  std::atomic<uint64_t> output_buffer_capacity_bytes{0};
  // Maximum of output_buffer_bytes during the last few seconds.
  std::atomic<uint64_t> output_buffer_peak_bytes{0};

  uint64_t input_bytes() const {
    return query_buffer_bytes.load(std::memory_order_relaxed) +
           query_buffer_free_bytes.load(std::memory_order_relaxed) +
           parsed_bytes.load(std::memory_order_relaxed);
  }
};

// ClientEndpoint: the two ends of a client's connection. Constant after the session is registered;
// any thread may read it.
struct ClientEndpoint {
  explicit ClientEndpoint(uint64_t client_id) : id(client_id) {}

  const uint64_t id;
  std::string address;  // address of the client, such as "127.0.0.1:50000" or "<socket path>:0"
  std::string local_address;
  Socket socket;
  size_t thread_index = 0;     // index of the connection's thread
  int64_t created_us = 0;      // monotonic time at which the session was created
  std::function<void()> wake;  // Called to make the connection check `kill_requested`.
};

// OwnState: the state that only the connection's thread may use.
struct OwnState {
  CommandOrigin origin = CommandOrigin::kClient;
  ReplyMode reply_mode = ReplyMode::kOn;
  bool authenticated = false;
  SessionUser identity;
  Transaction transaction;
  ReplicaTraits replica;
  // Called when the session ends. For a replica's session it detaches the replica from Leader.
  // Other sessions leave it empty.
  std::function<void()> on_end;
};

// PublishedState: the state that the connection's thread writes and any thread reads.
struct PublishedState : ClientBuffers {
  Published<protocol::RespVersion> resp{protocol::RespVersion::kResp2};
  Published<int> database{0};
  Published<Peer> peer{Peer::kClient};
  Published<ClientWait> wait{ClientWait::kNone};
  std::atomic<bool> no_evict{false};
  std::atomic<bool> no_touch{false};
  // True if the client has sent READONLY: in a cluster, a replica then serves its reads.
  std::atomic<bool> reads_replicas{false};
  std::atomic<int64_t> last_interaction_us{0};  // monotonic time of the last bytes from the client
  std::atomic<int64_t> queued_commands{-1};     // number of queued commands; -1 outside MULTI
  std::atomic<uint64_t> queued_bytes{0};
  std::atomic<uint64_t> watched_keys{0};
  std::atomic<uint64_t> watched_bytes{0};
  ClientTraffic traffic;
};

// SharedState: the state that any thread may read and write.
struct SharedState {
  static constexpr uint64_t kNotCounted = ~uint64_t{0};
  // The bytes of this session in the memory sum that Clients keeps; kNotCounted once the session is
  // closing.
  std::atomic<uint64_t> counted_bytes{0};
  ClientNames names;
  std::atomic<bool> kill_requested{false};
  std::atomic<Unblock> unblock_requested{Unblock::kNo};
};

class Session : public ClientEndpoint, public OwnState, public PublishedState, public SharedState {
 public:
  explicit Session(uint64_t session_id);
  ~Session();

  // Only the connection's thread may use the subscriptions, except their published members.
  Subscriptions subscriptions;

  // Returns whether the client may run only the commands that Redis allows to subscribers in RESP2,
  // such as SUBSCRIBE and PING. The reason is that RESP2 messages look like replies.
  bool is_in_subscriber_mode() const {
    return subscriptions.any() && resp == protocol::RespVersion::kResp2;
  }

  // Publishes the length of the transaction to other threads.
  void publish_transaction() {
    const auto count = static_cast<int64_t>(transaction.queue.size());
    queued_commands.store(transaction.active ? count : -1, std::memory_order_relaxed);
    queued_bytes.store(transaction.queued_bytes, std::memory_order_relaxed);
  }

  // Returns the memory that counts for the client; any thread may call it. Arguments are views of
  // the query buffer, so they do not count twice. The I/O thread's buffers for replies and for
  // directly executed input do not count, because all clients of the thread share them.
  uint64_t memory_bytes() const {
    uint64_t sum = sizeof(Session) + subscriptions.published_bytes();
    for (const auto* part : {&queued_bytes, &watched_bytes, &output_buffer_capacity_bytes}) {
      sum += part->load(std::memory_order_relaxed);
    }
    return borrows_query_buffer.load(std::memory_order_relaxed) ? sum : sum + input_bytes();
  }
  // Returns memory_bytes() plus the size of the client's input in the thread's buffer. CLIENT LIST
  // shows this sum.
  uint64_t published_memory_bytes() const {
    const bool borrows = borrows_query_buffer.load(std::memory_order_relaxed);
    return memory_bytes() + (borrows ? input_bytes() : 0);
  }

  void request_kill() {
    kill_requested.store(true, std::memory_order_release);
    if (wake) wake();
  }
};

// Ends all subscriptions of the session without messages. Must be called on the session's thread.
void unsubscribe_all(PubSub& pubsub, Session& session);
// stop_tracking() and forget_tracking() end CLIENT TRACKING. forget_tracking() is for a session
// that ends.
void stop_tracking(Tracking& tracking, Session& session);
void forget_tracking(Tracking& tracking, Session& session);

}  // namespace server
