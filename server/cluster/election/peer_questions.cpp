// SPDX-License-Identifier: MIT
#include "server/cluster/election/peer_questions.h"

#include <fmt/format.h>

#include <utility>

#include "server/cluster/election/member.h"
#include "server/cluster/election/member_queue.h"

namespace server::cluster {
namespace {

constexpr const char* kYes = "+OK";

std::string ok_unless(const core::Result<>& begun) {
  return begun ? kYes : fmt::format("-{}", begun.error().message);
}

std::string leaders_answer(const std::optional<std::string>& line) {
  const bool is_answer = line && (line->starts_with('+') || line->starts_with('-'));
  if (is_answer) return *line;
  return "-ERR the leader does not answer: FORCE takes over without asking it";
}

}  // namespace

void ask_for_promise(MemberQueue& queue, std::string shard, uint64_t epoch, PeerAnswered done) {
  queue.post(
      [shard = std::move(shard), epoch, done = std::move(done)](Member& member, int64_t now_us) {
        if (member.promise(now_us, shard, epoch)) return done(kYes);
        done("-NO this node may take over, or knows a higher epoch");
      });
}

void ask_for_offset(MemberQueue& queue, std::string shard, PeerAnswered done) {
  queue.post([shard = std::move(shard), done = std::move(done)](Member& member, int64_t now_us) {
    const auto position = member.offset(now_us, shard);
    if (!position) return done("-NO this node cannot take over now");
    done(fmt::format("+{} {}", position->epoch, position->offset));
  });
}

void report_resigned(MemberQueue& queue, std::string shard, uint64_t epoch, PeerAnswered done) {
  queue.post(
      [shard, epoch](Member& member, int64_t now_us) { member.resigned(now_us, shard, epoch); });
  const auto serves = [shard = std::move(shard), epoch](const Member& member, int64_t now_us) {
    const Shard* const own = member.shard();
    return own != nullptr && own->name == shard && own->epoch > epoch &&
           member.service(now_us) == MemberService::kServes;
  };
  queue.await(serves, Succession::kAnswerUs, [done = std::move(done)](bool holds) {
    done(holds ? kYes : "-NO this node does not serve the shard yet");
  });
}

void ask_for_handover(MemberQueue& queue, std::string shard, std::string replica_id,
                      PeerAnswered done) {
  queue.post([shard = std::move(shard), id = std::move(replica_id), done = std::move(done)](
                 Member& member, int64_t now_us) {
    const Shard* const own = member.shard();
    if (own == nullptr || own->name != shard) return done("-NO this node is not in that shard");
    done(ok_unless(member.hand_over(now_us, id)));
  });
}

void ask_for_failover(MemberQueue& queue, bool is_forced, PeerAnswered done) {
  queue.post([&queue, is_forced, done = std::move(done)](Member& member, int64_t now_us) {
    const Shard* const own = member.shard();
    // On a leader or outside a shard, take_over() only returns the error for the client.
    if (is_forced || own == nullptr || member.leads()) {
      return done(ok_unless(member.take_over(now_us)));
    }
    if (!member.log_works()) return done(fmt::format("-{}", kLogOfNodeFails));
    queue.ask_leader(
        {"CLUSTERX", "HANDOVER", own->name, member.id()},
        [done](const std::optional<std::string>& line) { done(leaders_answer(line)); });
  });
}

}  // namespace server::cluster
