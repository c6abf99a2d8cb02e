// SPDX-License-Identifier: MIT
#include "server/session/client_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "core/clock.h"

namespace server {
namespace {

// Returns the letters of the `flags` field; "N" if no flag is set.
std::string flag_letters(const Session& session) {
  std::string letters;
  const Peer peer = session.peer;
  if (peer == Peer::kReplica) letters += 'S';
  if (peer == Peer::kMonitor) letters += 'O';
  if (peer == Peer::kLeader) letters += 'M';
  if (session.subscriptions.published_any()) letters += 'P';
  if (session.wait != ClientWait::kNone) letters += 'b';
  if (session.queued_commands.load(std::memory_order_relaxed) >= 0) letters += 'x';
  const Subscriptions::PublishedTracking& tracking = session.subscriptions.published_tracking();
  if (tracking.is_on.load(std::memory_order_relaxed)) letters += 't';
  if (tracking.is_broken.load(std::memory_order_relaxed)) letters += 'R';
  if (tracking.is_broadcast.load(std::memory_order_relaxed)) letters += 'B';
  if (session.reads_replicas.load(std::memory_order_relaxed)) letters += 'r';
  if (session.kill_requested.load(std::memory_order_relaxed)) letters += 'A';
  if (session.socket.is_unix) letters += 'U';
  if (session.no_evict.load(std::memory_order_relaxed)) letters += 'e';
  if (session.no_touch.load(std::memory_order_relaxed)) letters += 'T';
  return letters.empty() ? "N" : letters;
}

// Returns the id of the client that CLIENT TRACKING redirects to; 0 for none, -1 while tracking is
// off.
int64_t redirect_of(const Session& session) {
  const Subscriptions::PublishedTracking& tracking = session.subscriptions.published_tracking();
  const uint64_t redirect = tracking.redirect.load(std::memory_order_relaxed);
  return tracking.is_on.load(std::memory_order_relaxed) ? static_cast<int64_t>(redirect) : -1;
}

int64_t seconds_since(int64_t then_us, int64_t now_us) {
  // Another thread may have stored `then_us` after the caller has read the clock. The difference is
  // then negative, and the result is 0.
  return std::max<int64_t>(0, (now_us - then_us) / core::kSecondUs);
}

}  // namespace

std::string client_line(const Session& session, int64_t now_us, size_t argument_bytes) {
  const ClientNames::Values names = session.names.get();
  const std::string* command = session.traffic.last_command();
  const uint64_t query = session.query_buffer_bytes.load(std::memory_order_relaxed);
  const uint64_t query_free = session.query_buffer_free_bytes.load(std::memory_order_relaxed);
  const uint64_t output = session.output_buffer_bytes.load(std::memory_order_relaxed);
  std::string line;
  const auto out = std::back_inserter(line);
  fmt::format_to(out, "id={} addr={} laddr={} fd={} name={} age={} idle={} flags={} db={}",
                 session.id, session.address, session.local_address, session.socket.descriptor,
                 names.name, seconds_since(session.created_us, now_us),
                 seconds_since(session.last_interaction_us.load(std::memory_order_relaxed), now_us),
                 flag_letters(session), int{session.database});
  const Subscriptions& subscriptions = session.subscriptions;
  fmt::format_to(out, " sub={} psub={} ssub={} multi={} qbuf={} qbuf-free={}",
                 subscriptions.published_count(SubscriptionKind::kChannel),
                 subscriptions.published_count(SubscriptionKind::kPattern),
                 subscriptions.published_count(SubscriptionKind::kShardChannel),
                 session.queued_commands.load(std::memory_order_relaxed), query, query_free);
  // The arguments are views of the query buffer, so the field tot-mem already includes them.
  argument_bytes += session.argument_bytes.load(std::memory_order_relaxed);
  fmt::format_to(out, " argv-mem={} multi-mem={} rbs={} rbp={} obl={} oll=0 omem={} tot-mem={}",
                 argument_bytes, session.queued_bytes.load(std::memory_order_relaxed),
                 session.output_buffer_capacity_bytes.load(std::memory_order_relaxed),
                 session.output_buffer_peak_bytes.load(std::memory_order_relaxed), output, output,
                 session.published_memory_bytes());
  fmt::format_to(out, " events={} cmd={} user={} redir={} resp={}", output == 0 ? "r" : "rw",
                 command == nullptr ? "NULL" : *command, names.user, redirect_of(session),
                 static_cast<int>(protocol::RespVersion{session.resp}));
  // The fields that Redis added after 7.0 come last, in the order of the Redis versions that added
  // them.
  fmt::format_to(
      out, " lib-name={} lib-ver={} watch={} tot-net-in={} tot-net-out={} tot-cmds={}\n",
      names.library, names.library_version, session.watched_keys.load(std::memory_order_relaxed),
      session.traffic.received_bytes(), session.traffic.sent_bytes(), session.traffic.commands());
  return line;
}

}  // namespace server
