// SPDX-License-Identifier: MIT
//
// What a node is asked by others of its shard (CLUSTERX), and by CLUSTER FAILOVER.
//
// Thread safety: may be called from any thread. `done` runs once on the Member's thread, or not at
// all once that has ended.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace server::cluster {

class MemberQueue;

// The line of the reply, with the '+' or '-' before it, without its end.
using PeerAnswered = std::function<void(std::string line)>;

void ask_for_promise(MemberQueue& queue, std::string shard, uint64_t epoch, PeerAnswered done);
// "+<epoch> <offset>"
void ask_for_offset(MemberQueue& queue, std::string shard, PeerAnswered done);
// "+OK" once this node leads in the next epoch, and serves.
void report_resigned(MemberQueue& queue, std::string shard, uint64_t epoch, PeerAnswered done);
// Of a leader, for a replica; OK once it has begun.
void ask_for_handover(MemberQueue& queue, std::string shard, std::string replica_id,
                      PeerAnswered done);
// Of a replica; OK once it has begun. is_forced: without asking the leader.
void ask_for_failover(MemberQueue& queue, bool is_forced, PeerAnswered done);

}  // namespace server::cluster
