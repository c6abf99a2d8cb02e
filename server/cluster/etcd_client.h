// SPDX-License-Identifier: MIT
//
// EtcdClient: calls to a cluster of etcd members through their JSON gateway, and watches.
//
// A call goes to one member at a time, the one that answered last. It moves on to the next one
// when a member cannot be reached or, if it only reads, fails; every failure makes the next member
// the first choice of later calls. Whatever happens, a call ends after `call_limit`. Calls may run
// at the same time, each over a connection of its own; connections are kept.
//
// A watch stays on the member that calls go to, and moves with them: a member that has stopped
// leaves its watches silent, and only a call that gets no answer shows it. So use a client for
// calls too if it watches, a few each second. A watch that breaks goes on behind the last change
// told: no change is told twice or left out.
//
// Invariants: the handler of a call runs exactly once, never inside of the function that was
// called, and not at all once the client is destroyed. Nothing of a reply that is larger than
// kEtcdReplyBytesMax is kept.
// Thread safety: none: use it on the thread that runs the io_context. Handlers run there.
// Source: https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "core/result.h"
#include "persistence/files/open_file.h"
#include "server/cluster/etcd_messages.h"

namespace boost::asio {
class io_context;
}

namespace server::cluster {

struct EtcdOptions {
  std::vector<std::string> endpoints =
      {};                 // http://HOST:PORT or https://HOST:PORT, the first one first
  std::string user = {};  // empty: no authentication
  std::string password = {};
  persistence::NamedFile ca_file = std::string();  // of https; empty: the system's
  std::chrono::milliseconds call_limit{700};
};

enum class EtcdOutcome {
  kAnswered,
  // Not carried out, and it will not be: etcd has said no, or no member has got the call.
  kRefused,
  // Sent, and no answer: it may have been carried out, or may still be, seconds later.
  kUnknown,
};

template <class Reply>
struct EtcdResult {
  EtcdOutcome outcome = EtcdOutcome::kUnknown;
  Reply reply;      // of kAnswered
  EtcdError error;  // of the others

  bool answered() const { return outcome == EtcdOutcome::kAnswered; }
};

template <class Reply>
using EtcdHandler = std::function<void(EtcdResult<Reply>)>;

// What came of a watch: changes, in the order of their revisions, those of one revision together;
// or its end.
struct EtcdChanges {
  uint64_t revision = 0;          // changes up to this one have been told
  std::vector<EtcdEvent> events;  // empty: the watch has begun, or goes on after a failure
};
struct EtcdWatchEnd {
  // kOutOfRange: changes are lost (compacted, or too many for one message): read all anew and watch
  // from the revision behind that. Others: refused, for example kPermissionDenied.
  EtcdError error;
};
using EtcdWatchNews = std::variant<EtcdChanges, EtcdWatchEnd>;

class EtcdClient {
 public:
  // Errors: an endpoint that is no URL, a CA file that cannot be read.
  static core::Result<std::unique_ptr<EtcdClient>> make(boost::asio::io_context& io,
                                                        EtcdOptions options);
  // Closes all connections; no handler runs afterwards.
  ~EtcdClient();
  EtcdClient(const EtcdClient&) = delete;
  EtcdClient& operator=(const EtcdClient&) = delete;

  void range(const EtcdRange& range, EtcdHandler<EtcdRangeReply> handler);
  void put(const EtcdPut& put, EtcdHandler<EtcdPutReply> handler);
  void txn(const EtcdTxn& txn, EtcdHandler<EtcdTxnReply> handler);
  // etcd may grant more time than was asked for: its least is 1.5 election timeouts.
  void grant(uint64_t ttl_s, EtcdHandler<EtcdLeaseReply> handler);
  // ttl_s of the reply is 0 if the lease is gone.
  void keep_alive(uint64_t lease, EtcdHandler<EtcdLeaseReply> handler);
  // Deletes the lease's keys. A lease that is gone: refused with kNotFound.
  void revoke(uint64_t lease, EtcdHandler<EtcdRevokeReply> handler);

  // The handler may cancel the watch that it serves. Returns the watch's number, never 0.
  uint64_t watch(const EtcdWatch& watch, std::function<void(EtcdWatchNews)> handler);
  // The handler does not run any more. A number that is no watch's (any more) is passed over.
  void cancel(uint64_t watch);

 private:
  class State;
  explicit EtcdClient(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace server::cluster
