// SPDX-License-Identifier: MIT
//
// Passes requests to this node's Member. The requests come from other nodes of the shard (CLUSTERX)
// or from a client (CLUSTER FAILOVER).
//
// Thread safety: may be called from any thread. `done` runs once on the Member's thread, or never
// if that thread has ended.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace server::cluster {

class MemberQueue;

// Receives the line of the reply, with the '+' or '-' at its start, without its line end.
using PeerAnswered = std::function<void(std::string line)>;

void ask_for_promise(MemberQueue& queue, std::string shard, uint64_t epoch, PeerAnswered done);
// Asks this node for its position. `done` gets the line "+<epoch> <offset>", or "-NO …" if this
// node cannot take over now.
void ask_for_offset(MemberQueue& queue, std::string shard, PeerAnswered done);
// Informs this node that the leader of `epoch` has resigned. `done` gets "+OK" as soon as this node
// leads the shard in a later epoch and serves clients. If that takes longer than
// Succession::kAnswerUs, `done` gets "-NO …".
void report_resigned(MemberQueue& queue, std::string shard, uint64_t epoch, PeerAnswered done);
// Asks this node to hand the shard that it leads over to the replica. `done` gets +OK once the
// handover has begun.
void ask_for_handover(MemberQueue& queue, std::string shard, std::string replica_id,
                      PeerAnswered done);
// Executes CLUSTER FAILOVER on this replica. If `is_forced` is false, asks the leader to hand the
// shard over. Otherwise this node takes over without the leader. `done` gets +OK once the failover
// has begun.
void ask_for_failover(MemberQueue& queue, bool is_forced, PeerAnswered done);

}  // namespace server::cluster
