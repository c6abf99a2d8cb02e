// SPDX-License-Identifier: MIT
//
// Client: the part of one client's state that all threads may use. Its Session (session.h) has the
// part that only the connection's thread may use.
//
// Invariants: `id` is never used twice in one process. The object may outlive the session.
// Thread safety: any thread may read all members, and may change those of SharedState. Only the
// connection's thread changes the members of PublishedState, except
// SubscriptionFigures::names_bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "core/published.h"
#include "protocol/reply_writer.h"
#include "server/session/pubsub/subscription_figures.h"

namespace server {

class TlsStream;

// CLIENT LIST shows this user name for the link to the leader. The link may run every command.
inline constexpr std::string_view kLeaderUser = "(superuser)";

// The kind of a connection's peer.
enum class Peer : uint8_t { kClient, kReplica, kLeader, kMonitor };

// Whether CLIENT UNBLOCK may end the wait of a session's command, or has requested it. The session
// allows it when the wait begins. A single CLIENT UNBLOCK of any thread may then request it.
enum class Unblock : uint8_t { kForbidden, kAllowed, kAsByTimeout, kWithError };

// The reason why a client's next command does not run yet.
enum class ClientWait : uint8_t {
  kNone,
  kPaused,       // a pause holds the command back
  kBlocked,      // the reply to the previous command is not ready yet
  kUnblockable,  // like kBlocked, but CLIENT UNBLOCK can end the wait
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

// ClientTraffic: the bytes and commands of one client since it connected.
struct ClientTraffic {
  core::Published<uint64_t> received_bytes{0};
  core::Published<uint64_t> sent_bytes{0};
  core::Published<uint64_t> commands{0};
  // The name of the last command, which lives as long as the process; null before the first
  // command.
  core::Published<const std::string*> last_command{nullptr};
};

// The sizes of one client's buffers.
struct ClientBuffers {
  core::Published<uint64_t> query_buffer_bytes{0};       // number of unparsed bytes
  core::Published<uint64_t> query_buffer_free_bytes{0};  // number of allocated bytes not in use
  core::Published<uint64_t> parsed_bytes{0};  // number of parsed bytes of an incomplete command
  // Number of bytes of the incomplete command's arguments.
  core::Published<uint64_t> argument_bytes{0};
  // True if the input is in the thread's buffer, not in the client's buffer.
  core::Published<bool> borrows_query_buffer{false};
  core::Published<uint64_t> output_buffer_bytes{0};
  core::Published<uint64_t> output_buffer_capacity_bytes{0};
  // Maximum of output_buffer_bytes during the last few seconds.
  core::Published<uint64_t> output_buffer_peak_bytes{0};

  uint64_t input_bytes() const {
    return query_buffer_bytes + query_buffer_free_bytes + parsed_bytes;
  }
};

// ClientEndpoint: the two ends of a client's connection. Constant after the client is registered.
struct ClientEndpoint {
  explicit ClientEndpoint(uint64_t client_id) : id(client_id) {}

  const uint64_t id;
  std::string address;  // address of the client, such as "127.0.0.1:50000" or "<socket path>:0"
  std::string local_address;
  Socket socket;
  size_t thread_index = 0;  // index of the I/O thread that sends messages to the client
  size_t view_index = 0;    // index in ClusterState of the thread that runs its commands
  int64_t created_us = 0;   // monotonic time at which the client connected

  // Makes the connection check `kill_requested` and the user's rights, and retry a command that is
  // held back or blocked.
  std::function<void()> wake;
};

// PublishedState: the state that the connection's thread writes and any thread reads.
struct PublishedState : ClientBuffers {
  core::Published<protocol::RespVersion> resp{protocol::RespVersion::kResp2};
  core::Published<int> database{0};
  core::Published<Peer> peer{Peer::kClient};
  core::Published<ClientWait> wait{ClientWait::kNone};
  core::Published<bool> no_evict{false};
  core::Published<bool> no_touch{false};
  // True if the client has sent READONLY: in a cluster, a replica then serves its reads.
  core::Published<bool> reads_replicas{false};
  // Monotonic time at which the last bytes arrived, or the last command that had to wait ran or was
  // answered.
  core::Published<int64_t> last_interaction_us{0};
  core::Published<int64_t> queued_commands{-1};  // number of queued commands; -1 outside MULTI
  core::Published<uint64_t> queued_bytes{0};
  core::Published<uint64_t> watched_keys{0};
  core::Published<uint64_t> watched_bytes{0};
  ClientTraffic traffic;
  SubscriptionFigures subscriptions;
};

// SharedState: the state that any thread may read and write.
struct SharedState {
  static constexpr uint64_t kNotCounted = ~uint64_t{0};
  // The bytes of this client in the memory sum that Clients keeps; kNotCounted once the session is
  // closing.
  std::atomic<uint64_t> counted_bytes{0};
  ClientNames names;
  std::atomic<bool> kill_requested{false};
  std::atomic<Unblock> unblock{Unblock::kForbidden};
};

class Client : public ClientEndpoint, public PublishedState, public SharedState {
 public:
  explicit Client(uint64_t client_id) : ClientEndpoint(client_id) {}

  // Returns the memory that counts for the client. Arguments are views of the query buffer, so they
  // do not count twice. The I/O thread's buffers for replies and for directly executed input do not
  // count, because all clients of the thread share them.
  uint64_t memory_bytes() const {
    const uint64_t sum = kObjectsBytes + subscriptions.bytes() + queued_bytes + watched_bytes +
                         output_buffer_capacity_bytes;
    return borrows_query_buffer ? sum : sum + input_bytes();
  }
  // Returns memory_bytes() plus the size of the client's input in the thread's buffer. CLIENT LIST
  // shows this sum.
  uint64_t published_memory_bytes() const {
    return memory_bytes() + (borrows_query_buffer ? input_bytes() : 0);
  }

  void request_kill() {
    kill_requested.store(true, std::memory_order_release);
    if (wake) wake();
  }

 private:
  // Memory of this object and of its session, in bytes.
  static const uint64_t kObjectsBytes;
};

}  // namespace server
