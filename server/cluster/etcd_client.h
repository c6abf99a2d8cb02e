// SPDX-License-Identifier: MIT
//
// EtcdClient: makes calls to a cluster of etcd members, and watches keys in etcd. It uses the JSON
// gateway of the members.
//
// A call goes to one member at a time, first to the member that answered last. If the member cannot
// be reached, the call moves to the next one. A call that only reads also moves after other
// failures. Every failure except a refusal by etcd makes the next member the first choice of later
// calls. A call ends after `call_limit` at the latest. Concurrent calls use separate connections,
// which are kept for later calls.
//
// A watch uses the same member as the calls, and moves with them. A stopped member leaves its
// watches silent. Only a call that gets no reply reveals that its member has stopped. So a client
// that watches must also make a few calls each second. If the connection of a watch breaks, the
// watch continues after the last reported change. It reports no change twice and omits none.
//
// Invariants: the handler of a call runs exactly once, and only after the function that started the
// call has returned. No handler runs once the client is destroyed. A reply larger than
// kEtcdReplyBytesMax is dropped entirely.
// Thread safety: none: use it on the thread that runs the io_context. Handlers run there.
// Source: https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/result.h"
#include "persistence/files/open_file.h"
#include "server/cluster/etcd_messages.h"

namespace boost::asio {
class io_context;
}

namespace server::cluster {

class EtcdCalls;
class EtcdWatches;

struct EtcdOptions {
  std::vector<std::string> endpoints =
      {};  // URLs http://HOST:PORT or https://HOST:PORT; the first one is tried first
  std::string user = {};  // user name for etcd; empty: no authentication
  std::string password = {};
  // Certificates of the authorities for https; empty: the system's.
  persistence::NamedFile ca_file = std::string();
  // The certificate and key for an etcd that requires one; empty: none.
  persistence::NamedFile cert_file = std::string();
  persistence::NamedFile key_file = std::string();
  std::chrono::milliseconds call_limit{700};
  // The time that a member has for checking the password. With --bcrypt-cost 14, etcd takes about a
  // second.
  std::chrono::milliseconds token_limit{3000};
  // The pause after etcd has refused the password. Each check of a password loads etcd.
  std::chrono::milliseconds token_pause{5000};
};

enum class EtcdOutcome {
  kAnswered,
  // The call was not executed and never will be: etcd refused it, or no member has received it.
  kRefused,
  // The call was sent and got no reply. etcd may have executed it, or may still do so seconds
  // later.
  kUnknown,
};

template <class Reply>
struct EtcdResult {
  EtcdOutcome outcome = EtcdOutcome::kUnknown;
  Reply reply;      // valid if the outcome is kAnswered
  EtcdError error;  // valid if the outcome is not kAnswered

  bool answered() const { return outcome == EtcdOutcome::kAnswered; }
};

template <class Reply>
using EtcdHandler = std::function<void(EtcdResult<Reply>)>;

// Changes come in the order of their revisions, and all changes of a revision come together.
struct EtcdChanges {
  uint64_t revision = 0;  // all changes up to this revision were reported

  // The changes of the keys. Empty if the watch has just begun, or continues after a failure.
  std::vector<EtcdEvent> events;
};
// The news of a watch: changes, or the error that ended the watch. The code kOutOfRange means that
// changes are lost, because they were compacted or were too many for one message. The owner must
// then read all keys again, and watch from the revision that follows the one it has read. Other
// codes, such as kPermissionDenied, mean that etcd refused the watch.
using EtcdWatchNews = std::variant<EtcdChanges, EtcdError>;

// The kinds of requests, which etcd may refuse independently. Changes need more rights than reads,
// and an etcd that is full refuses only changes and new leases.
enum class EtcdRequest : uint8_t { kRead, kChange, kLease, kWatch };
inline constexpr size_t kEtcdRequestKinds = 4;

class EtcdClient {
 public:
  // Creates a client. Errors: an endpoint that is not a URL, a CA file that cannot be read.
  static core::Result<std::unique_ptr<EtcdClient>> make(boost::asio::io_context& io,
                                                        EtcdOptions options);
  // Sets a function that is called before the handler of each request, with the error of the
  // request. The code of the error is kOk if etcd has executed the request. A watch that etcd has
  // confirmed counts as executed.
  void on_result(std::function<void(EtcdRequest, const EtcdError&)> listener) {
    on_result_ = std::move(listener);
  }
  // Closes all connections; no handler runs afterwards.
  ~EtcdClient();
  EtcdClient(const EtcdClient&) = delete;
  EtcdClient& operator=(const EtcdClient&) = delete;

  void range(const EtcdRange& range, EtcdHandler<EtcdRangeReply> handler);
  void txn(const EtcdTxn& txn, EtcdHandler<EtcdTxnReply> handler);
  // Creates a lease. etcd may grant more time than requested: its minimum is 1.5 election timeouts.
  void grant(uint64_t ttl_s, EtcdHandler<EtcdLeaseReply> handler);
  // Extends the lease. ttl_s of the reply is 0 if the lease no longer exists.
  void keep_alive(uint64_t lease, EtcdHandler<EtcdLeaseReply> handler);
  // Revokes the lease, which deletes its keys. If the lease no longer exists, etcd refuses the call
  // with kNotFound.
  void revoke(uint64_t lease, EtcdHandler<EtcdRevokeReply> handler);

  // Starts a watch, and returns its number, which is never 0. The handler may cancel the watch that
  // it serves.
  uint64_t watch(const EtcdWatch& watch, std::function<void(EtcdWatchNews)> handler);
  // Ends the watch: its handler is not called again. A number that belongs to no watch is ignored.
  void cancel(uint64_t watch);

 private:
  explicit EtcdClient(std::shared_ptr<EtcdCalls> calls);

  // Starts a call to etcd. When the reply arrives, `parse` parses it, and the result is passed to
  // `handler`.
  template <class Reply>
  void call(EtcdRequest kind, std::string_view path, std::string body,
            core::Result<Reply> (*parse)(std::string_view), EtcdHandler<Reply> handler,
            bool may_be_repeated);
  void report(EtcdRequest kind, const EtcdError& error) const {
    if (on_result_) on_result_(kind, error);
  }

  const std::shared_ptr<EtcdCalls> calls_;
  const std::shared_ptr<EtcdWatches> watches_;
  std::function<void(EtcdRequest, const EtcdError&)> on_result_;
};

}  // namespace server::cluster
